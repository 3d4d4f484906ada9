"""A model as text to read, printed in a worker: ONNX's printer may fail or die on a broken model."""

from __future__ import annotations

from onnx import ModelProto

from onnxbench import isolate


def readable(proto: ModelProto, *, timeout: float | None = 20.0, memory: int | None = None) -> str | None:
    """The model in ONNX text; None if it cannot be printed."""
    result = isolate.call_light(print_text, (proto.SerializeToString(),), timeout=timeout, memory=memory)
    return str(result.value) if isinstance(result, isolate.Ok) else None


def print_text(serialized: bytes) -> str:
    """ONNX's printer on a serialized model; for a worker."""
    from onnx import printer

    return printer.to_text(ModelProto.FromString(serialized))


def reads_back(text: str) -> bool:
    """Whether ONNX's parser makes of a text what is printed as the same text; it does not take every name."""
    result = isolate.call_light(_print_again, (text,), timeout=20.0)
    return isinstance(result, isolate.Ok) and result.value == text


def _print_again(text: str) -> str:
    from onnx import parser, printer

    return printer.to_text(parser.parse_model(text))
