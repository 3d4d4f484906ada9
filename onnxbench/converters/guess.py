"""What is known of the outputs of a node that an adapter made: element types by its schema, ranks where they are plain."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onnx import NodeProto, TensorProto, helper, numpy_helper
from onnx.defs import OpSchema

from onnxbench.converters import schemas
from onnxbench.core.graph import plain_domain
from onnxbench.core.values import Array
from onnxbench.folding.stored import tensor_of

if TYPE_CHECKING:
    from onnxbench.converters.facts import Facts, Known

#: Operators whose output has the rank of the first input.
_SAME_RANK = frozenset(
    {
        "Cast",
        "Transpose",
        "Softmax",
        "LogSoftmax",
        "Hardmax",
        "Relu",
        "Neg",
        "Abs",
        "Slice",
        "Pad",
        "Clip",
        "Not",
        "Floor",
    }
    | {"Ceil", "Exp", "Log", "Sqrt", "Reciprocal", "Identity", "Round", "Sign", "CumSum", "Tile", "Resize", "Gemm"}
    | {"Sigmoid", "Tanh", "Erf", "ScatterElements", "QuantizeLinear", "DequantizeLinear"}
)
#: Operators that broadcast.
_BROADCAST = frozenset(
    {"Add", "Sub", "Mul", "Div", "Pow", "Equal", "Less", "Greater", "And", "Or", "Xor", "Where", "Max", "Min", "Mod"}
    | {"Sum", "Mean"}
)


def known_of(node: NodeProto, opset: int, facts: Facts) -> dict[str, Known]:
    """Facts of what a node makes."""
    from onnxbench.converters.facts import Known

    version = schemas.schema(plain_domain(node.domain), node.op_type, opset)
    if version is None:
        return {name: Known() for name in node.output if name}
    found = {}
    for place, name in enumerate(node.output):
        if name:
            dims = _dims(node, facts) if place == 0 else None
            rank = len(dims) if dims is not None else _rank(node, facts) if place == 0 else None
            found[name] = Known(element_made(node, version, place, facts), rank, dims, _stored(node))
    return found


def _stored(node: NodeProto) -> Array | None:
    """The value of a Constant."""
    if node.op_type != "Constant" or plain_domain(node.domain):
        return None
    tensor = tensor_of(node)
    return None if tensor is None or tensor.data_location == tensor.EXTERNAL else numpy_helper.to_array(tensor)


def element_made(node: NodeProto, version: OpSchema, place: int, facts: Facts) -> int | None:
    """The element type of an output, as the schema tells it."""
    attributes = {attribute.name: attribute for attribute in node.attribute if not attribute.ref_attr_name}
    if node.op_type in ("Cast", "EyeLike", "RandomNormal", "RandomUniform"):
        name = "to" if node.op_type == "Cast" else "dtype"
        return attributes[name].i if name in attributes else None
    if node.op_type == "Constant":
        return _constant(node)
    if node.op_type == "ConstantOfShape":
        return attributes["value"].t.data_type if "value" in attributes else int(TensorProto.FLOAT)
    formal = version.outputs[min(place, len(version.outputs) - 1)].type_str
    for number, name in enumerate(node.input):
        if name and version.inputs and version.inputs[min(number, len(version.inputs) - 1)].type_str == formal:
            return facts.element(name)
    types = schemas.allowed(version, formal)
    return schemas.element_of(next(iter(types))) if len(types) == 1 else None


def _constant(node: NodeProto) -> int | None:
    """Also of one whose value is an attribute of the function that it stands in."""
    for attribute in node.attribute:
        if attribute.name == "value":
            return None if attribute.ref_attr_name else int(attribute.t.data_type)
        if attribute.name == "sparse_value":
            return int(attribute.sparse_tensor.values.data_type)
        for prefix, element in _NUMBERS.items():
            if attribute.name.startswith(prefix):
                return element
    return None


_NUMBERS = {
    "value_int": int(TensorProto.INT64),
    "value_float": int(TensorProto.FLOAT),
    "value_string": int(TensorProto.STRING),
}


def _dims(node: NodeProto, facts: Facts) -> tuple[int | None, ...] | None:
    if node.op_type in ("Cast", "Relu", "Neg", "Abs", "Clip", "Identity", "Floor", "Exp", "Softmax"):
        return facts.dims(node.input[0])
    if node.op_type == "Shape" and len(node.attribute) == 0:
        rank = facts.rank(node.input[0])
        return None if rank is None else (rank,)
    if node.op_type == "Constant":
        return next((tuple(attribute.t.dims) for attribute in node.attribute if attribute.name == "value"), None)
    if node.op_type == "Transpose":
        order = next((list(a.ints) for a in node.attribute if a.name == "perm"), None)
        dims = facts.dims(node.input[0])
        return tuple(dims[axis] for axis in order) if order and dims is not None and len(order) == len(dims) else None
    return None


def _rank(node: NodeProto, facts: Facts) -> int | None:
    if node.op_type in _SAME_RANK:
        return facts.rank(node.input[0])
    if node.op_type in _BROADCAST:
        ranks = [facts.rank(name) for name in node.input]
        known = [rank for rank in ranks if rank is not None]
        return max(known) if known and len(known) == len(ranks) else None
    attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute if not a.ref_attr_name}
    if node.op_type == "Flatten":
        return 2
    if node.op_type in ("Shape", "NonZero"):
        return 1 if node.op_type == "Shape" else 2
    if node.op_type in ("Reshape", "Expand", "ConstantOfShape") and (node.op_type != "Expand"):
        shape = facts.dims(node.input[-1])
        return shape[0] if shape else None
    if node.op_type in ("Squeeze", "Unsqueeze"):
        return _squeezed(node, attributes, facts)
    if node.op_type == "GatherElements":
        return facts.rank(node.input[1])
    if node.op_type in ("OneHot", "GatherND", "Expand"):
        return _by_second(node, attributes, facts)
    if node.op_type == "Concat":
        ranks = [facts.rank(name) for name in node.input]
        return next((rank for rank in ranks if rank is not None), None)
    if node.op_type == "Gather":
        data, indices = facts.rank(node.input[0]), facts.rank(node.input[1])
        return data + indices - 1 if data is not None and indices is not None else None
    if node.op_type.startswith(("Reduce", "Arg")) and attributes.get("keepdims", 1):
        return facts.rank(node.input[0])
    return None


def _by_second(node: NodeProto, attributes: dict[str, object], facts: Facts) -> int | None:
    """Ranks that the second input has to do with."""
    if node.op_type == "OneHot":
        rank = facts.rank(node.input[0])
        return None if rank is None else rank + 1
    data, dims = facts.rank(node.input[0]), facts.dims(node.input[1])
    if data is None or not dims or dims[-1] is None:
        return None
    if node.op_type == "Expand":
        return max(data, dims[0] or 0)
    batch = attributes.get("batch_dims", 0)
    assert isinstance(batch, int)
    return data - dims[-1] - batch + len(dims) - 1


def _squeezed(node: NodeProto, attributes: dict[str, object], facts: Facts) -> int | None:
    rank = facts.rank(node.input[0])
    axes = attributes.get("axes")
    if axes is None and len(node.input) > 1:
        value = facts.value(node.input[1])
        axes = None if value is None else list(value.reshape(-1))
    if rank is None or not isinstance(axes, (list, tuple)):
        return None
    return rank + (len(axes) if node.op_type == "Unsqueeze" else -len(axes))
