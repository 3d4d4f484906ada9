"""The shrinking phase of a reduction: from the few nodes that the search left to the smallest model of them."""

from __future__ import annotations

import difflib
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from onnxbench.core.subgraph import Piece
from onnxbench.errors import UsageError, quote
from onnxbench.reducers.course import Course
from onnxbench.reducers.engine import Found
from onnxbench.reducers.oracle import Answer, Oracle
from onnxbench.reducers.passes import Pass, catalogue
from onnxbench.reducers.reproducer import Reproducer
from onnxbench.reducers.result import Record
from onnxbench.reducers.settle import Settler
from onnxbench.reducers.shrink import Shrinker

#: Seconds that shrinking may take, if the search took less; else as long as the search.
_LEAST_S = 30.0


@dataclass(slots=True)
class Shrunk:
    """What shrinking found.

    Attributes:
        found: the smallest reproducer, with the nodes of the original that it has left.
        gone: candidates that passed, the last ones.
        records: what each pass achieved.
        notes: what the reader should know.
    """

    found: Found
    gone: list[Reproducer] = field(default_factory=list)
    records: list[Record] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def choose_passes(
    only: Sequence[str] | None, skipped: Sequence[str] = (), *, anonymize: bool = False, loadable: bool = False
) -> list[Pass]:
    """The passes to run, in their order; those that anonymity needs are there whatever was chosen.

    Args:
        only: names of those to run; None for all.
        skipped: names of those not to run.
        anonymize: whether names and values must not tell of the original.
        loadable: whether releases that load the original must load the result too.

    Raises:
        UsageError: OB201 for a name that no pass has.
    """
    known = catalogue()
    for name in (*(only or ()), *skipped):
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {quote(near[0])}?" if near else "onnxbench reduce --list-passes"
            raise UsageError("OB201", f"there is no pass {quote(name)}", hint=hint)
    return [
        entry
        for entry in known.values()
        if (anonymize and entry.anonymizes)
        or (
            not (entry.optional or (loadable and entry.newer))
            and (only is None or entry.name in only)
            and entry.name not in skipped
        )
    ]


def shrink(start: Found, oracle: Oracle, passes: Sequence[Pass], course: Course, spent: float, shrunk: Shrunk) -> None:
    """Make a reproducer smaller; `shrunk` is right at any moment, also when Ctrl-C ends this.

    Args:
        start: what the search found.
        oracle: answers.
        passes: in their order.
        course: told how far it is.
        spent: seconds that the search took.
        shrunk: gets the result.
    """
    places = start.piece.origin
    names = {node.index: node.proto.name for node in start.nodes}
    origin = tuple(names[place] for place in places)

    def ask(candidate: Reproducer) -> Answer:
        piece = Piece(candidate.model, dict(candidate.feeds), (), places)
        answer = oracle.ask(piece)
        remembered = answer.verdict == "same" and answer.outcome is None  # that it fails is known, and not how
        return oracle.look(piece) if remembered else answer

    settler = Settler(oracle.limits)
    best = Reproducer(start.piece.model, start.piece.feeds, origin)
    shrinker = Shrinker(best, start.answer, ask, settler, deadline=time.monotonic() + max(_LEAST_S, spent))
    shrinker.tick = lambda s: course.judged("shrinking", s.best.model, oracle.checks, oracle.remembered, s.at)
    try:
        if passes:
            settler.begin(best)
            shrinker.run(passes)
    finally:
        piece = Piece(shrinker.best.model, dict(shrinker.best.feeds), (), places)
        shrunk.found = Found(start.nodes, piece, shrinker.answer)
        shrunk.gone = list(shrinker.gone)
        shrunk.records, shrunk.notes = list(shrinker.records.values()), shrinker.notes
