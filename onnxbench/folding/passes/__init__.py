"""Passes of a fold: each proposes, from what is known of one graph; adding one is adding a file here."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from onnxbench.folding.changes import Changes

Propose = Callable[[Changes], None]


@dataclass(frozen=True, slots=True)
class Pass:
    """A registered pass; those with a lower `rank` propose first.

    A late one is about the operator that `late` names, and proposes when no other has anything left to do.
    """

    name: str
    sentence: str
    rank: int
    propose: Propose
    late: str = ""


_PASSES: list[Pass] = []


def fold_pass(name: str, sentence: str, *, rank: int = 5, late: str = "") -> Callable[[Propose], Propose]:
    """Register a pass; `sentence` says what it does.

    One that takes too long to be asked while others find work is late: it names the operator that it is about.
    """

    def register(propose: Propose) -> Propose:
        _PASSES.append(Pass(name, sentence, rank, propose, late))
        return propose

    return register


@cache
def passes() -> tuple[Pass, ...]:
    """All of them, in the order in which they propose."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
    return tuple(sorted(_PASSES, key=lambda entry: (entry.rank, entry.name)))
