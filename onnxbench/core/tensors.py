"""What a tensor says of itself: where tensors hide in a model, and how many bytes each must have.

Nothing here allocates by what a file claims: sizes are computed and compared before anybody reads a payload.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from math import prod

import numpy as np
from onnx import AttributeProto, GraphProto, ModelProto, SparseTensorProto, TensorProto, helper

from onnxbench.errors import ModelError, quote

#: Types whose elements are smaller than a byte, packed from the low bits on. Looked up by name: older onnx lacks some.
_PACKED = {"INT4": 4, "UINT4": 4, "FLOAT4E2M1": 4, "INT2": 2, "UINT2": 2, "FLOAT6E2M3": 6, "FLOAT6E3M2": 6}
_LARGEST = 2**63 - 1
_NUMBERS_AND_TEXT = frozenset(
    {
        AttributeProto.INT,
        AttributeProto.INTS,
        AttributeProto.FLOAT,
        AttributeProto.FLOATS,
        AttributeProto.STRING,
        AttributeProto.STRINGS,
    }
)


def tensors(model: ModelProto) -> Iterator[TensorProto]:
    """Every tensor of a model: initializers, sparse ones, attributes; of bodies, functions and training graphs too."""
    yield from _of_graph(model.graph)
    for function in model.functions:
        yield from _of_attributes(function.attribute_proto)
        for node in function.node:
            yield from _of_attributes(node.attribute)
    for training in model.training_info:
        yield from _of_graph(training.initialization)
        yield from _of_graph(training.algorithm)


def _of_graph(graph: GraphProto) -> Iterator[TensorProto]:
    yield from graph.initializer
    for sparse in graph.sparse_initializer:
        yield from _of_sparse(sparse)
    for node in graph.node:
        if node.attribute:  # which most nodes of a large graph have not
            yield from _of_attributes(node.attribute)


def _of_attributes(attributes: Iterable[AttributeProto]) -> Iterator[TensorProto]:
    for attribute in attributes:
        if attribute.type in _NUMBERS_AND_TEXT:  # what most are
            continue
        if attribute.HasField("t"):
            yield attribute.t
        yield from attribute.tensors
        for sparse in (attribute.sparse_tensor, *attribute.sparse_tensors):
            yield from _of_sparse(sparse)
        for graph in (attribute.g, *attribute.graphs):
            yield from _of_graph(graph)


def _of_sparse(sparse: SparseTensorProto) -> Iterator[TensorProto]:
    if sparse.HasField("values"):
        yield sparse.values
    if sparse.HasField("indices"):
        yield sparse.indices


def is_external(tensor: TensorProto) -> bool:
    """Whether the bytes lie in another file."""
    return tensor.data_location == TensorProto.EXTERNAL


def label(tensor: TensorProto, model_label: str) -> str:
    """How messages name the tensor."""
    return f"tensor {quote(tensor.name)} of {model_label}" if tensor.name else f"an unnamed tensor of {model_label}"


def element_count(tensor: TensorProto, model_label: str) -> int:
    """The number of elements that `dims` promise.

    Raises:
        ModelError: OB306 for a negative dimension, or a product that no 64-bit integer holds.
    """
    if any(dim < 0 for dim in tensor.dims):
        raise _invalid(tensor, model_label, f"has a negative dimension: {list(tensor.dims)}")
    count: int = prod(tensor.dims)
    if count > _LARGEST:
        raise _invalid(tensor, model_label, f"has more elements than 64 bits can count: {list(tensor.dims)}")
    return count


def byte_count(tensor: TensorProto, model_label: str) -> int:
    """The number of raw bytes that `dims` and `data_type` promise.

    Raises:
        ModelError: OB306 if the shape is impossible, the type unknown, or without raw bytes (strings).
    """
    count = element_count(tensor, model_label)
    bits = element_bits(tensor.data_type)
    if bits is None:
        raise _invalid(tensor, model_label, f"has no raw bytes: its data_type is {type_name(tensor.data_type)}")
    return (count * bits + 7) // 8


@cache
def element_bits(data_type: int) -> int | None:
    """Bits of one element in raw bytes; None for strings and for types that this onnx does not know."""
    name = type_name(data_type)
    if name in _PACKED:
        return _PACKED[name]
    if name == "STRING" or data_type not in helper.get_all_tensor_dtypes():
        return None
    size: int = np.dtype(helper.tensor_dtype_to_np_dtype(data_type)).itemsize
    return size * 8


def type_name(data_type: int) -> str:
    """The name of an element type, or its number if it has none."""
    known = TensorProto.DataType.values()
    return str(TensorProto.DataType.Name(data_type)) if data_type in known else str(data_type)


def validate_embedded(tensor: TensorProto, model_label: str) -> None:
    """Refuse a tensor whose embedded payload is not the size that its shape and type promise.

    Raises:
        ModelError: OB306, naming the tensor.
    """
    count = element_count(tensor, model_label)
    bits = element_bits(tensor.data_type)
    is_string = tensor.data_type == TensorProto.STRING
    if bits is None and not is_string:
        raise _invalid(tensor, model_label, f"has an unknown data_type: {type_name(tensor.data_type)}")
    if tensor.HasField("segment"):
        raise _invalid(tensor, model_label, "is split into segments, which no runtime reads")
    found = _typed_fields(tensor)
    if tensor.HasField("raw_data"):
        wanted = -1 if bits is None else (count * bits + 7) // 8
        _compare(tensor, model_label, "bytes of raw_data", len(tensor.raw_data), wanted)
        if found:
            raise _invalid(tensor, model_label, f"has two payloads: raw_data and {', '.join(found)}")
        return
    field = helper.tensor_dtype_to_field(tensor.data_type)
    if set(found) - {field}:
        raise _invalid(tensor, model_label, f"keeps its data in {', '.join(found)} instead of {field}")
    _compare(tensor, model_label, f"entries of {field}", len(getattr(tensor, field)), _entries(tensor, count))


def _entries(tensor: TensorProto, count: int) -> int:
    """How many entries of its typed field hold `count` elements."""
    if tensor.data_type in (TensorProto.COMPLEX64, TensorProto.COMPLEX128):
        return 2 * count
    bits = _PACKED.get(type_name(tensor.data_type), 8)
    return count if 8 % bits else (count * bits + 7) // 8  # six-bit elements get an entry each


def _typed_fields(tensor: TensorProto) -> list[str]:
    fields = ("float_data", "int32_data", "string_data", "int64_data", "double_data", "uint64_data")
    return [field for field in fields if len(getattr(tensor, field))]


def _compare(tensor: TensorProto, model_label: str, unit: str, found: int, wanted: int) -> None:
    if wanted < 0:
        raise _invalid(tensor, model_label, f"of type {type_name(tensor.data_type)} cannot be stored as raw_data")
    if found != wanted:
        shape = "x".join(map(str, tensor.dims)) or "scalar"
        raise _invalid(
            tensor,
            model_label,
            f"has {found} {unit}; {type_name(tensor.data_type)} {shape} needs {wanted}",
        )


def _invalid(tensor: TensorProto, model_label: str, fact: str) -> ModelError:
    hint = "the file may be truncated or written by a broken exporter: export the model again"
    return ModelError("OB306", f"{label(tensor, model_label)} {fact}", hint=hint)
