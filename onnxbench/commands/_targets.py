"""Where the results of a command that writes models go: a file, a stream, the source itself, or a folder of many."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from onnxbench.errors import UsageError, quote


@dataclass(frozen=True, slots=True)
class Target:
    """One model to read, and the file to write; `force` where it is replaced on purpose."""

    source: str
    output: str
    force: bool


def targets(models: Sequence[str], output: str | None, *, in_place: bool, force: bool) -> list[Target]:
    """What to read and where to write it.

    One model goes to a file, to `-`, into a folder that is there, or in its own place; several, a folder or a pattern into
    a folder, which is made, with the tree below each folder that was named.

    Raises:
        UsageError: OB201 if that cannot be told, or two models would take one place.
        ModelError: OB301 for a folder or a pattern without a model.
    """
    from onnxbench.core.files import find_models, is_plural

    if in_place and output is not None:
        raise _wrong("--in-place writes over the model itself: leave out -o")
    if in_place:
        found = find_models(models)
        if "-" in found:
            raise _wrong("--in-place has no place to write what comes from standard input: give -o")
        return [Target(path, path, True) for path in found]
    if output is None:
        raise _wrong("it is not said where to write: give -o FILE, -o - for standard output, or --in-place")
    if not is_plural(models):
        (source,) = models
        return [Target(source, _single(source, output), force)]
    return _many(models, output, force)


def _single(source: str, output: str) -> str:
    if output != "-" and (Path(output).is_dir() or output.endswith(os.sep)):
        name = "model.onnx" if source == "-" else Path(source).name
        return str(Path(output) / name)
    return output


def _many(models: Sequence[str], output: str, force: bool) -> list[Target]:
    from onnxbench.core.files import find_models

    if output == "-" or Path(output).is_file():
        raise _wrong(f"several models go into a folder, and {quote(output)} is none")
    made: dict[Path, str] = {}
    for named in models:
        base = Path(named) if Path(named).is_dir() else None
        for path in find_models([named]):
            place = Path(output) / (Path(path).relative_to(base) if base is not None else Path(path).name)
            if made.setdefault(place, path) != path:
                raise _wrong(f"{quote(path)} and {quote(made[place])} would both be written to {quote(str(place))}")
    return [Target(path, str(place), force) for place, path in made.items()]


def _wrong(message: str) -> UsageError:
    return UsageError("OB201", message)
