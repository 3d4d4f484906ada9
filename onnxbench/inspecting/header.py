"""The head of a model: versions, origin, interface, and how much is in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from onnx import GraphProto, ModelProto, NodeProto, TensorProto, TypeProto, ValueInfoProto

from onnxbench.core.attributes import subgraphs
from onnxbench.core.counts import count_nodes
from onnxbench.core.graph import GraphView
from onnxbench.core.model import Model
from onnxbench.core.tensors import element_bits, type_name


@dataclass(slots=True)
class Interface:
    """One graph input or output. `dims` holds numbers, symbols, or None for an anonymous dimension; None for unknown rank."""

    name: str
    type: str
    dims: list[int | str | None] | None
    overridable: bool = False


@dataclass(slots=True)
class Header:
    """What a model says of itself, and its counts.

    Attributes:
        size: bytes of the model file; None for a stream.
        ir_version: of the file.
        opsets: version by domain as the file spells it; "ai.onnx" and "" are the same domain, and both may be there.
        producer: name and version of the exporter.
        metadata: the model's key-value pairs.
        inputs: what callers feed; initializers that are inputs too are marked overridable.
        nodes, all_nodes: of the top graph; bodies and functions added.
        initializers: tensors of the top graph, sparse ones included.
        parameters: elements of all initializers and constants, bodies and functions included.
        bytes_by_type: their bytes by element type.
    """

    size: int | None
    ir_version: int
    opsets: list[tuple[str, int]]
    producer: str
    domain: str
    model_version: int
    doc: str
    graph: str
    metadata: list[tuple[str, str]]
    inputs: list[Interface]
    outputs: list[Interface]
    nodes: int
    all_nodes: int
    functions: int
    initializers: int
    parameters: int
    bytes_by_type: dict[str, int] = field(default_factory=dict)


def header(model: Model, view: GraphView) -> Header:
    """Reads no weights: sizes come from dims."""
    proto = model.proto
    nodes, everything = count_nodes(proto)
    parameters, by_type = weigh(proto)
    return Header(
        size=model.path.stat().st_size if model.path is not None else None,
        ir_version=proto.ir_version,
        opsets=[(entry.domain, entry.version) for entry in proto.opset_import],
        producer=" ".join(filter(None, (proto.producer_name, proto.producer_version))),
        domain=proto.domain,
        model_version=proto.model_version,
        doc=proto.doc_string,
        graph=proto.graph.name,
        metadata=[(entry.key, entry.value) for entry in proto.metadata_props],
        inputs=[
            interface(value, view.is_overridable(value.name)) for value in proto.graph.input if is_fed(view, value)
        ],
        outputs=[interface(value) for value in proto.graph.output],
        nodes=nodes,
        all_nodes=everything,
        functions=len(proto.functions),
        initializers=len(proto.graph.initializer) + len(proto.graph.sparse_initializer),
        parameters=parameters,
        bytes_by_type=by_type,
    )


def is_fed(view: GraphView, value: ValueInfoProto) -> bool:
    """Whether a graph input can be fed: before IR 4 initializers had to be inputs, and were still constants."""
    return value.name not in view.initializers or view.is_overridable(value.name)


def interface(value: ValueInfoProto, overridable: bool = False) -> Interface:
    """A declaration, for the reader."""
    return Interface(value.name, describe(value.type), dims_of(value.type), overridable)


def describe(kind: TypeProto) -> str:
    """float32, sequence(float32), optional(int64), map(int64, float32); "unknown" if nothing is declared."""
    which = kind.WhichOneof("value")
    if which in ("tensor_type", "sparse_tensor_type"):
        tensor = getattr(kind, which)
        return ("sparse " if which.startswith("sparse") else "") + type_name(tensor.elem_type)
    if which == "map_type":
        return f"map({type_name(kind.map_type.key_type)}, {describe(kind.map_type.value_type)})"
    if which in ("sequence_type", "optional_type"):
        return f"{which.removesuffix('_type')}({describe(getattr(kind, which).elem_type)})"
    return kind.opaque_type.name or "opaque" if which == "opaque_type" else "unknown"


def dims_of(kind: TypeProto) -> list[int | str | None] | None:
    """Numbers, symbols, None for an anonymous dimension; None in all for an unknown rank or what is no tensor."""
    tensor = kind.tensor_type if kind.HasField("tensor_type") else kind.sparse_tensor_type
    if not tensor.HasField("shape"):
        return None
    return [d.dim_value if d.HasField("dim_value") else d.dim_param or None for d in tensor.shape.dim]


def weigh(proto: ModelProto) -> tuple[int, dict[str, int]]:
    """Elements of all stored weights, and their bytes by element type, the largest first."""
    parameters, by_type = 0, Counter[str]()
    for tensor in weights(proto):
        count = elements(tensor)
        parameters += count
        by_type[type_name(tensor.data_type)] += stored_bytes(tensor)
    return parameters, dict(by_type.most_common())


def weights(proto: ModelProto) -> Iterator[TensorProto]:
    """Initializers and the values of Constant nodes, bodies and functions included; of sparse ones the stored values."""
    pending: list[Any] = [proto.graph, *proto.functions]
    while pending:
        graph = pending.pop(0)
        if isinstance(graph, GraphProto):
            yield from graph.initializer
            yield from (sparse.values for sparse in graph.sparse_initializer)
        for node in graph.node:
            if node.attribute:  # which most nodes of a large graph have not
                yield from constant_tensors(node)
                pending += [body for _, body in subgraphs(node)]


def constant_tensors(node: NodeProto) -> Iterator[TensorProto]:
    """The tensors that a Constant node holds."""
    if node.op_type == "Constant":
        for attribute in node.attribute:
            if attribute.name == "value":
                yield attribute.t
            elif attribute.name == "sparse_value":
                yield attribute.sparse_tensor.values


def elements(tensor: TensorProto) -> int:
    """Elements that the dims promise; 0 if a dim is negative."""
    count = 1
    for dim in tensor.dims:
        count *= dim
    return count if all(dim >= 0 for dim in tensor.dims) else 0


def stored_bytes(tensor: TensorProto) -> int:
    """Bytes of a tensor's elements; of strings their characters."""
    bits = element_bits(tensor.data_type)
    if bits is None:
        return sum(len(item) for item in tensor.string_data)
    return -(-elements(tensor) * bits // 8)
