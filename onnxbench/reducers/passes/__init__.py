"""The shrinking passes, a file for each; a new one is found by being here."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from onnxbench.reducers.shrink import Shrinker


@dataclass(frozen=True, slots=True)
class Pass:
    """A way to make a reproducer smaller.

    Attributes:
        name: what users type.
        sentence: what it does.
        rank: passes with a low one come first.
        run: proposes smaller reproducers to a shrinker.
        last: whether it waits until the others find nothing more.
        anonymizes: whether `--anonymize` needs it.
        optional: whether it runs only to anonymize.
        newer: whether older releases may not load what it makes.
    """

    name: str
    sentence: str
    rank: int
    run: Callable[[Shrinker], None]
    last: bool = False
    anonymizes: bool = False
    optional: bool = False
    newer: bool = False


_passes: dict[str, Pass] = {}


def shrink_pass(
    name: str,
    sentence: str,
    rank: int,
    *,
    last: bool = False,
    anonymizes: bool = False,
    optional: bool = False,
    newer: bool = False,
) -> Callable[[Callable[[Shrinker], None]], Callable[[Shrinker], None]]:
    """Register a function as a pass; the arguments are those of `Pass`."""

    def register(run: Callable[[Shrinker], None]) -> Callable[[Shrinker], None]:
        _passes[name] = Pass(name, sentence, rank, run, last, anonymizes, optional, newer)
        return run

    return register


@cache
def catalogue() -> dict[str, Pass]:
    """Every pass by name, in the order in which they run."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
    return dict(sorted(_passes.items(), key=lambda item: (item[1].last, item[1].rank)))
