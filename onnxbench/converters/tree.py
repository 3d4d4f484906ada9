"""Which files a conversion of many takes, and where in the output folder each goes."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from onnxbench.converters.hidden import is_hidden, search
from onnxbench.core.files import find_models, is_plural
from onnxbench.errors import ModelError, UsageError, quote

#: In the output folder: what is done, and the reports.
JOURNAL = ".onnxbench-convert.jsonl"
REPORTS = ("report.json", "report.md", "report.html")
_LEFTOVERS = ".onnxbench-"


@dataclass(frozen=True, slots=True)
class Item:
    """A model of many.

    Attributes:
        source: its file.
        place: where it goes, relative to the output folder.
        searched: whether a folder or pattern led to it, and nobody named it.
    """

    source: str
    place: str
    searched: bool


@dataclass(frozen=True, slots=True)
class Tree:
    """What goes into an output folder.

    Attributes:
        items: the models.
        files: other files of the folders that were named, by place.
        output: the folder; None if each model is written over itself.
        hidden: models in hidden folders, which are left out.
    """

    items: Sequence[Item]
    files: dict[str, Path]
    output: Path | None
    hidden: Sequence[str] = ()

    def target(self, item: Item) -> Path:
        return self.output / item.place if self.output is not None else Path(item.source)


def plan_tree(named: Sequence[str], output: Path) -> Tree:
    """Mirror folders and patterns into a folder.

    Raises:
        UsageError: OB201 if two models would take one place, or the folder is the source itself.
        ModelError: OB301 for a folder or pattern without a model.
    """
    if output.exists() and not output.is_dir():
        raise UsageError("OB201", f"several models go into a folder, and {quote(str(output))} is none")
    made: dict[str, Item] = {}
    files: dict[str, Path] = {}
    hidden: list[str] = []
    for text in named:
        if text == "-":
            raise UsageError("OB201", "standard input holds one model, and several are named", hint="name its file")
        base = _base(text)
        if base is not None and _same(base, output) and Path(text).is_dir():
            raise UsageError("OB201", f"{quote(text)} is the output folder too", hint="--in-place, or another -o")
        found = search(text)
        hidden += found.hidden
        for path in _outside(found.models, output, text):
            place = Path(path).relative_to(base).as_posix() if base is not None else Path(path).name
            item = made.setdefault(place, Item(path, place, base is not None))
            if Path(item.source).absolute() != Path(path).absolute():
                both = f"{quote(path)} and {quote(item.source)} would both be written to {quote(str(output / place))}"
                raise UsageError("OB201", both)
        if Path(text).is_dir():
            for file in _others(Path(text), output):
                files.setdefault(file.relative_to(text).as_posix(), file)
    others = {place: file for place, file in files.items() if place not in made and place not in (JOURNAL, *REPORTS)}
    return Tree(list(made.values()), others, output, hidden)


def in_place(named: Sequence[str]) -> Tree:
    """Write each model over itself.

    Raises:
        UsageError: OB201 for standard input.
        ModelError: OB301 for a folder or pattern without a model.
    """
    if "-" in named:
        raise UsageError("OB201", "--in-place has no place to write what comes from standard input: give -o")
    items: dict[Path, Item] = {}
    hidden: list[str] = []
    for text in named:
        found = search(text)
        hidden += found.hidden
        for path in found.models:
            items.setdefault(Path(path).absolute(), Item(path, path, is_plural([text])))
    return Tree(list(items.values()), {}, None, hidden)


def _base(text: str) -> Path | None:
    """The folder that places are relative to: that which was named, or of a pattern what comes before its first star."""
    if Path(text).is_dir():
        return Path(text)
    if not is_plural([text]):
        return None
    fixed: list[str] = []
    for part in Path(text).parts[:-1]:
        if any(character in part for character in "*?["):
            break
        fixed.append(part)
    return Path(*fixed)


def _outside(paths: Sequence[str], output: Path, named: str) -> list[str]:
    """Without what an earlier run wrote, where the output lies within the source."""
    if not is_plural([named]):
        return list(paths)
    home = output.absolute()
    found = [path for path in paths if not Path(path).absolute().is_relative_to(home)]
    if not found:
        raise ModelError("OB301", f"no model in {quote(named)} but those in the output folder")
    return found


def _others(folder: Path, output: Path) -> Iterator[Path]:
    """Other files in a folder and below, hidden folders left out: they hold what tools keep, not what belongs to models."""
    home = output.absolute()
    models = {Path(path).absolute() for path in find_models([str(folder)])}
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not is_hidden(name) and Path(place, name).absolute() != home]
        ours = REPORTS if JOURNAL in names else ()
        for name in sorted(names):
            file = Path(place, name)
            kept = not name.startswith(_LEFTOVERS) and name not in ours and file.absolute() not in models
            if kept and file.is_file():
                yield file


def _same(one: Path, other: Path) -> bool:
    return other.exists() and one.exists() and one.samefile(other)
