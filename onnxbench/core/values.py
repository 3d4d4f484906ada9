"""What a value is in memory, and how its NumPy dtype and ONNX element type answer each other."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np
from onnx import SparseTensorProto, TensorProto, TypeProto, helper

#: A tensor (bf16, fp8 and int4 as ml_dtypes arrays, strings as object arrays of str), a sequence, or an empty optional.
Value: TypeAlias = "np.ndarray[Any, np.dtype[Any]] | list[Value] | None"

Array: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"
Dtype: TypeAlias = "np.dtype[Any]"

_COMPLEX_PARTS: dict[Dtype, Dtype] = {
    np.dtype(np.complex64): np.dtype(np.float32),
    np.dtype(np.complex128): np.dtype(np.float64),
}


@cache
def _dtypes() -> dict[int, Dtype]:
    """The dtype by element type, for every type that the installed onnx knows."""
    known = (code for code in TensorProto.DataType.values() if code != TensorProto.UNDEFINED)
    return {code: np.dtype(helper.tensor_dtype_to_np_dtype(code)) for code in known}


@cache
def _element_types() -> dict[Dtype, int]:
    found = {dtype: code for code, dtype in _dtypes().items()}
    found[np.dtype(object)] = TensorProto.STRING
    return found


def dtype_of(element_type: int) -> Dtype | None:
    """The dtype of a TensorProto element type; None for one that the installed onnx does not know."""
    return _dtypes().get(element_type)


def element_type(dtype: Dtype) -> int | None:
    """The TensorProto element type of a dtype; None if ONNX has none. NumPy's own string dtypes are STRING."""
    if dtype.kind in "UST":
        return int(TensorProto.STRING)
    return _element_types().get(dtype.newbyteorder("="))


def dtype_name(dtype: Dtype) -> str:
    """How messages and selections call a dtype: `float16`, `bfloat16`, `int4`, `string`."""
    return "string" if dtype.kind in "OUST" else dtype.name


def is_narrow(dtype: Dtype) -> bool:
    """Whether the dtype is one of ml_dtypes: npz files cannot hold it faithfully."""
    return type(dtype).__module__.partition(".")[0] != "numpy" or dtype.type.__module__.startswith("ml_dtypes")


def is_float(dtype: Dtype) -> bool:
    """Whether the dtype is a real floating-point type, ml_dtypes included."""
    if not is_narrow(dtype):
        return dtype.kind == "f"
    try:
        step(dtype)
    except (TypeError, ValueError):
        return False
    return True


def step(dtype: Dtype) -> float:
    """The distance from 1 to the next number of a floating-point dtype."""
    return float(ml_dtypes.finfo(dtype).eps)  # type: ignore[no-untyped-call]


def is_integer(dtype: Dtype) -> bool:
    """Whether the dtype is an integer type, int4 and its kin included; bool is none."""
    return dtype.kind in "iu" or (is_narrow(dtype) and not is_float(dtype))


def part_of(dtype: Dtype) -> Dtype:
    """The dtype of the parts of a complex number; any other dtype itself."""
    part: Dtype = _COMPLEX_PARTS.get(dtype, dtype)
    return part


def integer_limits(dtype: Dtype) -> tuple[int, int]:
    """The smallest and largest number of an integer dtype."""
    limits: Any = ml_dtypes.iinfo(dtype) if is_narrow(dtype) else np.iinfo(dtype)  # type: ignore[no-untyped-call]
    return int(limits.min), int(limits.max)


def tensor_type(value_type: TypeProto) -> TypeProto.Tensor | TypeProto.SparseTensor | None:
    """The tensor inside a type: itself, or the element of a sequence or optional, at any depth."""
    kind = value_type.WhichOneof("value")
    if kind == "sequence_type":
        return tensor_type(value_type.sequence_type.elem_type)
    if kind == "optional_type":
        return tensor_type(value_type.optional_type.elem_type)
    if kind == "tensor_type":
        return value_type.tensor_type
    return value_type.sparse_tensor_type if kind == "sparse_tensor_type" else None


def dtype_in(value_type: TypeProto) -> Dtype | None:
    """The dtype of the elements that a type holds; None if it says none."""
    tensor = tensor_type(value_type)
    return None if tensor is None else dtype_of(tensor.elem_type)


def dims_of(tensor: TensorProto | SparseTensorProto) -> Sequence[int]:
    """The dims of a stored tensor, dense or sparse."""
    return tuple(tensor.dims)


def with_str(array: Array) -> Array:
    """String arrays of any NumPy kind as object arrays of `str`; other arrays as they are."""
    if dtype_name(array.dtype) != "string":
        return array
    made = np.empty(array.shape, dtype=object)
    flat = [item.decode("utf-8", "surrogateescape") if isinstance(item, bytes) else str(item) for item in array.flat]
    made.reshape(-1)[:] = flat
    return made
