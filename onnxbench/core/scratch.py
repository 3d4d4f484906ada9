"""Temporary folders that do not outlive a kill for long: the next one to be made clears those whose owner is dead.

Its owner holds a lock on the folder itself, which the kernel lets go whatever ends the process. So no living owner is taken for
a dead one, not even that of another container with the same /tmp.
"""

from __future__ import annotations

import atexit
import contextlib
import errno
import fcntl
import os
import re
import shutil
import stat
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from onnxbench.core.atomic import unwritable
from onnxbench.errors import MachineError

#: Names that nobody else gives: what stands behind them in `tempfile`'s alphabet makes eight characters.
TEMPORARY, DRAFT = "onnxbench-scratch-", ".onnxbench-draft-"


@dataclass(frozen=True, slots=True)
class Scratch:
    """A folder of this process; as a context, gone after the block."""

    path: Path
    _lock: int

    @classmethod
    def within(cls, parent: Path, prefix: str) -> Scratch:
        """A new one in another folder; an `OSError` if that cannot be."""
        _sweep(parent, prefix)
        young = Path(tempfile.mkdtemp(prefix=f".new-{prefix}", dir=parent))  # no sweep sees it before it is locked
        lock = os.open(young, os.O_RDONLY | os.O_DIRECTORY)
        with contextlib.suppress(OSError):  # a file system without locks: then no sweep gets one either
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        path = young.with_name(young.name.removeprefix(".new-"))
        young.rename(path)
        return cls(path, lock)

    @classmethod
    def temporary(cls) -> Scratch:
        """A new one where temporary files go.

        Raises:
            MachineError: OB402 if there is no place for one.
        """
        try:
            parent = Path(tempfile.gettempdir()).resolve()
        except OSError:
            raise MachineError(
                "OB402", "no folder for temporary files can be written", hint="set TMPDIR to one with room"
            ) from None
        try:
            return cls.within(parent, TEMPORARY)
        except OSError as error:
            raise unwritable(parent / "temporary files", error) from None

    def __enter__(self) -> Scratch:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()

    def remove(self) -> None:
        """Remove what is there, and let the lock go."""
        shutil.rmtree(self.path, ignore_errors=True)
        with contextlib.suppress(OSError):
            os.close(self._lock)


def until_exit() -> Path:
    """A temporary folder that is gone when this process ends.

    Raises:
        MachineError: OB402 if there is no place for one.
    """
    made = Scratch.temporary()
    atexit.register(_remove_own, made, os.getpid())
    return made.path


def _remove_own(made: Scratch, owner: int) -> None:
    if os.getpid() == owner:  # a forked worker that ends must not take the folder from its parent
        made.remove()


@cache
def _sweep(parent: Path, prefix: str) -> None:
    """Remove what dead processes of this user have left."""
    ours = re.compile(re.escape(prefix) + r"[a-z0-9_]{8}")
    try:
        names = [entry.name for entry in os.scandir(parent) if ours.fullmatch(entry.name)]
    except OSError:
        return
    for name in names:
        with contextlib.suppress(OSError):
            _remove_if_dead(parent / name)


def _remove_if_dead(place: Path) -> None:
    handle = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        found = os.fstat(handle)
        if found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) != 0o700:
            return
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in (errno.EWOULDBLOCK, errno.EACCES, errno.ENOLCK, errno.EOPNOTSUPP):
                return  # its owner lives, or nobody can tell
            raise
        shutil.rmtree(place, ignore_errors=True)
    finally:
        os.close(handle)
