"""The stored tensors of a model: the largest, the doubled, the unused, and the files that hold them."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from dataclasses import dataclass, field

from onnx import TensorProto

from onnxbench.core.external import location
from onnxbench.core.graph import GraphView
from onnxbench.core.model import Model
from onnxbench.core.tensors import is_external, tensors, type_name
from onnxbench.core.weights import locate
from onnxbench.errors import ModelError
from onnxbench.inspecting.header import elements, stored_bytes, weights


@dataclass(slots=True)
class Tensor:
    """One stored tensor; `file` is the location of external data, or ""."""

    name: str
    type: str
    dims: list[int]
    bytes: int
    file: str = ""


@dataclass(slots=True)
class DataFile:
    """A file of external data.

    Attributes:
        location: as the model gives it.
        bytes: its size, None if it cannot be reached.
        used: bytes that tensors refer to.
        tensors: how many refer to it.
        fault: what is wrong with it or with a reference into it, "" if nothing.
    """

    location: str
    bytes: int | None = None
    used: int = 0
    tensors: int = 0
    fault: str = ""


@dataclass(slots=True)
class Tensors:
    """The stored tensors of a model; `duplicates` holds groups of names with equal type, dims and bytes."""

    largest: list[Tensor] = field(default_factory=list)
    duplicates: list[list[str]] = field(default_factory=list)
    duplicate_bytes: int = 0
    unused: list[str] = field(default_factory=list)
    files: list[DataFile] = field(default_factory=list)


def tensors_of(model: Model, view: GraphView) -> Tensors:
    """No external byte is read: external tensors are equal if they refer to the same bytes."""
    stored = [tensor for tensor in weights(model.proto) if tensor.name or is_external(tensor) or len(tensor.dims)]
    rows = [
        Tensor(
            tensor.name,
            type_name(tensor.data_type),
            list(tensor.dims),
            stored_bytes(tensor),
            location(tensor) if is_external(tensor) else "",
        )
        for tensor in stored
    ]
    groups, doubled = _duplicates(view)
    return Tensors(
        largest=sorted(rows, key=lambda row: (-row.bytes, row.name)),
        duplicates=groups,
        duplicate_bytes=doubled,
        unused=unused_initializers(view),
        files=_files(model),
    )


def unused_initializers(view: GraphView) -> list[str]:
    """Initializers that no node reads and that are no output; an input that nobody reads is the caller's business."""
    outputs = set(view.outputs)
    return [
        name
        for name in [*view.initializers, *view.sparse]
        if name not in view.consumers and name not in outputs and not view.is_overridable(name)
    ]


def _duplicates(view: GraphView) -> tuple[list[list[str]], int]:
    """Groups of equal initializers of a kilobyte and more, and the bytes that one of each group would save."""
    by_shape: dict[tuple[object, ...], list[TensorProto]] = defaultdict(list)
    for tensor in view.initializers.values():
        if stored_bytes(tensor) >= 1024:
            by_shape[(tensor.data_type, tuple(tensor.dims))].append(tensor)
    groups: list[list[str]] = []
    saved = 0
    for alike in by_shape.values():
        if len(alike) < 2:
            continue
        by_content: dict[object, list[TensorProto]] = defaultdict(list)
        for tensor in alike:
            by_content[_content(tensor)].append(tensor)
        for equal in by_content.values():
            if len(equal) > 1:
                groups.append([tensor.name for tensor in equal])
                saved += stored_bytes(equal[0]) * (len(equal) - 1)
    return groups, saved


def _content(tensor: TensorProto) -> object:
    if is_external(tensor):
        return tuple(sorted((entry.key, entry.value) for entry in tensor.external_data if entry.key != "checksum"))
    if tensor.raw_data:
        return hashlib.blake2b(tensor.raw_data).digest()
    bare = TensorProto()
    bare.CopyFrom(tensor)
    for text in ("name", "doc_string"):
        bare.ClearField(text)
    return hashlib.sha256(bare.SerializeToString(deterministic=True)).digest()


def _files(model: Model) -> list[DataFile]:
    files: dict[str, DataFile] = {}
    for tensor in tensors(model.proto):
        if not is_external(tensor):
            continue
        place = location(tensor)
        entry = files.setdefault(place, DataFile(place))
        entry.tensors += 1
        entry.used += elements(tensor) and stored_bytes(tensor)
        try:
            entry.bytes = locate(model, tensor).file.stat().st_size
        except ModelError as fault:
            entry.fault = entry.fault or fault.message
    return list(files.values())
