"""From what a user names to model files: files, folders, patterns."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from onnxbench.errors import ModelError, quote

#: Suffixes that a folder is searched for; a file that is named may have any.
SUFFIXES = (".onnx", ".onnxtxt", ".textproto", ".pb")
#: Names of data beside models, which have the suffix of a model.
_DATA = ("input_", "output_")


def find_models(named: Sequence[str]) -> list[str]:
    """The files that arguments name, in their order, each once; what a folder or a pattern holds is sorted.

    A name that is neither folder nor pattern is kept as it is, so that opening it says what is wrong with it. So are links
    that lead nowhere and folders that cannot be read, wherever they are: to leave them out would look like success.
    Links to folders are not followed.

    Raises:
        ModelError: OB301 for a folder or a pattern without a model.
    """
    found: dict[str | Path, str] = {}
    for text in named:
        for path in _expand(text):
            found.setdefault(path if path in ("", "-") else Path(path).absolute(), path)
    return list(found.values())


def is_plural(named: Sequence[str]) -> bool:
    """Whether arguments ask for a table: several, a folder, or a pattern."""
    return len(named) > 1 or _is_folder(named[0]) or _is_pattern(named[0])


def _expand(text: str) -> list[str]:
    if _is_folder(text):
        inside = sorted(_below(text))
    elif _is_pattern(text):
        matches = glob.glob(text, recursive=True)  # noqa: PTH207 -- a pattern may be absolute
        inside = sorted(path for path in matches if Path(path).is_file())
    else:
        return [text]
    if not inside:
        raise ModelError("OB301", f"no model in {quote(text)}", hint=f"models end with {', '.join(SUFFIXES)}")
    return inside


def _below(folder: str) -> Iterator[str]:
    """The models in a folder and in those below it, and the folders that cannot be read."""
    unreadable: list[str] = []
    for place, _, names in os.walk(folder, onerror=lambda error: unreadable.append(str(error.filename))):
        yield from (str(path) for name in names if _is_model(path := Path(place, name)))
    yield from unreadable


def _is_model(path: Path) -> bool:
    is_data = path.suffix == ".pb" and path.name.startswith(_DATA)
    return path.suffix in SUFFIXES and not is_data and (path.is_file() or _leads_nowhere(path))


def _leads_nowhere(path: Path) -> bool:
    try:
        return path.is_symlink() and not path.exists()
    except OSError:  # a link to itself
        return True


def _is_folder(text: str) -> bool:
    return text not in ("", "-") and Path(text).is_dir()


def _is_pattern(text: str) -> bool:
    return any(character in text for character in "*?[") and not Path(text).exists()
