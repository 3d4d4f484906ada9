"""Types of values as people write them: float32[1,3], sequence(int64[]), optional(float16[N,?])."""

from __future__ import annotations

import re

from onnx import TensorProto, TypeProto, helper

from onnxbench.core.nearest import nearest
from onnxbench.core.values import dtype_name, dtype_of
from onnxbench.errors import UsageError, quote

_TENSOR = re.compile(r"([A-Za-z]\w*)\s*\[(.*)\]", re.DOTALL)
_HOLDER = re.compile(r"(sequence|seq|optional)\s*\((.*)\)", re.DOTALL)
_SIZE = re.compile(r"\d{1,18}")
_DEEPEST = 10
_HINT = "float32[1,3], float32[N,?], or int64[] for a scalar"


def parse_type(text: str, depth: int = 0) -> TypeProto:
    """The type that a text says.

    Raises:
        UsageError: OB201 if it says none.
    """
    holder = _HOLDER.fullmatch(text.strip())
    if holder is not None and depth < _DEEPEST:
        inner = parse_type(holder[2], depth + 1)
        made = TypeProto()
        held = made.optional_type if holder[1] == "optional" else made.sequence_type
        held.elem_type.CopyFrom(inner)
        return made
    tensor = _TENSOR.fullmatch(text.strip())
    if tensor is None:
        raise UsageError("OB201", f"{quote(text)} is no type with a shape", hint=_HINT)
    return helper.make_tensor_type_proto(_element(tensor[1]), _dims(tensor[2]))


def _element(name: str) -> int:
    codes: dict[str, int] = {
        key.casefold(): code for key, code in TensorProto.DataType.items() if code != TensorProto.UNDEFINED
    }
    known: dict[str, int] = {
        dtype_name(dtype): code for code in codes.values() if (dtype := dtype_of(code)) is not None
    } | codes
    code = known.get(name.casefold())
    if code is None:
        close = nearest(name, known)
        raise UsageError("OB201", f"no dtype is called {quote(name)}", hint=f"did you mean {close}?" if close else "")
    return code


def _dims(text: str) -> list[int | str | None]:
    """Numbers, symbols, and None for `?`."""
    if not text.strip():
        return []
    parts = [part.strip() for part in text.split(",")]
    if not all(parts):
        raise UsageError("OB201", f"{quote(f'[{text}]')} is no shape", hint=_HINT)
    return [int(part) if _SIZE.fullmatch(part) else None if part == "?" else part for part in parts]
