"""The bytes and values of a tensor, read only when somebody needs them."""

from __future__ import annotations

import mmap
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx.numpy_helper
from onnx import TensorProto, helper

from onnxbench.core.external import Weight as Weight
from onnxbench.core.external import locate as locate
from onnxbench.core.external import read
from onnxbench.core.slimming import fatten as fatten
from onnxbench.core.slimming import slim as slim
from onnxbench.core.tensors import element_bits, is_external, label, type_name, validate_embedded
from onnxbench.errors import ModelError

if TYPE_CHECKING:
    from onnxbench.core.model import Model

#: External payloads beyond this are mapped instead of read: a 3 GB weight then costs no memory until it is looked at.
_MAPPED = 16 * 1024 * 1024


def tensor_bytes(model: Model, tensor: TensorProto) -> bytes | memoryview:
    """A tensor's payload as `raw_data` holds it: little-endian, small elements packed.

    Raises:
        ModelError: OB306 if the tensor is invalid or holds strings; OB304 if its external data is not to be had.
    """
    if is_external(tensor):
        return _read(locate(model, tensor))
    validate_embedded(tensor, model.label)
    if tensor.HasField("raw_data"):
        return tensor.raw_data
    if tensor.data_type == TensorProto.STRING:
        raise ModelError("OB306", f"{label(tensor, model.label)} holds strings, which have no raw bytes")
    return _pack(tensor)


def array(model: Model, tensor: TensorProto) -> np.ndarray[Any, Any]:
    """A tensor's values, as `onnx.numpy_helper.to_array` gives them; large external ones are mapped, read-only.

    Raises:
        ModelError: OB306 if the tensor is invalid; OB304 if its external data is not to be had.
    """
    if not is_external(tensor):
        validate_embedded(tensor, model.label)
        return _to_array(model, tensor)
    payload = tensor_bytes(model, tensor)
    dtype = np.dtype(helper.tensor_dtype_to_np_dtype(tensor.data_type))
    if element_bits(tensor.data_type) == dtype.itemsize * 8:
        return np.frombuffer(payload, dtype).reshape(tuple(tensor.dims))
    packed = TensorProto(data_type=tensor.data_type, dims=tensor.dims, raw_data=bytes(payload))
    return _to_array(model, packed)


def _to_array(model: Model, tensor: TensorProto) -> np.ndarray[Any, Any]:
    try:
        return onnx.numpy_helper.to_array(tensor)
    except (ValueError, TypeError, OverflowError) as error:
        kind = type_name(tensor.data_type)
        raise ModelError("OB306", f"{label(tensor, model.label)} does not hold {kind} values: {error}") from error


def _pack(tensor: TensorProto) -> bytes:
    """Raw bytes of a tensor that keeps its values in a typed list."""
    bits = element_bits(tensor.data_type)
    if bits is not None and 8 % bits == 0 and bits < 8:  # the list holds packed bytes already
        return bytes(entry & 255 for entry in tensor.int32_data)
    values = onnx.numpy_helper.to_array(tensor)
    if bits == 8 * values.dtype.itemsize:
        return values.tobytes()
    return onnx.numpy_helper.from_array(values).raw_data


def _read(weight: Weight) -> bytes | memoryview:
    if weight.length <= _MAPPED:
        return read(weight)
    with weight.file.open("rb") as file:
        before = weight.offset % mmap.ALLOCATIONGRANULARITY
        mapped = mmap.mmap(
            file.fileno(), before + weight.length, offset=weight.offset - before, access=mmap.ACCESS_READ
        )
        return memoryview(mapped)[before:]
