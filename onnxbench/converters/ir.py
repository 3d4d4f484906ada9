"""Which IR version a model needs, and which one a release of an opset wrote.

Source: the history of versions in onnx.proto.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, helper

from onnxbench.core.attributes import all_nodes
from onnxbench.core.external import MARK

_ELEMENTS = {
    TensorProto.FLOAT8E4M3FN: 9,
    TensorProto.FLOAT8E4M3FNUZ: 9,
    TensorProto.FLOAT8E5M2: 9,
    TensorProto.FLOAT8E5M2FNUZ: 9,
    TensorProto.UINT4: 10,
    TensorProto.INT4: 10,
    TensorProto.FLOAT4E2M1: 11,
    TensorProto.FLOAT8E8M0: 12,
    TensorProto.UINT2: 13,
    TensorProto.INT2: 13,
}


def released_with(opsets: Mapping[str, int]) -> int:
    """The IR version of the first onnx release that had these opsets."""
    imports = [helper.make_opsetid(domain, version) for domain, version in opsets.items()]
    return int(helper.find_min_ir_version_for(imports, ignore_unknown=True))


def needed(model: ModelProto) -> tuple[int, str]:
    """The lowest IR version that has all of a model, and what needs it."""
    return max(_needs(model), key=lambda need: need[0])


def _needs(model: ModelProto) -> Iterator[tuple[int, str]]:
    yield 3, "opset imports"
    if model.training_info:
        yield 7, "training_info"
    for function in model.functions:
        yield 8, f"function {function.name}"
        if function.overload or function.value_info or function.metadata_props:
            yield 10, f"what function {function.name} says beside its nodes"
    yield from _of_graph(model.graph)
    for node in all_nodes(model):
        yield from _of_node(node)


def _of_graph(graph: GraphProto) -> Iterator[tuple[int, str]]:
    inputs = {value.name for value in graph.input}
    if any(tensor.name not in inputs for tensor in graph.initializer):
        yield 4, "initializers that are no inputs"
    if graph.quantization_annotation:
        yield 5, "quantization annotations"
    if graph.sparse_initializer:
        yield 6, "sparse initializers"
    if graph.metadata_props or any(value.metadata_props for value in (*graph.input, *graph.output, *graph.value_info)):
        yield 10, "metadata of graphs and values"
    for tensor in graph.initializer:
        if tensor.data_type in _ELEMENTS:
            yield _ELEMENTS[tensor.data_type], f"the element type of {tensor.name}"
        if any(entry.key != MARK for entry in tensor.metadata_props):  # which says where `slim` took its bytes
            yield 10, f"metadata of {tensor.name}"
    for value in (*graph.input, *graph.output, *graph.value_info):
        if value.type.HasField("optional_type"):
            yield 8, f"the optional type of {value.name}"
        if value.type.tensor_type.elem_type in _ELEMENTS:
            yield _ELEMENTS[value.type.tensor_type.elem_type], f"the element type of {value.name}"


def _of_node(node: NodeProto) -> Iterator[tuple[int, str]]:
    if node.metadata_props or node.overload:
        yield 10, f"metadata of {node.name or node.op_type}"
    if node.device_configurations:
        yield 11, "device configurations"
    for attribute in node.attribute:
        kind = attribute.type
        if kind == AttributeProto.TENSOR and attribute.t.data_type in _ELEMENTS:
            yield _ELEMENTS[attribute.t.data_type], f"a tensor of {node.name or node.op_type}"
        elif kind == AttributeProto.GRAPH:
            yield from _of_graph(attribute.g)
        elif kind == AttributeProto.GRAPHS:
            for graph in attribute.graphs:
                yield from _of_graph(graph)
