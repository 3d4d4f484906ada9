"""Files that appear whole or not at all."""

from __future__ import annotations

import errno
import os
import secrets
from pathlib import Path
from types import TracebackType
from typing import Self

from onnxbench.errors import MachineError, quote


class Draft:
    """A new file beside its future place, which takes that place only by `publish`.

    Used as a context: whatever ends the block before `publish` (an error, a full disk, Ctrl-C) removes the draft and
    leaves an older file at the target as it was. The mode follows the umask, as for any new file.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        # Short, whatever the target is called: a name of 255 bytes has no room for a suffix.
        self.path = folder / f".onnxbench-{secrets.token_hex(6)}.part"
        self._published: Path | None = None

    def __enter__(self) -> Self:
        flags = os.O_CREAT | os.O_EXCL | os.O_RDWR | getattr(os, "O_BINARY", 0)
        try:
            self._descriptor = os.open(self.path, flags, 0o666)
        except OSError as error:
            raise unwritable(self.folder, error) from error
        except BaseException:  # an interrupt that strikes when the file is there
            self.path.unlink(missing_ok=True)
            raise
        return self

    def write(self, data: bytes | memoryview) -> None:
        """Append all of `data` (one call of the system may take less than it was given)."""
        rest = memoryview(data)
        try:
            while rest:
                rest = rest[os.write(self._descriptor, rest[: 1 << 30]) :]
        except OSError as error:
            raise unwritable(self.folder, error) from error

    def flush(self) -> None:
        """Wait until the bytes are on the disk; some file systems only now say that it is full."""
        try:
            os.fsync(self._descriptor)
        except OSError as error:
            raise unwritable(self.folder, error) from error

    def publish(self, target: Path) -> None:
        """Let the finished draft take the place of `target`."""
        self.flush()
        try:
            self._close()
            self.path.replace(target)
        except OSError as error:
            raise unwritable(target, error) from error
        self._published = target

    def retract(self) -> None:
        """Remove what was published: for a file that makes no sense without another that could not be written."""
        if self._published is not None:
            self._published.unlink(missing_ok=True)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._published is None:
            try:
                self._close()
            finally:
                self.path.unlink(missing_ok=True)

    def _close(self) -> None:
        if self._descriptor >= 0:
            descriptor, self._descriptor = self._descriptor, -1
            os.close(descriptor)


def unwritable(place: Path, error: OSError) -> MachineError:
    """The error for a file that cannot be written, with the system's own reason."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return MachineError(
            "OB402", f"the disk is full: cannot write {quote(str(place))}", hint=f"df -h {quote(str(place.parent))}"
        )
    reason = (error.strerror or str(error)).lower()
    return MachineError("OB402", f"cannot write {quote(str(place))}: {reason}", hint="choose another place")
