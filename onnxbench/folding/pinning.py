"""Write sizes into a model: of inputs by name, and of symbols wherever the graph that they belong to has them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from onnx import GraphProto, ModelProto, TensorShapeProto

from onnxbench.core import check
from onnxbench.core.attributes import all_graphs
from onnxbench.core.model import Model
from onnxbench.core.shape_rules.light import pin
from onnxbench.core.values import tensor_type
from onnxbench.errors import UsageError
from onnxbench.runtimes.base import Limits


def pin_sizes(model: ModelProto, dims: Mapping[str, int], shapes: Mapping[str, Sequence[int]]) -> None:
    """Give inputs the shapes wanted, and symbols their sizes in every declaration of the main graph; in place.

    Bodies are given only sizes of symbols that they alone have.

    Raises:
        NameNotFound: OB303 for an input or symbol that the model has not.
        UsageError: OB206 if a shape does not fit its input, or a symbol is given two sizes.
    """
    sizes = pin(model, dims, shapes)
    outer = {dim.dim_param for dim in _dims(model.graph)}
    _write(model.graph, sizes)
    inner = {text: size for text, size in sizes.items() if text not in outer}
    for graph in list(all_graphs(model))[1:]:  # names of sizes are scoped to a graph: a body's N may grow in each round
        _write(graph, inner)


def _write(graph: GraphProto, sizes: Mapping[str, int]) -> None:
    for dim in _dims(graph):
        if dim.dim_param in sizes:
            dim.dim_value = sizes[dim.dim_param]


def refuse_contradictions(model: Model, pinned: Model, seconds: float | None, limits: Limits) -> None:
    """Raise if sizes make an invalid model of a valid one: a Concat of parts that no longer fit, a window too large.

    Args:
        model: before its sizes were pinned.
        pinned: with them.
        seconds: for each check.
        limits: for the memory of one.

    Raises:
        UsageError: OB206.
    """
    fault = check.full_fault(pinned, timeout=seconds, memory=limits.memory)
    if fault is None or check.full_fault(model, timeout=seconds, memory=limits.memory) is not None:
        return
    words = " ".join(fault.split())[:300]
    hint = f"onnxbench inspect {model.label} with the same --shape and --dim shows the sizes that follow"
    raise UsageError("OB206", f"{model.label} cannot have the sizes that --pin would write into it: {words}", hint=hint)


def _dims(graph: GraphProto) -> Iterator[TensorShapeProto.Dimension]:
    """Every dim that a graph declares, bodies left out."""
    for value in (*graph.input, *graph.output, *graph.value_info):
        kind = tensor_type(value.type) if value.HasField("type") else None
        if kind is not None and kind.HasField("shape"):
            yield from kind.shape.dim
