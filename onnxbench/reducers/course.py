"""The course of a reduction: what is left, what is at work, and when it last became smaller."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from onnxbench.core.counts import count_nodes, stored_bytes
from onnxbench.core.model import Model

Phase = Literal["recording", "searching", "shrinking"]


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a reduction is.

    Attributes:
        phase: what is done; "recording" has `done` of `total` nodes, and says nothing of what is left.
        at: the shrinking pass at work, or "".
        nodes_before, nodes: of the original, and those that are left; bodies and functions counted.
        bytes_before, bytes: the same of the model as a file, weights included.
        checks: candidates judged; `remembered` of them are known from an earlier search.
        idle: seconds since it last became smaller.
    """

    phase: Phase
    at: str = ""
    nodes_before: int = 0
    nodes: int = 0
    bytes_before: int = 0
    bytes: int = 0
    checks: int = 0
    remembered: int = 0
    idle: float = 0.0
    done: int = 0
    total: int = 0


@dataclass(frozen=True, slots=True)
class Point:
    """What was left after so many seconds and candidates: nodes with bodies and functions, and bytes with weights."""

    seconds: float
    checks: int
    nodes: int
    bytes: int


def silent(progress: Progress) -> None:
    """Tell nobody."""


@dataclass(slots=True)
class Course:
    """Keeps the curve of one reduction, and tells how far it is.

    Attributes:
        nodes_before, bytes_before: of the original, as in `Progress`.
        tell: told after each candidate.
        began: the reduction's start on the monotonic clock.
        curve: the original, and each best candidate that was smaller than the one before.
    """

    nodes_before: int
    bytes_before: int
    tell: Callable[[Progress], None] = silent
    began: float = field(default_factory=time.monotonic)
    curve: list[Point] = field(default_factory=list)
    _measured: Model | None = None
    _improved: float = 0.0

    def __post_init__(self) -> None:
        self._improved = time.monotonic()
        self.curve.append(Point(round(self._improved - self.began, 3), 0, self.nodes_before, self.bytes_before))

    def recorded(self, done: int, total: int) -> None:
        """So many nodes have their values recorded."""
        self.tell(Progress("recording", done=done, total=total))

    def judged(self, phase: Phase, best: Model | None, checks: int, remembered: int, at: str = "") -> None:
        """A candidate was judged; `best` is the smallest that fails so far."""
        if best is not None and best is not self._measured:
            self._measured = best
            self._measure(best, checks)
        last = self.curve[-1]
        self.tell(
            Progress(
                phase,
                at,
                *(self.nodes_before, last.nodes, self.bytes_before, last.bytes, checks, remembered),
                idle=time.monotonic() - self._improved,
            )
        )

    def ended(self, best: Model, checks: int) -> None:
        """The reproducer that goes back ends the curve, whatever short names have added to its bytes."""
        point = self._point(best, checks)
        if (point.nodes, point.bytes) != (self.curve[-1].nodes, self.curve[-1].bytes):
            self.curve.append(point)

    def _point(self, best: Model, checks: int) -> Point:
        seconds = round(time.monotonic() - self.began, 3)
        return Point(seconds, checks, count_nodes(best.proto)[1], stored_bytes(best))

    def _measure(self, best: Model, checks: int) -> None:
        """Note what is left, if that is less than before: a body that was entered may have more nodes than its Loop."""
        point = self._point(best, checks)
        if (point.nodes, point.bytes) < (self.curve[-1].nodes, self.curve[-1].bytes):
            self.curve.append(point)
            self._improved = time.monotonic()
