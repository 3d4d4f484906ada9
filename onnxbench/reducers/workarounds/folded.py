"""The model without what is constant and what does nothing."""

from collections.abc import Iterator

from onnxbench.core.model import Model
from onnxbench.folding.options import FoldOptions
from onnxbench.folding.simplify import simplify
from onnxbench.reducers.workarounds import Fault, way


@way("folded")
def folded(fault: Fault) -> Iterator[tuple[str, Model]]:
    """As `onnxbench fold` does."""
    model, report = simplify(fault.model, FoldOptions(limits=fault.limits))
    if report.removals:
        yield "what is constant was computed, what does nothing removed (onnxbench fold)", model
