"""Fold a model and prove that it computes the same."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from onnx import ModelProto

from onnxbench.core.counts import stored_bytes
from onnxbench.core.graph import GraphView, refuse_doubles
from onnxbench.core.model import Model
from onnxbench.core.slimming import fatten, slim
from onnxbench.folding.options import FoldOptions
from onnxbench.folding.pinning import pin_sizes, refuse_contradictions
from onnxbench.folding.proof import prove
from onnxbench.folding.report import Folding
from onnxbench.folding.simplify import freeze, simplify
from onnxbench.verify import Feeds, feed_sets


def fold_model(
    model: Model, options: FoldOptions | None = None, feeds: Callable[[Model], Iterable[Feeds]] | None = None
) -> tuple[Model, Folding]:
    """A model with fewer nodes that computes the same, verified, and the report.

    Args:
        model: not changed.
        options: what may be done.
        feeds: gives inputs of the model to verify with; made up if there is none.

    Raises:
        SafetyStop: OB501 if the result is invalid, or computes something else.
        ModelError: OB305 if two nodes make one value.
        NameNotFound: OB303, or UsageError: OB206, for sizes that do not fit the model.
    """
    options = options or FoldOptions()
    refuse_doubles(GraphView(model.proto, model.proto.graph), model.label)
    source = slim(model)
    if options.pin:
        pin_sizes(source.proto, options.dims, options.shapes)
        refuse_contradictions(model, source, options.inference_time, options.limits)
    folded, report = simplify(source, options)
    if options.freeze_initializers:
        freeze(source.proto)  # what is compared has the inputs that are left
    report.bytes_before, report.bytes_after = stored_bytes(source), stored_bytes(folded)
    sets = (feeds or feed_sets)(source)  # what is wrong with them is said of a model without anything to fold too
    if not report.removals:
        report.state = "unchanged"
        return folded, report
    prove(source, folded, report, options, sets)
    return folded, report


def fold(model: ModelProto, options: FoldOptions | None = None) -> ModelProto:
    """`fold_model` for a model in memory, whose weights it holds itself.

    Raises:
        SafetyStop: OB501 if the result is invalid, or computes something else.
    """
    folded, _ = fold_model(Model(model), options)
    return fatten(folded).proto
