"""What was asked so far, on disk: one JSON line for each check, so that a search that was killed can go on.

A verdict is looked up by what the candidate is: its model and inputs. The first line says of which reduction they are.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np

from onnxbench.core.atomic import unwritable
from onnxbench.core.model import Model
from onnxbench.core.values import Value
from onnxbench.errors import MachineError, UsageError, quote

SCHEMA = "onnxbench.journal/1"
_NAME = 200  # characters of a bundle's name in its journal's
#: Bytes of an array that go into a key whole; of larger ones the ends.
_WHOLE, _END = 1 << 20, 1 << 16


class Journal:
    """The verdicts of one reduction, kept in a file as they come."""

    def __init__(self, path: Path | None = None) -> None:
        """A journal that writes to a file, or to none."""
        self.path = path
        self.known: dict[str, str] = {}
        self._file: IO[str] | None = None
        self._begun = False

    def open(self, head: Mapping[str, Any], resume: bool) -> None:
        """Begin the file, or go on with what it holds.

        Raises:
            UsageError: OB207 if there is nothing to go on with, or it belongs to another reduction.
            MachineError: OB402 if it cannot be written.
        """
        if self.path is None:
            return
        lines = [json.dumps({"schema": SCHEMA, **head}, sort_keys=True)]
        if resume:
            lines = self._read(lines[0])
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)  # as the bundle does
            self._file = self.path.open("w", encoding="utf-8")
            self._begun = True
            self._file.write("".join(f"{line}\n" for line in lines))
            self._file.flush()
        except OSError as error:
            raise unwritable(self.path, error) from None

    def _read(self, head: str) -> list[str]:
        assert self.path is not None
        try:
            lines = self.path.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError as error:
            hint = "leave --resume out to begin anew"
            raise UsageError("OB207", f"no journal {quote(str(self.path))}: {error.strerror}", hint=hint) from None
        if not lines or lines[0] != head:
            raise UsageError(
                "OB207",
                f"the journal {quote(str(self.path))} is of another model, input, runtime or option",
                hint="the same command as before, or leave --resume out to begin anew",
            )
        kept = [head]
        for line in lines[1:]:
            try:
                entry = json.loads(line)
                self.known[entry["key"]] = entry["verdict"]
            except (ValueError, KeyError, TypeError):  # the one that was being written when the process was killed
                continue
            kept.append(line)
        return kept

    def note(self, key: str, verdict: str, **more: Any) -> None:
        """Keep a verdict."""
        self.known[key] = verdict
        if self._file is None:
            return
        try:
            self._file.write(json.dumps({"key": key, "verdict": verdict, **more}) + "\n")
            self._file.flush()
        except OSError as error:
            assert self.path is not None
            raise unwritable(self.path, error) from None

    def close(self) -> None:
        """Keep the file, for the search may go on.

        Raises:
            MachineError: OB402 if what was not yet written cannot be.
        """
        file, self._file = self._file, None  # one that cannot be written is not tried again
        if file is None:
            return
        try:
            file.close()
        except OSError as error:
            assert self.path is not None
            raise unwritable(self.path, error) from None

    def copy(self, target: Path) -> None:
        """Put the file of a search that has ended into its bundle; it stays until the bundle is in its place."""
        self.close()
        if self.path is None or not self.path.exists():
            return
        try:
            shutil.copyfile(self.path, target)
        except OSError as error:
            raise unwritable(self.path, error) from None

    def discard_empty(self) -> None:
        """Remove the file if it holds no verdict."""
        if not self.known:
            self.discard()

    def discard(self) -> None:
        """Remove the file, for there is nothing to go on with; one that was refused is of another search, and stays."""
        with contextlib.suppress(MachineError):  # it goes anyway
            self.close()
        if self.path is not None and self._begun:
            with contextlib.suppress(OSError):  # the error that ended the search is the one to tell
                self.path.unlink(missing_ok=True)


def beside(bundle: Path) -> Path:
    """Where the journal of a bundle's search lies; a name as long as a file system takes is cut."""
    return bundle.parent / f"{bundle.name[:_NAME]}.journal"


def key_of(model: Model, feeds: Mapping[str, Value]) -> str:
    """What a candidate is, in a word."""
    digest = hashlib.blake2b(model.proto.SerializeToString(deterministic=True), digest_size=16)
    for name in sorted(feeds):
        digest.update(name.encode("utf-8", "surrogateescape"))
        _add(digest, feeds[name])
    return digest.hexdigest()


def _add(digest: Any, value: Value) -> None:
    if isinstance(value, list):
        digest.update(f"[{len(value)}]".encode())
        for item in value:
            _add(digest, item)
        return
    if value is None:
        digest.update(b"none")
        return
    digest.update(f"{value.dtype}{value.shape}".encode())
    if value.dtype == object:
        digest.update(repr(value.tolist()).encode("utf-8", "surrogateescape"))
    elif value.nbytes <= _WHOLE:
        digest.update(np.ascontiguousarray(value).tobytes())
    else:
        flat = value.reshape(-1)
        few = _END // value.itemsize
        digest.update(np.ascontiguousarray(flat[:few]).tobytes() + np.ascontiguousarray(flat[-few:]).tobytes())
