"""The protobuf wire format: where weights lie inside a model's file, and where a broken file stops making sense.

Python's protobuf copies payloads and tells no positions; runtimes can read a tensor in place, given its offset.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import onnx
from google.protobuf.descriptor import Descriptor

from onnxbench.errors import ModelError, quote

Buffer = bytes | memoryview

#: The fields that lead from a model to the tensors which may be shared, by message; numbers come from onnx itself.
_ROADS = {
    "ModelProto": ("graph", "functions"),
    "FunctionProto": ("node",),
    "GraphProto": ("node", "initializer"),
    "NodeProto": ("attribute",),
    "AttributeProto": ("t", "g", "graphs"),
    "TensorProto": ("raw_data",),
}
#: Messages inside each other, at most, for protobuf to read them.
_DEEPEST = 100
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


class Malformed(ValueError):
    """The bytes are not protobuf from `position` on."""

    def __init__(self, position: int, claims: int = 0) -> None:
        super().__init__(position, claims)
        self.position, self.claims = position, claims


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a message. `start:stop` is its payload (of a length-delimited field), `begin` its first byte."""

    number: int
    wire_type: int
    begin: int
    start: int
    stop: int


def fields(buffer: Buffer, begin: int, stop: int) -> Iterator[Field]:
    """The fields of the message that fills `buffer[begin:stop]`, without reading their payloads.

    Raises:
        Malformed: at the first byte that cannot be a field; `claims` is the end it asks for beyond `stop`.
    """
    position = begin
    while position < stop:
        first = position
        tag = buffer[position]
        position += 1
        if tag >= 128:
            tag, position = _varint(buffer, first, stop)
        wire_type = tag & 7
        start = position
        if wire_type == _BYTES:
            length, start = _varint(buffer, position, stop)
            position = start + length
        elif wire_type == _VARINT:
            _, position = _varint(buffer, position, stop)
        elif wire_type in (_FIXED64, _FIXED32):
            position += 8 if wire_type == _FIXED64 else 4
        else:
            raise Malformed(first)
        if tag < 8:
            raise Malformed(first)
        if position > stop:
            raise Malformed(first, claims=position)
        yield Field(tag >> 3, wire_type, first, start, position)


def _varint(buffer: Buffer, position: int, stop: int) -> tuple[int, int]:
    value = shift = 0
    first = position
    while position < stop and shift < 70:
        byte = buffer[position]
        position += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, position
        shift += 7
    raise Malformed(first, claims=stop + 1 if position >= stop else 0)


def payloads(buffer: Buffer, threshold: int) -> Iterator[tuple[int, int]]:
    """Offset and length of each raw_data larger than `threshold` in a serialized model, in file order.

    Linear, and with a stack of its own: bodies nest deeper than Python would like to recurse.

    Raises:
        Malformed: if the bytes are not a serialized model.
    """
    model = onnx.ModelProto.DESCRIPTOR
    stack = [(model, fields(buffer, 0, len(buffer)))]
    while stack:
        descriptor, pending = stack[-1]
        roads = _roads(descriptor)
        for field in pending:
            if field.wire_type != _BYTES or field.number not in roads or field.stop - field.start <= threshold:
                continue
            child = roads[field.number]
            if child is None:
                yield field.start, field.stop - field.start
                continue
            stack.append((child, fields(buffer, field.start, field.stop)))
            break
        else:
            stack.pop()


def without_payloads(buffer: Buffer, threshold: int, mark: bytes) -> tuple[bytes, list[tuple[int, int]]]:
    """A serialized model whose large raw_data are `mark` and their number; and where each of those payloads lies.

    Args:
        buffer: the serialized model.
        threshold: bytes up to which a payload stays.
        mark: bytes that nothing in the model begins with.

    Returns:
        The short serialized model, and offset and length of each payload in `buffer`, by number.

    Raises:
        Malformed: if the bytes are not a serialized model, or nest deeper than protobuf allows.
    """
    places: list[tuple[int, int]] = []

    def rebuilt(descriptor: Descriptor, begin: int, stop: int, depth: int) -> list[Buffer]:
        if depth > _DEEPEST:
            raise Malformed(begin)
        roads, pieces, copied = _roads(descriptor), [], begin
        for field in fields(buffer, begin, stop):
            if field.wire_type != _BYTES or field.number not in roads or field.stop - field.start <= threshold:
                continue
            child = roads[field.number]
            if child is None:
                content: list[Buffer] = [mark, len(places).to_bytes(4, "big")]
                places.append((field.start, field.stop - field.start))
            else:
                content = rebuilt(child, field.start, field.stop, depth + 1)
            pieces += [buffer[copied : field.begin], _to_varint(field.number << 3 | _BYTES)]
            pieces += [_to_varint(sum(map(len, content))), *content]
            copied = field.stop
        return [*pieces, buffer[copied:stop]]

    return b"".join(rebuilt(onnx.ModelProto.DESCRIPTOR, 0, len(buffer), 1)), places


def _to_varint(value: int) -> bytes:
    made = bytearray()
    while value > 127:
        made.append(value & 127 | 128)
        value >>= 7
    made.append(value)
    return bytes(made)


@cache
def _roads(descriptor: Descriptor) -> dict[int, Descriptor | None]:
    """The field numbers worth entering, with the message type behind each; None for the payload itself."""
    by_name = descriptor.fields_by_name
    return {by_name[name].number: by_name[name].message_type for name in _ROADS[descriptor.name]}


def explain(data: bytes, label: str) -> ModelError:
    """Why a model that protobuf refused could not be read: cut short, followed by garbage, or no model at all."""
    graph_stop = None
    try:
        for field in fields(data, 0, len(data)):
            if field.number == onnx.ModelProto.GRAPH_FIELD_NUMBER and field.wire_type == _BYTES:
                graph_stop = field.stop
    except Malformed as fault:
        return _explain_fault(data, label, fault, graph_stop)
    hint = "the bytes inside the graph are damaged: fetch or export the file again"
    if graph_stop is None:
        hint = "onnxbench reads .onnx, .pb, .onnxtxt, .json and .textproto, by suffix"
    return ModelError("OB302", f"{label} is not a readable ONNX model", hint=hint)


def _explain_fault(data: bytes, label: str, fault: Malformed, graph_stop: int | None) -> ModelError:
    if graph_stop is not None:
        fact = f"{label} holds a model, and garbage from byte {fault.position} on"
        return ModelError(
            "OB302", fact, hint=f"fetch the file again, or cut it: head -c {fault.position} {quote(label)}"
        )
    tag = data[fault.position] if fault.position < len(data) else 0
    if fault.claims > len(data) and tag >> 3 == onnx.ModelProto.GRAPH_FIELD_NUMBER and tag & 7 == _BYTES:
        fact = f"{label} is cut short: its graph ends at byte {fault.claims}, the file at byte {len(data)}"
        return ModelError("OB302", fact, hint="the download or export was interrupted: fetch the file again")
    hint = "onnxbench reads .onnx, .pb, .onnxtxt, .json and .textproto, by suffix"
    return ModelError("OB302", f"{label} is not an ONNX model: no protobuf from byte {fault.position} on", hint=hint)
