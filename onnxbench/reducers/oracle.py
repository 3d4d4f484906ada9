"""Ask a candidate whether it fails the same way as the original."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Literal, cast

from onnxbench.core import check
from onnxbench.core.compare import Difference, Tolerance, differ_all
from onnxbench.core.feeds import generate
from onnxbench.core.graph import GraphView
from onnxbench.core.kinds import kinds_of_difference
from onnxbench.core.model import Model
from onnxbench.core.subgraph import Piece
from onnxbench.core.values import Value
from onnxbench.errors import BenchError
from onnxbench.reducers.journal import Journal, key_of
from onnxbench.reducers.normalise import normalise
from onnxbench.reducers.signature import Signature, names_in, of_differences, of_kinds, of_outcome
from onnxbench.reducers.slowness import slowness
from onnxbench.runtimes.base import Limits, Runtime
from onnxbench.runtimes.outcome import Outcome

Verdict = Literal["same", "other", "gone", "unsure"]


@dataclass(frozen=True, slots=True)
class Answer:
    """What a candidate did.

    Attributes:
        verdict: "same" failure, "other" failure, "gone", or "unsure" (the candidate is not valid, or cannot be judged).
        signature: the failure that was seen, if any.
        outcome: the suspect's run, if it came to one.
        expected: what the trusted runtime computed, for wrong numbers.
        differences: of the outputs, for wrong numbers.
    """

    verdict: Verdict
    signature: Signature | None = None
    outcome: Outcome | None = None
    expected: Mapping[str, Value] = field(default_factory=dict)
    differences: Sequence[Difference] = ()


class BudgetSpent(Exception):
    """The search has taken the time or the checks that it was given."""


@dataclass(slots=True)
class Oracle:
    """The question of one reduction.

    Attributes:
        suspect: the runtime that fails.
        judge: who tells right numbers: the one that told them of the original. Another might see other differences.
        signature: the failure to keep.
        fault: what the checker says of the original, normalised; None if nothing.
        names: of the original's nodes and values. Messages are read with all of them, whatever a candidate still has:
            a value called "input" must not make the word another one in each candidate.
        tolerance: for numbers.
        limits: of each run.
        patience: limits of the suspect's runs, if they are shorter ones; whoever takes longer does not fail the same way.
        repeats: how often a flaky candidate is asked before it counts as passing.
        slower_than: the ratio of times above which a run is slow, for that signature.
        hasty: whether recorded values speak for the judge, who is then asked at the end (`look`), of what is left.
        checks: candidates judged so far, the `remembered` ones of an earlier search included.
        journal: where verdicts are kept.
        deadline: when to stop, on the monotonic clock.
        most: candidates after which to stop.
    """

    suspect: Runtime
    judge: Runtime | None
    signature: Signature
    fault: str | None
    names: Set[str]
    tolerance: Tolerance
    limits: Limits
    repeats: int = 1
    patience: Limits | None = None
    slower_than: float = 1.0
    hasty: bool = False
    checks: int = 0
    journal: Journal = field(default_factory=Journal)
    deadline: float | None = None
    most: int | None = None
    remembered: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def ask(self, piece: Piece, recorded: Mapping[str, Value] | None = None) -> Answer:
        """Whether the piece fails the same way.

        Args:
            piece: inputs without a value get generated ones.
            recorded: right values by name; where they agree with the suspect's the trusted runtime need not run.
        """
        with self.lock:
            self._count()
        if self.suspect.needs_feeds and not complete(piece):
            return Answer("unsure")
        key = key_of(piece.model, piece.feeds)
        if key in self.journal.known:
            self.remembered += 1
            return Answer(cast(Verdict, self.journal.known[key]))
        answer = self._look(piece, recorded or {})
        with self.lock:
            self.journal.note(key, answer.verdict, nodes=len(piece.model.proto.graph.node))
        return answer

    def _count(self) -> None:
        if (self.deadline is not None and time.monotonic() > self.deadline) or (
            self.most is not None and self.checks >= self.most
        ):
            raise BudgetSpent
        self.checks += 1

    def look(self, piece: Piece) -> Answer:
        """The same, whatever is remembered or recorded; with the outcome, and what the judge says of it."""
        return self._look(piece, {})

    def passes(self, piece: Piece, right: Mapping[str, Value]) -> bool:
        """Whether a piece that should give these values, where they are known, does not fail; this is no check."""
        return self._look(piece, right).verdict == "gone"

    def _look(self, piece: Piece, recorded: Mapping[str, Value]) -> Answer:
        answer = Answer("unsure")
        for _ in range(self.repeats):
            answer = self._ask_once(piece, recorded)
            if answer.verdict in ("same", "unsure"):
                break
        if answer.verdict == "same" and not self._is_valid(piece.model):
            return Answer("unsure", answer.signature, answer.outcome)
        return answer

    def _ask_once(self, piece: Piece, recorded: Mapping[str, Value]) -> Answer:
        if self.signature.kind == "slow":
            return self._ask_speed(piece)
        outcome = self.suspect.run(piece.model, piece.feeds, limits=self.patience or self.limits)
        if outcome.kind == "timeout" and self.patience is not None:
            return Answer("other", None, outcome)  # and no failure to tell of: it might have ended in time
        if outcome.kind == "unknown":
            return Answer("unsure", None, outcome)
        if not outcome.ok:
            seen = of_outcome(outcome, self.names | names_in(piece.model.proto))
            return Answer("same" if seen == self.signature else "other", seen, outcome)
        if self.signature.kind != "numbers":
            return Answer("gone", None, outcome)
        right = _recorded(piece, outcome, recorded)
        if right is None:
            return self._judge(piece, outcome)
        kinds = kinds_of_difference(right, outcome.outputs, self.tolerance)
        if not kinds:
            return Answer("gone", None, outcome)
        if not self.hasty:
            return self._judge(piece, outcome)
        seen = of_kinds(kinds)  # and no outcome: this is no run of the judge
        return Answer("same" if seen == self.signature else "other", seen)

    def _ask_speed(self, piece: Piece) -> Answer:
        assert self.judge is not None
        ratio = slowness(self.suspect, self.judge, piece.model, piece.feeds, self.limits)
        if ratio is None:
            return Answer("unsure")
        return Answer("same" if ratio > self.slower_than else "gone", self.signature, Outcome("ok"))

    def _judge(self, piece: Piece, outcome: Outcome) -> Answer:
        assert self.judge is not None
        expected = self.judge.run(piece.model, piece.feeds, limits=self.limits)
        if not expected.ok:
            return Answer("unsure", None, outcome)
        differences = differ_all(expected.outputs, outcome.outputs, self.tolerance)
        if not differences:
            return Answer("gone", None, outcome, expected.outputs)
        seen = of_differences(differences)
        return Answer("same" if seen == self.signature else "other", seen, outcome, expected.outputs, differences)

    def _is_valid(self, model: Model) -> bool:
        """Whether the checker has no complaint that it did not have of the original."""
        limits = self.limits
        fault = check.fault(check.declared(model), timeout=limits.timeout, memory=limits.memory)
        return fault is None or (
            self.fault is not None and normalise(fault, self.names | names_in(model.proto)) == self.fault
        )


def _recorded(piece: Piece, outcome: Outcome, recorded: Mapping[str, Value]) -> dict[str, Value] | None:
    """What was recorded of a piece's outputs; None if something is not, or the suspect gives others."""
    names = [value.name for value in piece.model.proto.graph.output]
    if set(names) != set(outcome.outputs) or any(name not in recorded for name in names):
        return None
    return {name: recorded[name] for name in names}


def complete(piece: Piece) -> bool:
    """Give generated values to inputs that have none; whether all have one now."""
    if not piece.missing or all(name in piece.feeds for name in piece.missing):
        return True
    proto = piece.model.proto
    try:
        made = generate(GraphView(proto, proto.graph))
    except BenchError:
        return False
    piece.feeds.update((name, made[name]) for name in piece.missing if name in made)
    return all(name in piece.feeds for name in piece.missing)
