"""The file formats of a model: protobuf, ONNX text, and protobuf's own JSON and text."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import PurePath
from typing import Literal

import onnx.parser
import onnx.printer
from google.protobuf import json_format, text_format
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError, EncodeError, Message
from google.protobuf.unknown_fields import UnknownFieldSet
from onnx import AttributeProto, ModelProto, NodeProto, TensorProto

from onnxbench.core import wire
from onnxbench.errors import ModelError

Format = Literal["protobuf", "onnxtxt", "json", "textproto"]

_BY_SUFFIX: dict[str, Format] = {".onnxtxt": "onnxtxt", ".json": "json", ".textproto": "textproto"}
#: What protobuf can hold in one message.
LIMIT = 2**31 - 1
#: ONNX's text parser recurses without a limit of its own, and kills the process when the stack ends.
_DEEPEST_TEXT = 500
_LFS = b"version https://git-lfs.github.com/spec/"
_TOO_DEEP = "nests its graphs more than 100 protobuf levels deep (about 33 bodies), and protobuf refuses more"


def of_suffix(path: PurePath) -> Format:
    """The format that a file name asks for; protobuf unless it says otherwise."""
    return _BY_SUFFIX.get(path.suffix.lower(), "protobuf")


def parse(data: bytes, form: Format, label: str) -> ModelProto:
    """The model that `data` holds.

    Raises:
        ModelError: OB302, with what the data is instead where that can be told.
    """
    _refuse_foreign(data, label)
    proto = _parse_protobuf(data, label) if form == "protobuf" else _parse_text(data, form, label)
    if not proto.HasField("graph") or not proto.graph.ListFields():
        hint = "a training or tokenizer file beside the model may have the same suffix"
        raise ModelError("OB302", f"{label} holds no graph", hint=hint)
    bad = _not_unicode(proto)
    if bad is not None:
        hint = "names must be UTF-8 in ONNX: export the model again, or rename it where it was made"
        raise ModelError("OB302", f"{label} has a name or text that is not UTF-8: {bad!r:.80}", hint=hint)
    return proto


def dump(proto: ModelProto, form: Format, label: str) -> bytes:
    """The model in a format. ONNX text may lose something: ask `losses` first.

    Raises:
        ModelError: OB302 if the format cannot hold the model at all.
    """
    try:
        if form == "protobuf":
            return bytes(proto.SerializeToString())
        if form == "json":
            return str(json_format.MessageToJson(proto, preserving_proto_field_name=True)).encode()
        if form == "textproto":
            return str(text_format.MessageToString(proto)).encode()
        return onnx.printer.to_text(proto).encode() + b"\n"
    except (EncodeError, ValueError, RecursionError) as error:
        reason = _TOO_DEEP if _is_about_depth(error) else f"cannot be written as {form}: {_brief(error)}"
        raise ModelError("OB302", f"{label} {reason}", hint="write a .onnx file instead") from error


def _refuse_foreign(data: bytes, label: str) -> None:
    """Name the usual things that come under a model's name."""
    if not data:
        raise ModelError("OB302", f"{label} is empty", hint="the download or export was interrupted: fetch it again")
    if data.startswith(_LFS):
        raise ModelError("OB302", f"{label} is a Git LFS pointer, not the model itself", hint="git lfs pull")
    if data.startswith(b"PK\x03\x04"):
        hint = "unzip it; a PyTorch .pt file is a zip archive too, and must be exported with torch.onnx.export"
        raise ModelError("OB302", f"{label} is a zip archive, not an ONNX model", hint=hint)
    if data.startswith(b"\x1f\x8b"):
        raise ModelError("OB302", f"{label} is compressed with gzip", hint="gunzip it first")


def _parse_protobuf(data: bytes, label: str) -> ModelProto:
    if _is_text(data[:4096]):
        hint = "a model in text needs the suffix .onnxtxt, .json or .textproto"
        raise ModelError("OB302", f"{label} is text, not an ONNX model", hint=hint)
    try:
        proto: ModelProto = ModelProto.FromString(data)
    except DecodeError as error:
        if _is_about_depth(error):
            hint = "ask the exporter to flatten the nested If or Loop bodies"
            raise ModelError("OB302", f"{label} {_TOO_DEEP}", hint=hint) from error
        raise wire.explain(data, label) from error
    _refuse_strange_fields(proto, label)
    return proto


