"""Which optimizations a failure needs: the lowest level that fails, and what cures it when it is switched off alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from onnxbench.reducers.oracle import Verdict
from onnxbench.runtimes.base import Runtime

Ask = Callable[[Runtime], Verdict]


@dataclass(frozen=True, slots=True)
class Cures:
    """What was seen to make a difference.

    Attributes:
        lowest: the suspect at the lowest of its levels that fails; None if it has no levels, or none fails again.
        optimizers: names of optimizations of which switching off any one makes the failure go.
    """

    lowest: Runtime | None = None
    optimizers: tuple[str, ...] = ()


def find_cures(suspect: Runtime, ask: Ask) -> Cures:
    """Ask the reproducer at other settings of the suspect.

    Names may be listed that this release does not have, and runtimes ignore those: only a failure that was seen to go counts.

    Args:
        suspect: the runtime that fails.
        ask: what the reproducer does on another runtime.
    """
    levels = suspect.levels()
    lowest = next((runtime for runtime in levels if ask(runtime) == "same"), None)
    if lowest is None or lowest is levels[0]:  # it fails without optimizations, too
        return Cures(lowest)
    return Cures(lowest, tuple(_cures_among(suspect, ask, list(suspect.optimizers()))))


def _cures_among(suspect: Runtime, ask: Ask, names: Sequence[str]) -> list[str]:
    """Those that cure alone: a group without any of them does not, so most are ruled out many at a time."""
    if not names or ask(suspect.without(names)) != "gone":
        return []
    if len(names) == 1:
        return list(names)
    middle = len(names) // 2
    return [*_cures_among(suspect, ask, names[:middle]), *_cures_among(suspect, ask, names[middle:])]
