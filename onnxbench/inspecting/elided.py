"""A model as ONNX text to read, with large tensors left out."""

from __future__ import annotations

from collections.abc import Iterator

from onnx import AttributeProto, ModelProto, TensorProto

from onnxbench.core.attributes import all_nodes
from onnxbench.core.tensors import is_external, tensors
from onnxbench.core.text import readable
from onnxbench.inspecting.header import elements

_SHOWN = 16  # elements


def elided_text(proto: ModelProto, *, timeout: float | None = 20.0, memory: int | None = None) -> str | None:
    """The text; tensors of more than 16 elements, and external ones, keep their type and dims only. None if it fails.

    Strings that are no UTF-8 have backslashes and hexadecimal digits in place of the bytes that are no text.

    What is left out is no longer a valid tensor, so the text is for reading; `onnxbench`'s other commands write text that
    reads back.
    """
    copy = ModelProto()
    copy.CopyFrom(proto)
    for tensor in tensors(copy):
        if elements(tensor) > _SHOWN or is_external(tensor):
            _elide(tensor)
        elif tensor.string_data:
            tensor.string_data[:] = [_as_text(data) for data in tensor.string_data]
    for attribute in _attributes(copy):
        if attribute.s:
            attribute.s = _as_text(attribute.s)
        if attribute.strings:
            attribute.strings[:] = [_as_text(data) for data in attribute.strings]
    return readable(copy, timeout=timeout, memory=memory)


def _elide(tensor: TensorProto) -> None:
    for data in ("raw_data", "external_data", "data_location", "float_data", "int32_data", "int64_data", "double_data"):
        tensor.ClearField(data)
    for data in ("string_data", "uint64_data"):
        tensor.ClearField(data)


def _as_text(data: bytes) -> bytes:
    return data.decode("utf-8", "backslashreplace").encode()


def _attributes(proto: ModelProto) -> Iterator[AttributeProto]:
    """Those of all nodes, in bodies and functions too, and the defaults of functions."""
    for function in proto.functions:
        yield from function.attribute_proto
    for node in all_nodes(proto):
        yield from node.attribute