def _is_text(start: bytes) -> bool:
    """Whether a file begins like something people read. Models begin with their ir_version: a control character."""
    printable = sum(byte >= 32 or byte in b"\t\n\r" for byte in start)
    return printable == len(start) and b"\0" not in start and start[0] != 0x0A


def _refuse_strange_fields(proto: ModelProto, label: str) -> None:
    """Refuse bytes that protobuf kept as fields nobody defined: it reads much garbage that way, without an error.

    A later ONNX may add fields, with the next numbers; those are kept and written back.
    """
    highest = max(ModelProto.DESCRIPTOR.fields_by_number)
    strange = [f.field_number for f in UnknownFieldSet(proto) if not highest < f.field_number <= highest + 50]
    if strange:
        fact = f"{label} is not an ONNX model, or is followed by garbage: it has a field number {strange[0]}"
        raise ModelError("OB302", fact, hint="fetch or export the file again")


def _parse_text(data: bytes, form: Format, label: str) -> ModelProto:
    parsers: dict[str, Callable[[str], Message]] = {
        "onnxtxt": onnx.parser.parse_model,
        "json": lambda text: json_format.Parse(text, ModelProto()),
        "textproto": lambda text: text_format.Parse(text, ModelProto()),
    }
    try:
        text = data.decode()
        if form == "onnxtxt" and _depth(text) > _DEEPEST_TEXT:
            raise RecursionError
        proto = parsers[form](text)
    except RecursionError as error:
        raise ModelError("OB302", f"{label} {_TOO_DEEP}", hint="flatten the nested bodies") from error
    except (onnx.parser.ParseError, json_format.ParseError, text_format.ParseError, ValueError) as error:
        hint = f"the suffix says {form}; rename the file if it is another format"
        raise ModelError("OB302", f"{label} cannot be read as {form}: {_brief(error)}", hint=hint) from error
    assert isinstance(proto, ModelProto)
    return proto


def _not_unicode(proto: ModelProto) -> bytes | None:
    """The first string that is not UTF-8: protobuf hands it out as bytes, where everybody expects a str."""
    stack: list[Message] = [proto]
    while stack:
        message = stack.pop()
        if isinstance(message, TensorProto):  # ListFields would copy its payload
            stack.extend(message.external_data)
            name: object = message.name
            if isinstance(name, bytes):
                return name
            continue
        for field, value in message.ListFields():
            if field.name == "node" and field.is_repeated:
                stack.extend(node for node in value if not _is_plain(node))
            elif field.type == FieldDescriptor.TYPE_MESSAGE:
                stack.extend(value if field.is_repeated else [value])
            elif field.type == FieldDescriptor.TYPE_STRING:
                for text in value if field.is_repeated else [value]:
                    if isinstance(text, bytes):
                        return text
    return None


#: Attributes that are not a tensor or a graph, of which a copy is dear.
_SHORT = frozenset({AttributeProto.INT, AttributeProto.INTS, AttributeProto.FLOAT, AttributeProto.STRING})


def _is_plain(node: NodeProto) -> bool:
    """Whether a node surely holds ASCII alone: most do, and to ask each of their fields takes as long as all the rest."""
    if any(attribute.type not in _SHORT for attribute in node.attribute):
        return False
    return bool(node.SerializeToString().isascii())


def _depth(text: str) -> int:
    depth = deepest = 0
    for bracket in re.finditer(r"[{}]", text):
        depth += 1 if bracket[0] == "{" else -1
        deepest = max(deepest, depth)
    return deepest


def _is_about_depth(error: BaseException) -> bool:
    return isinstance(error, RecursionError) or "depth" in str(error).lower()


def _brief(error: BaseException) -> str:
    """An error's own words on one line; parsers quote half the file."""
    words = error.args[0] if error.args else error
    text = words.decode(errors="replace") if isinstance(words, bytes) else str(error)
    return " ".join(text.split())[:200]
