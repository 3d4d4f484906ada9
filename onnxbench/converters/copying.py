"""Copy files as they are: whole or not at all."""

from __future__ import annotations

import contextlib
import re
import shutil
from collections.abc import Iterable
from pathlib import Path

from onnxbench.converters.digests import digest
from onnxbench.core.atomic import Draft, unwritable
from onnxbench.errors import MachineError, ModelError, UsageError, quote

_CHUNK = 8 << 20
_DRAFT = re.compile(r"\.onnxbench-[0-9a-f]{12}\.part")


def copy(source: Path, target: Path, *, force: bool) -> bool:
    """Copy a file; whether that was needed, because the same did not stand there.

    Raises:
        UsageError: OB202 if something else stands there.
        ModelError: OB301 if the source cannot be read.
        MachineError: OB402 if the target cannot be written.
    """
    if target.exists() or target.is_symlink():
        if _alike(source, target):
            return False
        if not force or target.is_dir():
            raise UsageError("OB202", f"{quote(str(target))} exists already", hint="--force overwrites it")
    make_folder(target.parent)
    try:
        stream = source.open("rb")
    except OSError as error:
        raise ModelError("OB301", f"cannot read {quote(str(source))}: {error.strerror}") from None
    with stream, Draft(target.parent) as draft:
        while chunk := stream.read(_CHUNK):
            draft.write(chunk)
        draft.publish(target)
    return True


def make_folder(folder: Path) -> None:
    """Make a folder and those above it.

    Raises:
        MachineError: OB402 if that cannot be.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise unwritable(folder, error) from None


def refuse_without_room(wanted: int, place: Path) -> None:
    """Raise if a disk has less room than that.

    Raises:
        MachineError: OB402 with both numbers.
    """
    home = place.absolute()
    while not home.exists():
        home = home.parent
    free = shutil.disk_usage(home).free
    if wanted > free:
        fact = f"{wanted:,} bytes are to be written below {quote(str(place))}, and only {free:,} are free there"
        raise MachineError("OB402", fact, hint="free some disk space, choose another place, or --others skip")


def sweep(folders: Iterable[Path]) -> None:
    """Remove drafts that a killed process has left; nobody else may be writing there."""
    for folder in folders:
        with contextlib.suppress(OSError):
            for entry in folder.iterdir():
                if _DRAFT.fullmatch(entry.name):
                    entry.unlink(missing_ok=True)


def _alike(source: Path, target: Path) -> bool:
    try:
        same_size = source.stat().st_size == target.stat().st_size
        return target.is_file() and same_size and (source.samefile(target) or digest(source) == digest(target))
    except OSError:
        return False
