"""Let one initializer stand for all that hold the same bytes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from itertools import zip_longest

from onnx import TensorProto

from onnxbench.core.external import locate
from onnxbench.core.model import Model
from onnxbench.core.tensors import is_external
from onnxbench.folding.changes import Changes
from onnxbench.folding.passes import fold_pass
from onnxbench.folding.report import Removal
from onnxbench.folding.scope import Scope

_CHUNK = 1 << 20


@fold_pass("copies", "let one initializer stand for all that hold the same bytes", rank=7)
def copies(changes: Changes) -> None:
    """Of one type and shape, and the same to the last bit; external ones are read in pieces, and only as far as they agree."""
    scope = changes.scope
    alike: dict[object, list[TensorProto]] = {}
    for tensor in scope.view.graph.initializer:
        if not _may_go(changes, tensor.name):
            continue
        others = alike.setdefault(_sketch(scope.model, tensor), [])
        same = next((other for other in others if _is_same(scope.model, tensor, other)), None)
        if same is None:
            others.append(tensor)
        elif changes.may_rename(tensor.name, same.name):
            changes.renames[tensor.name] = same.name
            reason = f"holds the same as {same.name}"
            changes.removals.append(Removal("initializer", tensor.name, "", scope.where, "copies", reason))


def _may_go(changes: Changes, name: str) -> bool:
    scope: Scope = changes.scope
    taken = name in scope.outputs or name in scope.view.inputs or name not in scope.view.consumers
    return not taken and name not in changes.renames.values() and name not in changes.renames


def _sketch(model: Model, tensor: TensorProto) -> object:
    """What equal tensors have in common, and few others."""
    start = next(_pieces(model, tensor), b"") if is_external(tensor) else _content(tensor)
    return tensor.data_type, tuple(tensor.dims), hashlib.blake2b(start).digest()


def _is_same(model: Model, one: TensorProto, other: TensorProto) -> bool:
    if is_external(one) != is_external(other):
        return False
    if not is_external(one):
        return _content(one) == _content(other)
    return all(mine == theirs for mine, theirs in zip_longest(_pieces(model, one), _pieces(model, other)))


def _content(tensor: TensorProto) -> bytes:
    """An embedded tensor without what it is called."""
    bare = TensorProto()
    bare.CopyFrom(tensor)
    bare.ClearField("name")
    bare.ClearField("doc_string")
    return bytes(bare.SerializeToString(deterministic=True))


def _pieces(model: Model, tensor: TensorProto) -> Iterator[bytes]:
    """The bytes of an external tensor, a small piece first: most are different there already."""
    weight = locate(model, tensor)
    with weight.file.open("rb") as file:
        file.seek(weight.offset)
        left, size = weight.length, 4096
        while left > 0:
            piece = file.read(min(size, left))
            if not piece:
                return
            yield piece
            left, size = left - len(piece), _CHUNK
