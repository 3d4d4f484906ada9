"""What is done in an output folder, line by line, so that a run that was killed can go on."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from onnxbench.converters.tree import JOURNAL
from onnxbench.core.atomic import unwritable
from onnxbench.errors import UsageError, quote


@dataclass(frozen=True, slots=True)
class Entry:
    """A model that is done.

    Attributes:
        options: digest of what was asked.
        others: what was asked of models that are not converted.
        content: digests of the model and its data files.
        wrote: size and time of each file that was written, by path relative to the output folder.
        row: what came of it.
    """

    options: str
    others: str
    content: Mapping[str, str]
    wrote: Mapping[str, Sequence[int]]
    row: Mapping[str, Any]

    def to_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("options", "others", "content", "wrote", "row")}


@dataclass(slots=True)
class Journal:
    """The journal of an output folder; without a folder it forgets everything.

    Attributes:
        done: what is done, by place.
        begun: places that a run has begun to write: what stands there is ours.
        known: size and time of files as they were written, by place.
        is_old: whether there was one before.
    """

    folder: Path | None
    done: dict[str, Entry] = field(default_factory=dict)
    begun: set[str] = field(default_factory=set)
    known: dict[str, list[int]] = field(default_factory=dict)
    is_old: bool = False
    _handle: int = -1
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def open(self) -> None:
        """Read what is there, and keep others away.

        Raises:
            UsageError: OB201 if another run is at work in the folder.
            MachineError: OB402 if it cannot be written.
        """
        if self.folder is None:
            return
        file = self.folder / JOURNAL
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self.is_old = file.exists()
            self._handle = os.open(file, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
        except OSError as error:
            raise unwritable(file, error) from None
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            busy = f"another onnxbench convert is at work in {quote(str(self.folder))}"
            raise UsageError("OB201", busy, hint="wait for it, or choose another -o") from None
        except OSError:  # a file system without locks
            pass
        text = file.read_text(encoding="utf-8", errors="replace")
        for line in text.splitlines():
            with contextlib.suppress(ValueError, KeyError, TypeError):  # cut off by the end of an earlier run
                self._take(json.loads(line))
        if text and not text.endswith("\n"):
            self._write(b"\n")

    def begin(self, place: str) -> None:
        """Note that a model is about to be written there."""
        self.begun.add(place)
        self.known.pop(place, None)
        self._append({"begun": place})

    def finish(self, place: str, entry: Entry) -> None:
        """Note that it is done."""
        self.done[place] = entry
        self._append({"done": place, **entry.to_dict()})

    def copied(self, place: str, stamp: Sequence[int]) -> None:
        """Note that a file was copied there."""
        self.known[place] = list(stamp)
        self._append({"copied": place, "stamp": list(stamp)})

    def owns(self, place: str) -> bool:
        """Whether what stands there was written by an earlier run, and not changed by anybody since."""
        if self.folder is None:
            return False
        if place in self.known:
            return stamp(self.folder / place) == self.known[place]
        return place in self.begun

    def close(self) -> None:
        """Let others in."""
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1

    def _take(self, line: dict[str, Any]) -> None:
        if "begun" in line:
            self.begun.add(line["begun"])
            self.known.pop(line["begun"], None)
        elif "copied" in line:
            self.known[line["copied"]] = list(line["stamp"])
        else:
            place = line.pop("done")
            self.done[place] = entry = Entry(**line)
            self.known.update({name: list(found) for name, found in entry.wrote.items()})

    def _append(self, line: Mapping[str, Any]) -> None:
        self._write(json.dumps(line).encode() + b"\n")

    def _write(self, data: bytes) -> None:
        if self._handle < 0:
            return
        try:
            with self._lock:
                while data:
                    data = data[os.write(self._handle, data) :]
        except OSError as error:
            assert self.folder is not None
            raise unwritable(self.folder / JOURNAL, error) from None


def stamp(file: Path) -> list[int]:
    """Size and time of a file; nothing if it is not there."""
    try:
        status = file.stat()
    except OSError:
        return []
    return [status.st_size, status.st_mtime_ns]
