"""A model as ONNX text to read, with large tensors left out."""

from __future__ import annotations

from onnx import ModelProto, TensorProto

from onnxbench.core.tensors import is_external, tensors
from onnxbench.core.text import readable
from onnxbench.inspecting.header import elements

_SHOWN = 16  # elements


def elided_text(proto: ModelProto, *, timeout: float | None = 20.0, memory: int | None = None) -> str | None:
    """The text; tensors of more than 16 elements, and external ones, keep their type and dims only. None if it fails.

    What is left out is no longer a valid tensor, so the text is for reading; `onnxbench`'s other commands write text that
    reads back.
    """
    copy = ModelProto()
    copy.CopyFrom(proto)
    for tensor in tensors(copy):
        if elements(tensor) > _SHOWN or is_external(tensor):
            _elide(tensor)
    return readable(copy, timeout=timeout, memory=memory)


def _elide(tensor: TensorProto) -> None:
    for data in ("raw_data", "external_data", "data_location", "float_data", "int32_data", "int64_data", "double_data"):
        tensor.ClearField(data)
    for data in ("string_data", "uint64_data"):
        tensor.ClearField(data)
