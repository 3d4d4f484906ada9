"""Convert a model and prove that it computes the same."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from onnxbench.converters.options import ConvertOptions
from onnxbench.converters.report import Conversion
from onnxbench.core.model import Model
from onnxbench.verify import Feeds


def convert_model(
    model: Model, options: ConvertOptions, feeds: Callable[[Model], Iterable[Feeds]] | None = None
) -> tuple[Model | None, Conversion]:
    """The model in other opsets, verified, and the report; no model if it was refused or did not verify.

    Args:
        model: not changed; its external weights stay where they are, and are not read.
        options: the target, and what it may cost.
        feeds: gives inputs of the model to verify with; made up if there is none.

    Raises:
        ModelError: OB305 if the model is invalid (two nodes make one value, an unknown operator of ai.onnx, no opset).
        UsageError: OB201 for an opset that the installed onnx does not know.
    """
    raise NotImplementedError
