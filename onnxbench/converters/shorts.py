"""The values of what nodes make, where they are short constants: axes and shapes that function bodies count."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import NodeProto, TensorProto, helper

from onnxbench.core.values import Array

if TYPE_CHECKING:
    from onnxbench.converters.facts import Facts

#: As many elements as are counted at most.
_SHORT = 64


def value_made(node: NodeProto, facts: Facts) -> Array | None:
    """The value of the first output, where it is a short constant: axes and shapes that function bodies count."""
    if any(attribute.ref_attr_name or attribute.type == attribute.GRAPH for attribute in node.attribute):
        return None
    given = {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}
    if node.op_type == "Constant":
        return _value_of_constant(given)
    if node.op_type == "Shape":
        dims = facts.dims(node.input[0])
        if dims is None:
            return None
        part = dims[slice(given.get("start"), given.get("end"))]
        return None if None in part else np.asarray(part, np.int64)
    compute = _COUNTED.get(node.op_type)
    if compute is None or len(node.output) != 1:
        return None
    values = [facts.value(name) if name else None for name in node.input]
    known = [value for value in values if value is not None and value.size <= _SHORT]
    if not known or len(known) != len(values):
        return None
    if any(value.dtype.kind not in "iub" for value in known):
        return None
    try:
        with np.errstate(all="ignore"):
            made = compute(known, given)
    except (ValueError, IndexError, TypeError):
        return None
    return made if made is not None and made.size <= _SHORT else None


def _value_of_constant(given: dict[str, Any]) -> Array | None:
    from onnx import numpy_helper

    for name, value in given.items():
        if name == "value" and int(np.prod(value.dims)) <= _SHORT and not value.external_data:
            array = numpy_helper.to_array(value)
            return array if array.dtype.kind in "iubf" else None
        if name in ("value_int", "value_ints"):
            return np.asarray(value, np.int64)
        if name in ("value_float", "value_floats"):
            return np.asarray(value, np.float32)
    return None


def _cast(values: list[Array], given: dict[str, Any]) -> Array | None:
    element = given["to"]
    if element not in (TensorProto.INT64, TensorProto.INT32, TensorProto.BOOL):
        return None
    return values[0].astype(helper.tensor_dtype_to_np_dtype(element))


def _expanded(values: list[Array], given: dict[str, Any]) -> Array:
    axes = given["axes"] if "axes" in given else [int(axis) for axis in values[1].reshape(-1)]
    return np.expand_dims(values[0], tuple(axes))


def _squeezed_value(values: list[Array], given: dict[str, Any]) -> Array:
    axes = given.get("axes") if len(values) == 1 else [int(axis) for axis in values[1].reshape(-1)]
    return np.squeeze(values[0], None if axes is None else tuple(axes))


def _quotient(values: list[Array], _: dict[str, Any]) -> Array | None:
    """Of whole numbers that are not negative: what is cut off is not a matter of sign."""
    top, below = values
    if (top < 0).any() or (below <= 0).any() or top.dtype.kind == "b":
        return None
    return np.asarray(top // below, top.dtype)


_COUNTED: dict[str, Callable[[list[Array], dict[str, Any]], Array | None]] = {
    "Identity": lambda values, _: values[0],
    "Cast": _cast,
    "Concat": lambda values, given: np.concatenate(values, given["axis"]),
    "Unsqueeze": _expanded,
    "Squeeze": _squeezed_value,
    "Gather": lambda values, given: np.asarray(np.take(values[0], values[1], given.get("axis", 0))),
    "Add": lambda values, _: np.asarray(values[0] + values[1]),
    "Sub": lambda values, _: np.asarray(values[0] - values[1]),
    "Mul": lambda values, _: np.asarray(values[0] * values[1]),
    "Div": _quotient,
}
