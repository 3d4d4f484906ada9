"""Shrink a reproducer: passes propose, and what is smaller, valid and fails the same way is kept."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from onnxbench.core.values import Value, is_float
from onnxbench.errors import BenchError
from onnxbench.reducers.measure import Size, size
from onnxbench.reducers.oracle import Answer, Verdict
from onnxbench.reducers.passes import Pass
from onnxbench.reducers.reproducer import Reproducer
from onnxbench.reducers.result import Record
from onnxbench.reducers.settle import Settler

#: A difference of so many tolerances is a finding; below it may be rounding.
_CLEAR = 10.0
#: Rounds of all passes; each round but the last made something smaller.
_ROUNDS = 8
#: Candidates that passed and are remembered: each may hold some MiB.
_KEPT = 4

Key = TypeVar("Key")


class OutOfTime(Exception):
    """Shrinking has taken as long as it may."""


@dataclass(slots=True)
class Shrinker:
    """Makes a reproducer smaller, and keeps the smallest that fails.

    `best` is whole at any moment: a KeyboardInterrupt out of a question leaves the best so far.

    Attributes:
        best: the smallest reproducer that failed.
        answer: what it did.
        ask: whether a candidate fails the same way.
        settler: tells whether a candidate makes sense, and what it returns.
        tick: called after each question.
        deadline: `time.monotonic()` after which nothing is asked.
        records: what each pass achieved.
        notes: what the reader should know.
        gone: the last candidates that passed, for comparison.
        verdict: of the last candidate; None if it was not asked.
    """

    best: Reproducer
    answer: Answer
    ask: Callable[[Reproducer], Answer]
    settler: Settler
    tick: Callable[[Shrinker], None] = lambda shrinker: None
    deadline: float = math.inf
    records: dict[str, Record] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    gone: deque[Reproducer] = field(default_factory=lambda: deque(maxlen=_KEPT))
    verdict: Verdict | None = None
    _size: Size = ()
    _asked: set[bytes] = field(default_factory=set)
    _gave_up: set[str] = field(default_factory=set)
    _start: Answer | None = None
    _odd_start: bool = False
    _record: Record = field(default_factory=lambda: Record(""))
    _accepted: int = 0

    def __post_init__(self) -> None:
        self._size, self._start = size(self.best), self.answer
        self._odd_start = any(map(_is_ill, self.best.feeds.values()))
        self._asked.add(self.best.key())

    @property
    def at(self) -> str:
        """The pass at work."""
        return self._record.name

    def run(self, passes: Sequence[Pass]) -> None:
        """Run the passes until none of them finds anything smaller, those that are last once after the others."""
        seen: dict[str, int] = {}
        self.records.update((entry.name, Record(entry.name)) for entry in passes)
        try:
            for _ in range(_ROUNDS):
                waiting = [p for p in passes if not p.last and self._is_due(p, seen)]
                if not waiting:
                    break
                for entry in waiting:
                    if self._is_due(entry, seen):
                        self._run(entry)
                        seen[entry.name] = self._accepted
            for entry in passes:
                if entry.last:
                    self._run(entry)
        except OutOfTime:
            self.notes.append("shrinking took its share of the time and was stopped; it may go on from the result")

    def _is_due(self, entry: Pass, seen: Mapping[str, int]) -> bool:
        """Whether anything has changed since a pass ran, and it did not give up."""
        return entry.name not in self._gave_up and seen.get(entry.name) != self._accepted

    def _run(self, entry: Pass) -> None:
        self._record = self.records[entry.name]
        try:
            entry.run(self)
        except BenchError as error:  # such as weights that are gone; what was found so far is no worse for it
            self._gave_up.add(entry.name)
            self.notes.append(f"the pass {entry.name} gave up: {error.message}")

    def consider(self, candidate: Reproducer | None, *, larger: bool = False) -> bool:
        """Whether a candidate is taken: smaller, not asked before, sensible, and failing the same way.

        Args:
            candidate: None is none.
            larger: take it even if it is not smaller, for anonymity.
        """
        self.verdict = None
        if candidate is None:
            return False
        if not larger and size(candidate) >= self._size:
            return False
        settled = self._settle(candidate)
        if settled is None:
            return False
        measured = size(settled)
        if not larger and measured >= self._size:
            return False
        if time.monotonic() > self.deadline:
            raise OutOfTime
        answer = self.ask(settled)
        self._record.tried += 1
        self.verdict = answer.verdict
        if answer.verdict == "same" and not self._slips(answer):
            self.best, self.answer, self._size = settled, answer, measured
            self._record.accepted += 1
            self._accepted += 1
            self.tick(self)
            return True
        if answer.verdict == "gone":
            self.gone.append(settled)
        self.tick(self)
        return False

    def _settle(self, candidate: Reproducer) -> Reproducer | None:
        """The candidate with its outputs declared, if it is new and makes sense."""
        key = candidate.key()
        if key in self._asked:
            return None
        self._asked.add(key)
        if not self._odd_start and any(map(_is_ill, candidate.feeds.values())):
            return None
        settled = self.settler.settle(candidate)
        if settled is not None:
            self._asked.add(settled.key())
        return settled

    def _slips(self, answer: Answer) -> bool:
        """Whether a clear difference would become one that rounding explains."""
        assert self._start is not None
        clear = _tolerances(self._start)
        return clear is not None and clear >= _CLEAR and (_tolerances(answer) or 0.0) < _CLEAR

    def lump(self, keys: Sequence[Key], edit: Callable[[Reproducer, Sequence[Key]], Reproducer | None]) -> None:
        """Edit as many of the keys as can be: all at once, else each half by itself, and so on.

        Keys must mean the same after any of the edits.
        """
        pending = [list(keys)]
        while pending:
            part = pending.pop()
            if not part or self.consider(edit(self.best, part)) or len(part) == 1:
                continue
            pending += [part[len(part) // 2 :], part[: len(part) // 2]]


def _tolerances(answer: Answer) -> float | None:
    """The largest difference in tolerances; None where values are not what differs."""
    found = [d for d in answer.differences if d.kind == "values"]
    # Where zeros are wanted nothing is allowed, and any rounding would be infinitely wrong.
    times = [d.max_abs * 1e4 if math.isinf(d.tolerances) else d.tolerances for d in found]
    return max((t for t in times if not math.isnan(t)), default=None)


def _is_ill(value: Value) -> bool:
    """Whether a fed value holds what makes runtimes differ by right: NaN, Inf, denormal numbers."""
    if not isinstance(value, np.ndarray) or not is_float(value.dtype):
        return False
    with np.errstate(all="ignore"):
        wide = np.abs(value.astype(np.float64))
        tiny = np.finfo(value.dtype).tiny if value.dtype.kind == "f" else 0
        return bool((~np.isfinite(wide)).any() or ((wide > 0) & (wide < tiny)).any())
