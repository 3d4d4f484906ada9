"""Models in hidden folders, which a search below a folder leaves out: they belong to tools, not to whoever named the folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from onnxbench.core.files import find_models
from onnxbench.errors import ModelError, quote


@dataclass(frozen=True, slots=True)
class Search:
    """What a word of the command line leads to: models, and those that are left out."""

    models: list[str]
    hidden: list[str]


def is_hidden(name: str) -> bool:
    """Whether only tools look into a folder of this name: .git, .venv, __pycache__."""
    return name.startswith(".") or name == "__pycache__"


def search(text: str) -> Search:
    """The models of a file, a folder or a pattern; of a folder, those below hidden folders are left out.

    Raises:
        ModelError: OB301 for a folder or pattern without a model.
    """
    found = find_models([text])
    if not Path(text).is_dir():
        return Search(found, [])
    hidden = [path for path in found if _is_below_hidden(Path(path), Path(text))]
    if found == hidden:
        fact = f"no model in {quote(text)} but in hidden folders, like {quote(hidden[0])}"
        raise ModelError("OB301", fact, hint="name the hidden folder itself")
    return Search([path for path in found if path not in set(hidden)], hidden)


def _is_below_hidden(path: Path, folder: Path) -> bool:
    # A folder that cannot be read stands for what may be in it.
    way = path.relative_to(folder) if path.is_dir() else path.relative_to(folder).parent
    return any(is_hidden(part) for part in way.parts)


def told(hidden: list[str]) -> str:
    """A sentence about models that are left out; empty if there are none."""
    if not hidden:
        return ""
    count = len(hidden)
    some = ", ".join(hidden[:3]) + (", ..." if count > 3 else "")
    return f"{count} model{'s' * (count != 1)} in hidden folders {'were' if count != 1 else 'was'} left out: {some}"
