"""The rule for external data: which bytes of which file a tensor may refer to.

Data must lie in the folder of the model. Both the path as given and its real path count, because a Hugging Face cache
links the model and its data, each by itself, into a store of blobs.
"""

from __future__ import annotations

import re
import stat
from dataclasses import dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING

from onnx import TensorProto

from onnxbench.core.tensors import byte_count, label
from onnxbench.errors import ModelError, quote

if TYPE_CHECKING:
    from onnxbench.core.model import Model

#: On a reference that `slim` made: metadata of the tensor, because ONNX Runtime refuses unknown keys in the reference.
#: The value stamps the file (size and time of change), so that a file changed meanwhile is noticed.
MARK = "onnxbench.embedded"


@dataclass(frozen=True, slots=True)
class Weight:
    """Where the bytes of a tensor lie. `file` is a real path, without links."""

    file: Path
    offset: int
    length: int


def locate(model: Model, tensor: TensorProto) -> Weight:
    """Where an external tensor's bytes lie, with everything checked that can be without reading them.

    Raises:
        ModelError: OB304 if the file is missing, outside the model's folder or too short, or offset and length do not
            fit; OB306 if the tensor's shape or type is invalid.
    """
    entries = _entries(model, tensor)
    file = _find(model, tensor, entries.get("location", ""))
    wanted = byte_count(tensor, model.label)
    offset = _number(model, tensor, entries, "offset", 0)
    length = _number(model, tensor, entries, "length", wanted)
    if length != wanted:
        raise _refused(model, tensor, f"has length {length}, but its shape and type need {wanted} bytes")
    size = _size(model, tensor, file)
    if offset + length > size:
        raise _refused(
            model, tensor, f"ends at byte {offset + length} of {quote(file.name)}, which has only {size} bytes"
        )
    _refuse_changed(model, tensor, file)
    return Weight(file, offset, length)


def read(weight: Weight) -> bytes:
    """All bytes of a weight, in memory.

    Raises:
        ModelError: OB304 if the file cannot be read, or ends before the weight does.
    """
    try:
        with weight.file.open("rb") as file:
            file.seek(weight.offset)
            data = file.read(weight.length)
    except OSError as error:
        raise ModelError("OB304", f"cannot read {quote(weight.file.name)}: {error.strerror}") from error
    if len(data) != weight.length:
        raise ModelError("OB304", f"{quote(weight.file.name)} became shorter while it was read")
    return data


def is_marked(tensor: TensorProto) -> bool:
    """Whether `slim` made this reference, so that its bytes belong into the model again when it is saved."""
    return any(entry.key == MARK for entry in tensor.metadata_props)


def stamp(file: Path) -> str:
    """What tells that a file is still the same."""
    status = file.stat()
    return f"{status.st_size}:{status.st_mtime_ns}"


def refer(tensor: TensorProto, weight: Weight, folder: Path) -> None:
    """Point a tensor at `weight`, by a path relative to `folder`; entries other than the place (a checksum) stay."""
    kept = [(e.key, e.value) for e in tensor.external_data if e.key not in ("location", "offset", "length")]
    del tensor.external_data[:]
    place = {
        "location": weight.file.relative_to(folder).as_posix(),
        "offset": str(weight.offset),
        "length": str(weight.length),
    }
    for key, value in [*place.items(), *kept]:
        tensor.external_data.add(key=key, value=value)
    tensor.data_location = TensorProto.EXTERNAL


def location(tensor: TensorProto) -> str:
    """The `location` entry as the file gives it."""
    return next((entry.value for entry in tensor.external_data if entry.key == "location"), "")


def _entries(model: Model, tensor: TensorProto) -> dict[str, str]:
    entries: dict[str, str] = {}
    for entry in tensor.external_data:
        if entry.key in entries:  # readers disagree which one counts
            raise _refused(model, tensor, f"gives {quote(entry.key)} twice")
        entries[entry.key] = entry.value
    return entries


def _number(model: Model, tensor: TensorProto, entries: dict[str, str], key: str, default: int) -> int:
    text = entries.get(key)
    if text is None:
        return default
    if not re.fullmatch(r"[0-9]{1,19}", text):
        raise _refused(model, tensor, f"has a bad {key}: {quote(text[:40])}")
    return int(text)


def _find(model: Model, tensor: TensorProto, text: str) -> Path:
    """The real file behind a location."""
    if model.folder is None:
        raise _refused(
            model,
            tensor,
            "is not at hand: the model was not read from a folder",
            hint="name the model's file instead of -",
        )
    if not _stays_inside(text):
        raise _refused(model, tensor, f"lies outside the model's folder: {quote(text)}")
    homes = _homes(model)
    for home in homes:
        real = _real_file(home / text)
        if real is None:
            continue
        if not any(real.is_relative_to(allowed.resolve()) for allowed in homes):
            raise _refused(model, tensor, f"is a link out of the model's folder: {quote(text)}")
        return real
    raise _refused(
        model,
        tensor,
        f"is missing: no file {quote(text)} beside the model",
        hint="copy the data file into the model's folder",
    )


def _homes(model: Model) -> list[Path]:
    """The folders that count as the model's: of the path given, and of the real file behind it."""
    assert model.folder is not None
    homes = [model.folder]
    if model.path is not None:
        homes.append(model.path.resolve().parent)
    return homes


def _stays_inside(text: str) -> bool:
    if not text or "\0" in text:
        return False
    windows, posix = PureWindowsPath(text), PurePosixPath(text)
    if posix.is_absolute() or windows.drive or windows.root:
        return False
    return ".." not in posix.parts and ".." not in windows.parts


def _real_file(path: Path) -> Path | None:
    try:
        real = path.resolve(strict=True)
        return real if stat.S_ISREG(real.stat().st_mode) else None
    except (OSError, RuntimeError, ValueError):  # absent, a circle of links, a name too long or not encodable
        return None


def _size(model: Model, tensor: TensorProto, file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError as error:
        raise _refused(model, tensor, f"cannot be read: {error.strerror}") from error


def _refuse_changed(model: Model, tensor: TensorProto, file: Path) -> None:
    for entry in tensor.metadata_props:
        if entry.key == MARK and not (file.exists() and f"{entry.value}:".startswith(f"{stamp(file)}:")):
            raise _refused(
                model, tensor, f"was in {quote(file.name)}, which has changed since", hint="run the command again"
            )


def _refused(model: Model, tensor: TensorProto, fact: str, hint: str = "") -> ModelError:
    hint = hint or f"onnxbench inspect {quote(model.label)}"
    return ModelError("OB304", f"{label(tensor, model.label)}: its external data {fact}", hint=hint)
