"""What tells whether a file is still the same: its bytes, or for a large one its size, its time and samples of it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

#: Bytes up to which a file is read whole.
_WHOLE = 64 << 20
_SAMPLE = 1 << 20


def digest(file: Path) -> str:
    """What tells two contents apart; an `OSError` if the file cannot be read."""
    status = file.stat()
    found = hashlib.blake2b(digest_size=16)
    with file.open("rb") as stream:
        if status.st_size <= _WHOLE:
            found.update(stream.read())
            return found.hexdigest()
        for start in (0, status.st_size // 2, status.st_size - _SAMPLE):
            stream.seek(start)
            found.update(stream.read(_SAMPLE))
    return f"{found.hexdigest()}:{status.st_size}:{status.st_mtime_ns}"


def content(source: Path, data: Iterable[str]) -> dict[str, str]:
    """Digests of a model and of its data files, by path relative to its folder; a file that is not there has none."""
    found = {"": _digest_or_nothing(source)}
    for name in sorted(data):
        found[name] = _digest_or_nothing(source.parent / name)
    return found


def of_data(value: Any) -> str:
    """What tells two things apart that JSON can hold."""
    text = json.dumps(value, sort_keys=True, default=sorted)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _digest_or_nothing(file: Path) -> str:
    try:
        return digest(file)
    except OSError:
        return ""
