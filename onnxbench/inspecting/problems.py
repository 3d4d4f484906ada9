"""What is wrong with a model, or will be: each finding with a code, a place and a hint.

A rule is a function of the facts, registered with its code; adding one touches this package only.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Literal

from onnxbench.core.graph import GraphView
from onnxbench.core.model import Model
from onnxbench.core.shapes import Shapes
from onnxbench.errors import ModelError
from onnxbench.inspecting.operators import Operator
from onnxbench.inspecting.tensors import Tensors
from onnxbench.runtimes.base import Limits

Severity = Literal["error", "warning", "info"]


@dataclass(frozen=True, slots=True)
class Problem:
    """A finding. An "error" makes the model invalid, a "warning" will hurt somewhere, an "info" is worth knowing."""

    code: str
    severity: Severity
    place: str
    message: str
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Facts:
    """What rules look at.

    Attributes:
        tensor_faults: what is wrong with embedded tensors, by name.
        dead: indices of the nodes that no output needs.
        fault: the checker's complaint.
        note: why inference gave no answer, or "".
        limits: what a rule that asks another process may take.
    """

    model: Model
    view: GraphView
    shapes: Shapes
    operators: list[Operator]
    tensors: Tensors
    tensor_faults: list[tuple[str, ModelError]]
    dead: list[int]
    fault: str | None
    note: str
    limits: Limits


def and_more(first: str, count: int) -> str:
    """The first of several places, and how many more there are."""
    return f"{first} and {count - 1} more" if count > 1 else first


#: Finds places, messages and hints.
Finder = Callable[[Facts], Iterator[tuple[str, str, str]]]


@dataclass(frozen=True, slots=True)
class Entry:
    """A rule as documentation lists it."""

    code: str
    severity: Severity
    sentence: str
    rule: Finder


_ENTRIES: dict[str, Entry] = {}


def problem(code: str, severity: Severity, sentence: str) -> Callable[[Finder], None]:
    """Register a generator of (place, message, hint) under a code of the range OB6xx."""

    def register(rule: Finder) -> None:
        assert code not in _ENTRIES, code
        _ENTRIES[code] = Entry(code, severity, sentence, rule)

    return register


@cache
def catalogue() -> dict[str, Entry]:
    """Every rule by code."""
    from onnxbench.inspecting import rules

    for module in pkgutil.iter_modules(rules.__path__):
        importlib.import_module(f"onnxbench.inspecting.rules.{module.name}")
    return dict(sorted(_ENTRIES.items()))


def find_problems(facts: Facts) -> list[Problem]:
    """All findings, errors first, then in the order of their codes."""
    found = [
        Problem(entry.code, entry.severity, place, message, hint)
        for entry in catalogue().values()
        for place, message, hint in entry.rule(facts)
    ]
    rank = {"error": 0, "warning": 1, "info": 2}
    return sorted(found, key=lambda p: (rank[p.severity], p.code))
