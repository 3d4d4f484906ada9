"""Write sizes into a model: of inputs by name, and of symbols wherever they stand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from onnx import GraphProto, ModelProto, ValueInfoProto

from onnxbench.core.attributes import all_graphs
from onnxbench.core.shape_rules.light import pin
from onnxbench.core.values import tensor_type


def pin_sizes(model: ModelProto, dims: Mapping[str, int], shapes: Mapping[str, Sequence[int]]) -> None:
    """Give inputs the shapes wanted, and symbols their sizes in every declaration; in place.

    Raises:
        NameNotFound: OB303 for an input or symbol that the model has not.
        UsageError: OB206 if a shape does not fit its input, or a symbol is given two sizes.
    """
    sizes = pin(model, dims, shapes)
    for graph in all_graphs(model):
        for value in _declared(graph):
            kind = tensor_type(value.type) if value.HasField("type") else None
            if kind is None or not kind.HasField("shape"):
                continue
            for dim in kind.shape.dim:
                if dim.dim_param in sizes:
                    dim.dim_value = sizes[dim.dim_param]


def _declared(graph: GraphProto) -> Iterator[ValueInfoProto]:
    yield from graph.input
    yield from graph.output
    yield from graph.value_info
