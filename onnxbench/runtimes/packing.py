"""Values on their way between processes, whose numpy and ml_dtypes may differ.

A packed value is plain Python: ("tensor", element type, shape, bytes), ("map", element type, shape, path, offset) for
one that lies in a file, ("strings", shape, list), ("list", items) for a sequence, None for an empty optional. Bytes are
as in `TensorProto.raw_data`, so elements below a byte are packed, low bits first (onnx.proto, "raw_data").

Also imported by older interpreters (see `onnxbench.worker`): numpy only, Python 3.9 syntax.
"""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np

#: TensorProto.DataType of each numpy dtype name, those of ml_dtypes included.
ELEMENT_TYPES = {
    "float32": 1,
    "uint8": 2,
    "int8": 3,
    "uint16": 4,
    "int16": 5,
    "int32": 6,
    "int64": 7,
    "bool": 9,
    "float16": 10,
    "float64": 11,
    "uint32": 12,
    "uint64": 13,
    "complex64": 14,
    "complex128": 15,
    "bfloat16": 16,
    "float8_e4m3fn": 17,
    "float8_e4m3fnuz": 18,
    "float8_e5m2": 19,
    "float8_e5m2fnuz": 20,
    "uint4": 21,
    "int4": 22,
    "float4_e2m1fn": 23,
    "float8_e8m0fnu": 24,
    "uint2": 25,
    "int2": 26,
}
DTYPE_NAMES = {number: name for name, number in ELEMENT_TYPES.items()}
STRING = 8
#: Bits of the element types that share bytes.
BITS = {21: 4, 22: 4, 23: 4, 25: 2, 26: 2}
#: Element types that plain numpy cannot hold, with the unsigned type that carries their bits.
CARRIERS = {16: "uint16", 17: "uint8", 18: "uint8", 19: "uint8", 20: "uint8", 24: "uint8"}

_INLINE = 64 * 1024  # bytes; larger results are spilled when there is a place for them


class Raw:
    """A tensor whose elements the numpy at hand has no type for, by its bytes."""

    def __init__(self, element: int, shape: tuple[int, ...], data: bytes) -> None:
        self.element, self.shape, self.data = element, shape, data


def pack(value: Any) -> Any:
    """A value as plain Python; memory-mapped arrays stay in their files."""
    if value is None:
        return None
    if isinstance(value, Raw):
        return ("tensor", value.element, value.shape, value.data)
    if isinstance(value, (list, tuple)):
        return ("list", [pack(item) for item in value])
    if isinstance(value, dict):  # a map of ai.onnx.ml: its keys and its values, in the order of the keys
        keys = sorted(value)
        return ("list", [pack(np.asarray(keys)), pack(np.asarray([value[key] for key in keys]))])
    array = np.asarray(value) if not isinstance(value, np.ndarray) else value
    if array.dtype.kind in "OUST":
        return ("strings", array.shape, [_text(item) for item in array.ravel()])
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    element = ELEMENT_TYPES.get(array.dtype.name, 0)
    if not element:
        raise TypeError(f"ONNX has no element type for {array.dtype}")
    if element not in BITS and isinstance(array, np.memmap) and _is_in_file(array):
        return ("map", element, array.shape, str(array.filename), _offset(array))
    return ("tensor", element, array.shape, to_bytes(array))


def _is_in_file(array: np.memmap) -> bool:
    """Whether the file under an array holds its elements, one after the other."""
    mapped = array.filename is not None and array.mode != "c"
    return mapped and array.size > 0 and array.flags.c_contiguous


def _offset(array: np.memmap) -> int:
    """Where a mapped array begins in its file; `array.offset` is that of the array it was sliced from."""
    mapped = np.frombuffer(array._mmap, np.uint8)  # type: ignore[attr-defined]
    start = array.offset - array.offset % mmap.ALLOCATIONGRANULARITY
    return start + array.ctypes.data - mapped.ctypes.data


def _text(item: Any) -> str:
    return item.decode("utf-8", "surrogateescape") if isinstance(item, bytes) else str(item)


def to_bytes(array: np.ndarray) -> bytes:
    """The elements as in `TensorProto.raw_data`."""
    bits = BITS.get(ELEMENT_TYPES[array.dtype.name], 0)
    if not bits:
        return array.tobytes()
    return squeeze_bits(np.frombuffer(array.tobytes(), np.uint8), bits).tobytes()


def squeeze_bits(elements: np.ndarray, bits: int) -> np.ndarray:
    """Bytes that hold several small elements each, from bytes that hold one each."""
    per_byte = 8 // bits
    padded = np.zeros(-(-elements.size // per_byte) * per_byte, np.uint8)
    padded[: elements.size] = elements & ((1 << bits) - 1)
    parts = padded.reshape(-1, per_byte)
    packed = np.zeros(len(parts), np.uint8)
    for i in range(per_byte):
        packed |= parts[:, i] << (bits * i)
    return packed


def unpack(packed: Any) -> Any:
    """The value again; element types that need it come as ml_dtypes arrays.

    Raises:
        ImportError: ml_dtypes is needed and not here.
    """
    if packed is None:
        return None
    if packed[0] == "list":
        return [unpack(item) for item in packed[1]]
    if packed[0] == "strings":
        array = np.empty(len(packed[2]), object)
        array[:] = packed[2]
        return array.reshape(packed[1])
    element, shape = packed[1], tuple(packed[2])
    if packed[0] == "map":
        dtype = _dtype(element)
        if 0 in shape:
            return np.zeros(shape, dtype)
        raw = np.memmap(packed[3], np.uint8, "r", packed[4], int(np.prod(shape, dtype=np.int64)) * dtype.itemsize)
        return raw.view(dtype).reshape(shape)
    return from_bytes(element, shape, packed[3])


def from_bytes(element: int, shape: tuple[int, ...], data: bytes) -> np.ndarray:
    """An array from `raw_data` bytes; the result may be read-only."""
    dtype, bits = _dtype(element), BITS.get(element, 0)
    if not bits:
        return np.frombuffer(data, dtype).reshape(shape)
    raw = np.frombuffer(data, np.uint8)
    parts = np.stack([(raw >> (bits * i)) & ((1 << bits) - 1) for i in range(8 // bits)], axis=1).ravel()
    count = int(np.prod(shape, dtype=np.int64))
    elements = parts[:count].astype(np.uint8)
    if dtype.name.startswith("int"):
        signed = elements.astype(np.int8)
        return np.where(signed >= 1 << (bits - 1), signed - (1 << bits), signed).astype(dtype).reshape(shape)
    if dtype.name.startswith("uint"):
        return elements.astype(dtype).reshape(shape)
    return elements.view(dtype).reshape(shape)


def _dtype(element: int) -> np.dtype[Any]:
    name = DTYPE_NAMES[element]
    try:
        found: np.dtype[Any] = np.dtype(name)
    except TypeError:
        import ml_dtypes

        found = np.dtype(getattr(ml_dtypes, name))
    return found


def spill(packed: Any, place: str | None) -> Any:
    """The packed value with large tensors moved to the end of the file `place`; unchanged without a place."""
    if place is None or packed is None or packed[0] in ("strings", "map"):
        return packed
    if packed[0] == "list":
        return ("list", [spill(item, place) for item in packed[1]])
    _, element, shape, data = packed
    if len(data) <= _INLINE or element in BITS:
        return packed
    with open(place, "ab") as file:  # noqa: PTH123
        offset = file.tell()
        padding = -offset % 64
        file.write(b"\0" * padding)
        file.write(data)
    return ("map", element, shape, place, offset + padding)
