"""Where weights go when a model is saved: into the graph, beside it, or nowhere because they lie there already."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from onnx import ModelProto, TensorProto

from onnxbench.core import formats
from onnxbench.core.atomic import Draft
from onnxbench.core.external import Weight, is_marked, locate, location, read, refer
from onnxbench.core.slimming import embed
from onnxbench.core.tensors import is_external, tensors
from onnxbench.errors import UsageError

if TYPE_CHECKING:
    from onnxbench.core.model import Model

_CHUNK = 8 * 1024 * 1024
_PAGE, _LARGE, _SMALL = 4096, 64 * 1024, 64
#: Room for everything of a model but its weights; what is beyond that fails with an error, not with a broken file.
_ROOM = 64 * 1024 * 1024
#: Embedded tensors up to this size stay in the graph even when the rest moves out: shape inference reads them.
_STAYS = 1024


def embedded(model: Model) -> ModelProto:
    """A copy that holds all its weights, for a stream, which has no folder.

    Raises:
        UsageError: OB203 if that is more than one protobuf message can hold.
    """
    proto = _copy(model)
    held = list(tensors(proto))
    outside = [(tensor, locate(model, tensor)) for tensor in held if is_external(tensor)]
    size = sum(weight.length for _, weight in outside)
    if size + _inside(held) > formats.LIMIT:
        raise UsageError(
            "OB203",
            f"{model.label} has {size} bytes of external data, more than a stream of protobuf can hold",
            hint="-o model.onnx",
        )
    for tensor, weight in outside:
        embed(tensor, read(weight))
    return proto


class Placement:
    """A model's graph whose references hold in `folder`, and the data file it needs, if any.

    Attributes:
        proto: what to write, once `settle` was called: a copy if anything had to be rewritten.
    """

    def __init__(self, model: Model, folder: Path, stem: str) -> None:
        self.proto = model.proto
        self._model, self._folder, self._stem = model, folder, stem
        self._real_folder = folder.resolve()
        self._copied: dict[Weight, Weight] = {}
        self._digest, self._position = hashlib.sha256(), 0
        self._moved: list[tuple[TensorProto, Weight]] = []

    def settle(self, draft: Draft) -> Path | None:
        """Embed, keep or copy each weight; copies go to `draft`. The file that the draft must be published as, or None.

        Data is streamed, so that models beyond the memory can be saved.
        """
        held = list(tensors(self.proto))
        weights = [(tensor, locate(self._model, tensor)) for tensor in held if is_external(tensor)]
        marked = sum(weight.length for tensor, weight in weights if is_marked(tensor))
        fits = marked + _inside(held) <= formats.LIMIT - min(_ROOM, formats.LIMIT // 4)
        if fits and not weights:  # nothing to rewrite: the commonest case needs no second copy in memory
            return None
        self.proto = _copy(self._model)
        copies = (tensor for tensor in tensors(self.proto) if is_external(tensor))
        for tensor, (_, weight) in zip(copies, weights, strict=True):
            if is_marked(tensor) and (fits or weight.length <= _STAYS):
                embed(tensor, read(weight))
            elif is_marked(tensor) or not self._stays(weight):
                self._move(draft, tensor, weight)
            elif not self._holds_already(tensor, weight):
                refer(tensor, weight, self._real_folder)
        if not fits:
            self._move_embedded(draft)
        return self._name_data()

    def _stays(self, weight: Weight) -> bool:
        """Whether a file lies where the saved model may refer to it: in the folder it is saved to, and came from."""
        if weight.file.parent == self._real_folder:
            return True
        home = self._model.path.parent if self._model.path else self._model.folder
        with suppress(OSError):
            return home is not None and home.samefile(self._folder) and weight.file.is_relative_to(self._real_folder)
        return False

    def _holds_already(self, tensor: TensorProto, weight: Weight) -> bool:
        """Whether the reference, as it is, leads to the same file from the new place."""
        with suppress(OSError):
            return (self._folder / location(tensor)).resolve(strict=True) == weight.file
        return False

    def _move(self, draft: Draft, tensor: TensorProto, weight: Weight) -> None:
        if weight not in self._copied:
            start = self._align(draft, weight.length)
            for chunk in _chunks(weight):
                self._append(draft, chunk)
            self._copied[weight] = Weight(weight.file, start, weight.length)
        if is_marked(tensor):
            embed(tensor, b"")
        self._moved.append((tensor, self._copied[weight]))

    def _move_embedded(self, draft: Draft) -> None:
        for tensor in tensors(self.proto):
            if is_external(tensor) or len(tensor.raw_data) <= _STAYS:
                continue
            payload = tensor.raw_data
            start = self._align(draft, len(payload))
            self._append(draft, payload)
            self._moved.append((tensor, Weight(Path(), start, len(payload))))

    def _align(self, draft: Draft, length: int) -> int:
        """Start large tensors on a page, so that runtimes can map them."""
        self._append(draft, bytes(-self._position % (_PAGE if length >= _LARGE else _SMALL)))
        return self._position

    def _append(self, draft: Draft, data: bytes) -> None:
        draft.write(data)
        self._digest.update(data)
        self._position += len(data)

    def _name_data(self) -> Path | None:
        if not self._moved:
            return None
        name = f"{self._stem[:200]}-{self._digest.hexdigest()[:12]}.data"
        for tensor, weight in self._moved:
            tensor.ClearField("raw_data")
            refer(tensor, Weight(self._real_folder / name, weight.offset, weight.length), self._real_folder)
        return self._folder / name


def _copy(model: Model) -> ModelProto:
    proto = ModelProto()
    proto.CopyFrom(model.proto)
    return proto


def _inside(held: Iterable[TensorProto]) -> int:
    """Bytes of weights that are not in other files."""
    return sum(len(tensor.raw_data) for tensor in held if not is_external(tensor))


def _chunks(weight: Weight) -> Iterator[bytes]:
    for start in range(0, weight.length, _CHUNK):
        yield read(Weight(weight.file, weight.offset + start, min(_CHUNK, weight.length - start)))
