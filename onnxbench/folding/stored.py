"""Constants as nodes: what a Constant holds, and one that holds a value."""

from __future__ import annotations

from functools import cache

import numpy as np
from onnx import AttributeProto, NodeProto, SparseTensorProto, TensorProto, defs, helper, numpy_helper

from onnxbench.core.values import Array


def tensor_of(node: NodeProto) -> TensorProto | None:
    """The tensor of a Constant node, with the types of Constant-13: `value_float` is float32, `value_int` int64.

    None for a sparse one, and for one that takes its value from a function's attribute.
    """
    if len(node.attribute) != 1 or node.attribute[0].ref_attr_name:
        return None
    attribute = node.attribute[0]
    match attribute.name:
        case "value":
            held: TensorProto = attribute.t
            return held
        case "value_float":
            return numpy_helper.from_array(np.asarray(attribute.f, np.float32))
        case "value_floats":
            return numpy_helper.from_array(np.asarray(attribute.floats, np.float32))
        case "value_int":
            return numpy_helper.from_array(np.asarray(attribute.i, np.int64))
        case "value_ints":
            return numpy_helper.from_array(np.asarray(attribute.ints, np.int64))
        case "value_string":
            return helper.make_tensor("", TensorProto.STRING, [], [attribute.s])
        case "value_strings":
            return helper.make_tensor("", TensorProto.STRING, [len(attribute.strings)], list(attribute.strings))
    return None


@cache
def elements_of_constant(opset: int) -> frozenset[int]:
    """The element types that a Constant node can make in a version of ai.onnx; none if that is not imported."""
    try:
        texts = defs.get_schema("Constant", opset, "").outputs[0].types
    except defs.SchemaError:
        return frozenset()
    return frozenset(n for name, n in TensorProto.DataType.items() if f"tensor({name.lower()})" in texts)


def named(tensor: TensorProto, name: str) -> TensorProto:
    """A copy under a name."""
    copy = TensorProto()
    copy.CopyFrom(tensor)
    copy.name = name
    return copy


def tensor(value: Array, name: str) -> TensorProto:
    """A value as a tensor under a name."""
    return numpy_helper.from_array(np.ascontiguousarray(value).reshape(value.shape), name)


def node(held: TensorProto, output: str, name: str = "") -> NodeProto:
    """A Constant node that makes a value."""
    made = helper.make_node("Constant", [], [output], name=name)
    attribute = made.attribute.add(name="value", type=AttributeProto.TENSOR)
    attribute.t.CopyFrom(held)
    return made


def sparse_node(held: SparseTensorProto) -> NodeProto:
    """A Constant node that makes a sparse value, under the name that it has."""
    return helper.make_node("Constant", [], [held.values.name], sparse_value=held)


def filled(sparse: SparseTensorProto) -> Array:
    """A sparse tensor with all its zeros."""
    values, places = numpy_helper.to_array(sparse.values), numpy_helper.to_array(sparse.indices)
    dense: Array = np.zeros(list(sparse.dims), values.dtype)
    if places.ndim == 2:
        dense[tuple(places.T)] = values
    else:
        dense.reshape(-1)[places] = values
    return dense
