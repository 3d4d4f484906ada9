"""What is known of the outputs of a node that an adapter made: element types by its schema, ranks where they are plain."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import NodeProto, TensorProto, helper
from onnx.defs import OpSchema

from onnxbench.converters import schemas
from onnxbench.converters.shorts import value_made
from onnxbench.core.graph import plain_domain

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
    | {"Sigmoid", "Tanh", "Erf", "ScatterElements", "QuantizeLinear", "DequantizeLinear", "CastLike", "Split", "Trilu"}
    | {"Gelu", "Softplus", "IsNaN", "IsInf", "CumSum", "CumProd", "ScatterND", "Scatter", "Dropout", "Elu"}
    | {"LayerNormalization", "RMSNormalization", "InstanceNormalization", "BatchNormalization", "GroupNormalization"}
    | {
        "Conv",
        "MaxPool",
        "AveragePool",
        "GlobalAveragePool",
        "GlobalMaxPool",
        "Sin",
        "Cos",
        "BitwiseNot",
        "ReverseSequence",
    }
    | {
        "TensorScatter",
        "RotaryEmbedding",
        "Swish",
        "HardSwish",
        "HardSigmoid",
        "LeakyRelu",
        "Selu",
        "Celu",
        "TopK",
        "DFT",
    }
)
#: Operators that broadcast.
_BROADCAST = frozenset(
    {"Add", "Sub", "Mul", "Div", "Pow", "Equal", "Less", "Greater", "And", "Or", "Xor", "Where", "Max", "Min", "Mod"}
    | {"Sum", "Mean", "LessOrEqual", "GreaterOrEqual", "PRelu", "BitShift", "BitwiseAnd", "BitwiseOr", "BitwiseXor"}
)
#: Operators whose every output has the rank of the first.
_ALIKE = frozenset({"Split", "TopK", "MaxPool", "Dropout"})


def known_of(node: NodeProto, opset: int, facts: Facts) -> dict[str, Known]:
    """Facts of what a node makes."""
    from onnxbench.converters.facts import Known

    version = schemas.schema(plain_domain(node.domain), node.op_type, opset)
    if version is None:
        return {name: Known() for name in node.output if name}
    found = {}
    for place, name in enumerate(node.output):
        if name:
            value = value_made(node, facts) if place == 0 else None
            dims = _dims(node, facts) if place == 0 else None
            dims = dims if value is None else value.shape
            rank = _rank(node, facts) if place == 0 or node.op_type in _ALIKE else None
            rank = rank if dims is None else len(dims)
            found[name] = Known(element_made(node, version, place, facts), rank, dims, value)
    return found


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
    if node.op_type in _SAME_DIMS:
        return facts.dims(node.input[0])
    attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute if not a.ref_attr_name}
    compute = _DIMS.get(node.op_type)
    return None if compute is None else compute(node, attributes, facts)


#: Operators whose output has the dims of the first input.
_SAME_DIMS = frozenset(
    {
        "Cast",
        "Relu",
        "Neg",
        "Abs",
        "Clip",
        "Identity",
        "Floor",
        "Exp",
        "Softmax",
        "CastLike",
        "Not",
        "Sqrt",
        "Erf",
        "Tanh",
    }
    | {"Sigmoid", "Ceil", "Round", "Log", "Sign", "Reciprocal", "IsNaN", "IsInf", "LogSoftmax", "Trilu", "CumSum"}
)


def _dims_of_shape(node: NodeProto, attributes: dict[str, Any], facts: Facts) -> tuple[int | None, ...] | None:
    rank = facts.rank(node.input[0])
    if rank is None:
        return None
    return (len(range(*slice(attributes.get("start"), attributes.get("end")).indices(rank))),)


def _dims_transposed(node: NodeProto, attributes: dict[str, Any], facts: Facts) -> tuple[int | None, ...] | None:
    order, dims = attributes.get("perm"), facts.dims(node.input[0])
    return tuple(dims[axis] for axis in order) if order and dims is not None and len(order) == len(dims) else None


def _dims_reshaped(node: NodeProto, attributes: dict[str, Any], facts: Facts) -> tuple[int | None, ...] | None:
    shape = facts.value(node.input[1]) if len(node.input) > 1 else None
    if shape is None or shape.ndim != 1:
        return None
    return tuple(int(size) if size > 0 else None for size in shape)


def _dims_joined(node: NodeProto, attributes: dict[str, Any], facts: Facts) -> tuple[int | None, ...] | None:
    parts = [facts.dims(name) for name in node.input]
    known = [dims for dims in parts if dims is not None]
    if len(known) != len(parts) or len({len(dims) for dims in known}) != 1 or not known[0]:
        return None
    axis = attributes.get("axis", 0) % len(known[0])
    along = [dims[axis] for dims in known]
    joined = list(known[0])
    joined[axis] = None if None in along else sum(size or 0 for size in along)
    return tuple(joined)


def _dims_broadcast(node: NodeProto, attributes: dict[str, Any], facts: Facts) -> tuple[int | None, ...] | None:
    parts = [facts.dims(name) for name in node.input]
    known = [dims for dims in parts if dims is not None]
    if len(known) != len(parts) or not known:
        return None
    rank = max(len(dims) for dims in known)
    padded = [(1,) * (rank - len(dims)) + tuple(dims) for dims in known]
    return tuple(_broadcast_size(sizes) for sizes in zip(*padded, strict=True))


def _broadcast_size(sizes: tuple[int | None, ...]) -> int | None:
    """A size that is not 1 decides; one that is not known might be it, or 1."""
    decided = [size for size in sizes if size is not None and size != 1]
    if decided:
        return decided[0]
    return None if None in sizes else 1


def _dims_extended(node: NodeProto, attributes: dict[str, Any], facts: Facts) -> tuple[int | None, ...] | None:
    dims = facts.dims(node.input[0])
    axes = _axes_of(node, attributes, facts)
    if dims is None or axes is None:
        return None
    places = {axis % (len(dims) + len(axes)) for axis in axes}
    rest = iter(dims)
    return tuple(1 if place in places else next(rest) for place in range(len(dims) + len(axes)))


def _dims_sliced(node: NodeProto, attributes: dict[str, Any], facts: Facts) -> tuple[int | None, ...] | None:
    """Of a list, which is what shapes are sliced of."""
    dims = facts.dims(node.input[0])
    if dims is None or len(dims) != 1 or dims[0] is None:
        return None
    values = [facts.value(name) if name else np.ones(1) for name in node.input[1:]]
    found = [attributes[name] for name in ("starts", "ends") if name in attributes]
    bounds = found or [None if value is None else value.reshape(-1) for value in values[:2]]
    step = values[3] if len(values) > 3 else np.ones(1)
    if len(bounds) != 2 or bounds[0] is None or bounds[1] is None or step is None:
        return None
    return (len(range(*slice(int(bounds[0][0]), int(bounds[1][0]), int(step.reshape(-1)[0])).indices(dims[0]))),)


_DIMS: dict[str, Callable[[NodeProto, dict[str, Any], Facts], tuple[int | None, ...] | None]] = {
    "Shape": _dims_of_shape,
    "Constant": lambda node, attributes, facts: tuple(attributes["value"].dims) if "value" in attributes else None,
    "Transpose": _dims_transposed,
    "Reshape": _dims_reshaped,
    "Concat": _dims_joined,
    "Unsqueeze": _dims_extended,
    "Slice": _dims_sliced,
    **dict.fromkeys(_BROADCAST, _dims_broadcast),
}


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
    if node.op_type == "Range":
        return 1
    if node.op_type == "MatMul":
        return _multiplied(facts.rank(node.input[0]), facts.rank(node.input[1]))
    if node.op_type == "Gather":
        data, indices = facts.rank(node.input[0]), facts.rank(node.input[1])
        return data + indices - 1 if data is not None and indices is not None else None
    if node.op_type.startswith(("Reduce", "Arg")):
        return _reduced(node, attributes, facts)
    return None


def _multiplied(one: int | None, other: int | None) -> int | None:
    """The rank of a product of matrices: a list counts as a row or column, which is gone behind it."""
    if one is None or other is None:
        return None
    return max(one, other, 2) - (one == 1) - (other == 1)


def _reduced(node: NodeProto, attributes: dict[str, object], facts: Facts) -> int | None:
    if _leaves_a_scalar(node, attributes, facts):
        return 0
    rank = facts.rank(node.input[0])
    if rank is None or attributes.get("keepdims", 1):
        return rank
    if node.op_type.startswith("Arg"):
        return rank - 1
    axes = _axes_of(node, attributes, facts)
    return None if not axes else rank - len(axes)


def _leaves_a_scalar(node: NodeProto, attributes: dict[str, object], facts: Facts) -> bool:
    """Whether a reduction is over all axes, which is what no axes mean, and keeps none of them."""
    if attributes.get("keepdims", 1) or node.op_type.startswith("Arg") or "axes" in attributes:
        return False
    value = facts.value(node.input[1]) if len(node.input) > 1 and node.input[1] else np.empty(0)
    return value is not None and not value.size and not attributes.get("noop_with_empty_axes", 0)


def _axes_of(node: NodeProto, attributes: dict[str, Any], facts: Facts) -> list[int] | None:
    """Axes, as an attribute or a known input; None if they are not known."""
    if "axes" in attributes:
        return [int(axis) for axis in attributes["axes"]]
    value = facts.value(node.input[1]) if len(node.input) > 1 and node.input[1] else None
    return None if value is None else [int(axis) for axis in value.reshape(-1)]


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
    rank, axes = facts.rank(node.input[0]), _axes_of(node, attributes, facts)
    if rank is None or axes is None:
        return None
    return rank + (len(axes) if node.op_type == "Unsqueeze" else -len(axes))
