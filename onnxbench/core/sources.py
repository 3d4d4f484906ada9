"""The bytes behind a path or a stream, and what is wrong with the path if there are none."""

from __future__ import annotations

import difflib
import errno
import os
import stat
import sys
from pathlib import Path
from typing import BinaryIO

from onnxbench.core import formats
from onnxbench.errors import ModelError, UsageError, escape, quote


def read_file(path: Path) -> bytes:
    """All bytes of a regular file; anything else is refused before it is opened, for a FIFO would block.

    Raises:
        ModelError: OB301, with what the path is instead.
    """
    try:
        status = path.stat()
        if stat.S_ISDIR(status.st_mode):
            os.scandir(path).close()  # why it cannot be read comes before what it is
        _refuse_irregular(path, status.st_mode)
        if status.st_size > formats.LIMIT and formats.of_suffix(path) == "protobuf":
            fact = f"{_label(path)} is {status.st_size} bytes long; one protobuf message holds at most {formats.LIMIT}"
            raise ModelError(
                "OB302", fact, hint="larger models keep their weights in a data file beside the .onnx file"
            )
        return path.read_bytes()
    except OSError as error:
        raise _unreadable(path, error) from error
    except ValueError as error:  # a NUL in the name
        raise ModelError("OB301", f"no file can be called {quote(str(path))}") from error


def read_stream(stdin: BinaryIO | None) -> bytes:
    """All bytes of standard input.

    Raises:
        UsageError: OB201 if that is a terminal, where nobody types protobuf.
    """
    stream = stdin if stdin is not None else sys.stdin.buffer
    if stream.isatty():
        raise UsageError("OB201", "standard input is a terminal", hint="onnxbench inspect - < model.onnx")
    return stream.read()


def _refuse_irregular(path: Path, mode: int) -> None:
    if stat.S_ISREG(mode):
        return
    if stat.S_ISDIR(mode):
        inside = sorted(found.name for found in path.glob("*.onnx"))
        hint = f"did you mean {quote(str(path / inside[0]))}?" if inside else "name a model file in it"
        raise ModelError("OB301", f"{_label(path)} is a folder, not a file", hint=hint)
    kind = "a FIFO" if stat.S_ISFIFO(mode) else "a socket" if stat.S_ISSOCK(mode) else "a device"
    raise ModelError(
        "OB301", f"{_label(path)} is {kind}, not a file", hint=f"use -:  onnxbench inspect - < {_label(path)}"
    )


def _unreadable(path: Path, error: OSError) -> ModelError:
    if isinstance(error, PermissionError):
        return ModelError("OB301", f"no permission to read {_label(path)}", hint=f"ls -l {quote(str(path))}")
    if error.errno in (errno.ENOENT, errno.ELOOP) and path.is_symlink():
        there = escape(str(path.readlink()))
        fact = f"{_label(path)} is a link to {there}, which is not there"
        return ModelError("OB301", fact, hint="make the link anew, or name the file itself")
    if isinstance(error, FileNotFoundError):
        return ModelError("OB301", f"no file {quote(str(path))}", hint=_nearest(path))
    return ModelError("OB301", f"cannot read {_label(path)}: {(error.strerror or str(error)).lower()}")


def _nearest(path: Path) -> str:
    """A hint at a file with a similar name, or at the folder that is not there either."""
    if not path.parent.is_dir():
        return f"there is no folder {quote(str(path.parent))}"
    try:
        names = [entry.name for entry in os.scandir(path.parent)]
    except OSError:
        return f"ls {quote(str(path.parent))}"
    near = difflib.get_close_matches(path.name, names, n=1, cutoff=0.75)
    return f"did you mean {quote(near[0])}?" if near else f"ls {quote(str(path.parent))}"


def _label(path: Path) -> str:
    return escape(path.name or str(path))
