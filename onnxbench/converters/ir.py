"""Which IR version a model needs, and which one a release of an opset wrote.

Source: the history of versions in onnx.proto.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from onnx import GraphProto, ModelProto, NodeProto, SparseTensorProto, TensorProto, TypeProto, helper

from onnxbench.core.attributes import all_nodes, nodes_below
from onnxbench.core.external import MARK

#: By name, since not every onnx has all of them.
_SINCE = {
    "BFLOAT16": 4,
    "FLOAT8E4M3FN": 9,
    "FLOAT8E4M3FNUZ": 9,
    "FLOAT8E5M2": 9,
    "FLOAT8E5M2FNUZ": 9,
    "UINT4": 10,
    "INT4": 10,
    "FLOAT4E2M1": 11,
    "FLOAT8E8M0": 12,
    "UINT2": 13,
    "INT2": 13,
    "FLOAT6E2M3": 14,
    "FLOAT6E3M2": 14,
}
_ELEMENTS = {code: _SINCE[name] for name, code in TensorProto.DataType.items() if name in _SINCE}


def released_with(opsets: Mapping[str, int]) -> int:
    """The IR version of the first onnx release that had these opsets."""
    imports = [helper.make_opsetid(domain, version) for domain, version in opsets.items()]
    return int(helper.find_min_ir_version_for(imports, ignore_unknown=True))


def needed(model: ModelProto) -> tuple[int, str]:
    """The lowest IR version that has all of a model, and what needs it."""
    return max(_needs(model), key=lambda need: need[0])


def _needs(model: ModelProto) -> Iterator[tuple[int, str]]:
    yield 3, "opset imports"
    if model.configuration:
        yield 11, "device configurations"
    for info in model.training_info:
        yield 7, "training_info"
        for graph in (info.initialization, info.algorithm):
            yield from _of_graph(graph)
            for node in nodes_below(graph.node):
                yield from _of_node(node)
    for function in model.functions:
        yield 8, f"function {function.name}"
        if function.attribute_proto:
            yield 9, f"defaults of attributes of function {function.name}"
        if function.overload or function.value_info or function.metadata_props:
            yield 10, f"what function {function.name} says beside its nodes"
        for value in function.value_info:
            yield from _of_type(value.type, value.name)
    yield from _of_graph(model.graph)
    for node in all_nodes(model):
        yield from _of_node(node)


def _of_graph(graph: GraphProto) -> Iterator[tuple[int, str]]:
    inputs = {value.name for value in graph.input}
    if any(tensor.name not in inputs for tensor in graph.initializer):
        yield 4, "initializers that are no inputs"
    if graph.quantization_annotation:
        yield 5, "quantization annotations"
    if graph.metadata_props or any(value.metadata_props for value in (*graph.input, *graph.output, *graph.value_info)):
        yield 10, "metadata of graphs and values"
    for tensor in graph.initializer:
        yield from _of_tensor(tensor, tensor.name)
    for sparse in graph.sparse_initializer:
        yield from _of_sparse(sparse, sparse.values.name)
    for value in (*graph.input, *graph.output, *graph.value_info):
        yield from _of_type(value.type, value.name)


def _of_tensor(tensor: TensorProto, name: str) -> Iterator[tuple[int, str]]:
    if tensor.data_type in _ELEMENTS:
        yield _ELEMENTS[tensor.data_type], f"the element type of {name}"
    if any(entry.key != MARK for entry in tensor.metadata_props):  # which says where `slim` took its bytes
        yield 10, f"metadata of {name}"


def _of_sparse(tensor: SparseTensorProto, name: str) -> Iterator[tuple[int, str]]:
    yield 6, f"the sparse tensor {name}"
    yield from _of_tensor(tensor.values, name)
    yield from _of_tensor(tensor.indices, name)


def _of_type(kind: TypeProto, name: str) -> Iterator[tuple[int, str]]:
    match kind.WhichOneof("value"):
        case "tensor_type":
            if kind.tensor_type.elem_type in _ELEMENTS:
                yield _ELEMENTS[kind.tensor_type.elem_type], f"the element type of {name}"
        case "sparse_tensor_type":
            yield 8, f"the sparse type of {name}"
        case "optional_type":
            yield 8, f"the optional type of {name}"
            yield from _of_type(kind.optional_type.elem_type, name)
        case "sequence_type":
            yield from _of_type(kind.sequence_type.elem_type, name)
        case "map_type":
            yield from _of_type(kind.map_type.value_type, name)


def _of_node(node: NodeProto) -> Iterator[tuple[int, str]]:
    label = node.name or node.op_type
    if node.metadata_props or node.overload:
        yield 10, f"metadata of {label}"
    if node.device_configurations:
        yield 11, "device configurations"
    for attribute in node.attribute:
        if attribute.HasField("t"):
            yield from _of_tensor(attribute.t, f"a tensor of {label}")
        if attribute.HasField("g"):
            yield from _of_graph(attribute.g)
        if attribute.HasField("tp"):
            yield from _of_type(attribute.tp, f"a type of {label}")
        if attribute.HasField("sparse_tensor"):
            yield from _of_sparse(attribute.sparse_tensor, f"of {label}")
        for kind in attribute.type_protos:
            yield from _of_type(kind, f"a type of {label}")
        for sparse in attribute.sparse_tensors:
            yield from _of_sparse(sparse, f"of {label}")
        for tensor in attribute.tensors:
            yield from _of_tensor(tensor, f"a tensor of {label}")
        for graph in attribute.graphs:
            yield from _of_graph(graph)
