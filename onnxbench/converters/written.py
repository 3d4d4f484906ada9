"""Small models in a report: as ONNX text where that says all of them, else as encoded protobuf."""

from __future__ import annotations

import base64
import zlib

from onnx import ModelProto

from onnxbench.core.attributes import all_nodes

#: Characters above which text is no help to a reader.
_LONGEST = 4000
_ENCODED = "protobuf:"


def written(model: ModelProto) -> str:
    """A model as text that `read` gives back."""
    import onnx.printer

    try:
        text = str(onnx.printer.to_text(model))
        if len(text) <= _LONGEST and _spare(_parsed(text)) == _spare(model):
            return text
    except Exception:  # the printer and the parser of onnx raise several kinds
        pass
    return _ENCODED + base64.b64encode(zlib.compress(model.SerializeToString(deterministic=True))).decode("ascii")


def read(text: str) -> ModelProto:
    """The model that a text says.

    Raises:
        ValueError: if it says none.
    """
    try:
        if text.startswith(_ENCODED):
            return _decoded(text)
        return _parsed(text)
    except Exception as error:
        raise ValueError(f"no model: {error}") from error


def _spare(model: ModelProto) -> ModelProto:
    """A copy without what is there, and empty: text says nothing of it."""
    copy = ModelProto()
    copy.CopyFrom(model)
    for node in all_nodes(copy):
        for name in ("name", "doc_string", "domain", "overload"):
            if not getattr(node, name):
                node.ClearField(name)
    for entry in copy.opset_import:
        if not entry.domain:
            entry.ClearField("domain")
    return copy


def _parsed(text: str) -> ModelProto:
    import onnx.parser

    made = ModelProto()
    made.CopyFrom(onnx.parser.parse_model(text))
    return made


def _decoded(text: str) -> ModelProto:
    made = ModelProto()
    made.ParseFromString(zlib.decompress(base64.b64decode(text[len(_ENCODED) :])))
    return made
