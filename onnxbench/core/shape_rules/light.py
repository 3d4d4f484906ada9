"""A copy of a model without its weights, for the walk; inputs pinned to sizes that the user gives."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Any

from onnx import AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto, TensorProto, TypeProto, numpy_helper

from onnxbench.core.attributes import subgraphs
from onnxbench.core.model import Model
from onnxbench.core.nearest import not_found
from onnxbench.core.shape_rules.facts import MOST, followed
from onnxbench.core.sizes import given_symbols, names_in
from onnxbench.core.values import tensor_type
from onnxbench.core.weights import array
from onnxbench.errors import ModelError

_HEAVY = (AttributeProto.GRAPH, AttributeProto.GRAPHS, AttributeProto.TENSOR)


def lighten(model: Model) -> ModelProto:
    """The model with tensors that are no shapes reduced to their type and dims; small external ones are read."""
    source = model.proto
    made = ModelProto(ir_version=source.ir_version)
    made.opset_import.extend(source.opset_import)
    _graph(model, source.graph, made.graph)
    for function in source.functions:
        _function(model, function, made.functions.add())
    return made


def _function(model: Model, source: FunctionProto, target: FunctionProto) -> None:
    target.name, target.domain, target.overload = source.name, source.domain, source.overload
    target.input.extend(source.input)
    target.output.extend(source.output)
    target.attribute.extend(source.attribute)
    target.attribute_proto.extend(source.attribute_proto)
    target.opset_import.extend(source.opset_import)
    target.value_info.extend(source.value_info)
    _nodes(model, source.node, target.node)


def _graph(model: Model, source: GraphProto, target: GraphProto) -> None:
    target.name = source.name
    target.input.extend(source.input)
    target.output.extend(source.output)
    target.value_info.extend(source.value_info)
    for tensor in source.initializer:
        _tensor(model, tensor, target.initializer.add())
    for sparse in source.sparse_initializer:
        made = target.sparse_initializer.add()
        made.dims.extend(sparse.dims)
        made.values.name, made.values.data_type = sparse.values.name, sparse.values.data_type
        made.values.dims.extend(sparse.values.dims)
    _nodes(model, source.node, target.node)


def _nodes(model: Model, source: Sequence[NodeProto], target: Any) -> None:
    """The nodes one by one, those with nothing heavy in them in runs, which is fast."""
    run: list[NodeProto] = []
    for node in source:
        if (node.attribute and _is_heavy(node)) or node.metadata_props or node.doc_string:
            target.extend(run)
            run = []
            _node(model, node, target.add())
        else:
            run.append(node)
    target.extend(run)


def _is_heavy(node: NodeProto) -> bool:
    return any(attribute.type in _HEAVY for attribute in node.attribute)


def _node(model: Model, source: NodeProto, target: NodeProto) -> None:
    target.name, target.op_type, target.domain = source.name, source.op_type, source.domain
    target.overload = source.overload
    target.input.extend(source.input)
    target.output.extend(source.output)
    for attribute in source.attribute:
        if attribute.type not in _HEAVY:
            target.attribute.add().CopyFrom(attribute)
            continue
        made = target.attribute.add(name=attribute.name, type=attribute.type, ref_attr_name=attribute.ref_attr_name)
        if attribute.type == AttributeProto.TENSOR and attribute.HasField("t"):
            _tensor(model, attribute.t, made.t)
        elif attribute.type == AttributeProto.GRAPH:
            _graph(model, attribute.g, made.g)
        for graph in attribute.graphs:
            _graph(model, graph, made.graphs.add())


def _tensor(model: Model, source: TensorProto, target: TensorProto) -> None:
    small = prod(source.dims) <= MOST and followed(source.data_type)
    if small and source.data_location != TensorProto.EXTERNAL:
        target.CopyFrom(source)
        return
    if small:
        try:
            target.CopyFrom(numpy_helper.from_array(array(model, source), source.name))
        except (ModelError, OSError, ValueError):
            pass
        else:
            return
    target.name, target.data_type, target.data_location = source.name, source.data_type, TensorProto.EXTERNAL
    target.dims.extend(source.dims)


def pin(model: ModelProto, dims: Mapping[str, int], shapes: Mapping[str, Sequence[int]]) -> dict[str, int]:
    """Give inputs the shapes wanted; returns the size of each symbol.

    Raises:
        NameNotFound: OB303 for an input or symbol that the model has not.
        UsageError: OB206 if a shape does not fit its input, or a symbol is given two sizes.
    """
    inputs = {value.name: value.type for value in model.graph.input}
    known = names_in(declared_texts(model))
    for name in dims:
        if name not in known:
            raise not_found("symbolic dim", name, sorted(known))
    for name in shapes:
        if name not in inputs:
            raise not_found("input", name, inputs)
    values = given_symbols(inputs, shapes, dims)
    for name, shape in shapes.items():
        _pin(inputs[name], shape)
    return values


def _pin(kind: TypeProto, shape: Sequence[int]) -> None:
    holder = tensor_type(kind)
    if holder is not None:
        holder.ClearField("shape")
        holder.shape.SetInParent()
        for size in shape:
            holder.shape.dim.add(dim_value=size)


def without_inner_names(model: ModelProto) -> ModelProto:
    """A copy whose bodies name no sizes: onnx's inference takes their names for those of the graph around them."""
    if len(list(_graphs(model.graph))) == 1:
        return model
    made = ModelProto()
    made.CopyFrom(model)
    for graph in list(_graphs(made.graph))[1:]:
        for value in (*graph.input, *graph.output, *graph.value_info):
            holder = tensor_type(value.type)
            for dim in holder.shape.dim if holder is not None else ():
                dim.ClearField("dim_param")
    return made


def declared_texts(model: ModelProto) -> set[str]:
    """Every dim_param in a model, those of bodies included."""
    return {text for graph in _graphs(model.graph) for text in _texts(graph)}


def _graphs(graph: GraphProto) -> Iterator[GraphProto]:
    yield graph
    for node in graph.node:
        if node.attribute:
            for _, body in subgraphs(node):
                yield from _graphs(body)


def _texts(graph: GraphProto) -> Iterator[str]:
    for value in (*graph.input, *graph.output, *graph.value_info):
        holder = tensor_type(value.type)
        if holder is not None:
            yield from (dim.dim_param for dim in holder.shape.dim if dim.dim_param)
