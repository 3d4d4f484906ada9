"""The nearest model that passes: what a reader compares the reproducer with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from onnx import ModelProto

from onnxbench.core.compare import Tolerance, differ
from onnxbench.core.counts import stored_bytes
from onnxbench.core.model import Model
from onnxbench.core.shapes import Shapes, propagate
from onnxbench.core.values import Value
from onnxbench.errors import BenchError, quote
from onnxbench.reducers.engine import Found
from onnxbench.reducers.oracle import Answer, Oracle
from onnxbench.reducers.passes import Pass
from onnxbench.reducers.reproducer import Reproducer
from onnxbench.reducers.settle import Settler
from onnxbench.reducers.shrink import Shrinker
from onnxbench.runtimes.base import Limits

if TYPE_CHECKING:
    from onnxbench.inspecting.diff import Change, Diff

#: Candidates that are looked at again, the last ones first.
_TRIED = 3
#: More differences than that help nobody.
_MOST = 12
#: Bytes of a model and its inputs that anybody can be sent, however small the reproducer is.
_LIGHT = 1 << 20


@dataclass(frozen=True, slots=True)
class Near:
    """A reproducer's neighbour that passes, and how it differs, in words."""

    reproducer: Reproducer
    differs: tuple[str, ...]
    fed_alike: bool


def find_passing(best: Found, gone: Sequence[Reproducer], oracle: Oracle, passes: Sequence[Pass]) -> Near | None:
    """The candidate that differs least from the reproducer, seen to pass once more; None if there is none.

    Args:
        best: the reproducer.
        gone: candidates that passed, in the order in which they were judged.
        oracle: answers, whatever its budget.
        passes: those that ran; the last of them make names and notes alike.
    """
    found: list[Near] = []
    limits, heaviest = oracle.limits, max(_LIGHT, 2 * _bytes(best.piece.model, best.piece.feeds))
    light = [candidate for candidate in gone if _bytes(candidate.model, candidate.feeds) <= heaviest]
    for candidate in light[: -_TRIED - 1 : -1]:
        try:
            tidied = _tidied(candidate, oracle, [entry for entry in passes if entry.last and not entry.optional])
            near = _compared(best, tidied, limits)
        except BenchError:  # such as a weight that is gone
            continue
        if 0 < len(near.differs) <= _MOST:
            found.append(near)
    nearest = min(found, key=lambda near: len(near.differs), default=None)
    return nearest if nearest is not None and _passes(nearest.reproducer, oracle) else None


def _bytes(model: Model, feeds: Mapping[str, Value]) -> int:
    return stored_bytes(model) + sum(value.nbytes for value in feeds.values() if isinstance(value, np.ndarray))


def _tidied(candidate: Reproducer, oracle: Oracle, passes: Sequence[Pass]) -> Reproducer:
    """The candidate after the passes that rename and drop notes, as far as it still passes."""

    def ask(edited: Reproducer) -> Answer:
        return Answer("same" if _passes(edited, oracle) else "unsure")

    settler = Settler(oracle.limits)
    settler.begin(candidate)
    shrinker = Shrinker(candidate, Answer("same"), ask, settler)
    shrinker.run(passes)
    return shrinker.best


def _passes(candidate: Reproducer, oracle: Oracle) -> bool:
    return oracle.look(candidate.piece()).verdict == "gone"


def _compared(best: Found, candidate: Reproducer, limits: Limits) -> Near:
    def shapes(model: Model) -> Shapes:
        return propagate(model, timeout=limits.timeout, memory=limits.memory)

    exact = Tolerance(0.0, 0.0)
    ours, theirs = best.piece.feeds, candidate.feeds
    fed = [name for name in theirs if name in ours and differ(ours[name], theirs[name], exact) is not None]
    from onnxbench.inspecting.diff import diff

    found = diff(best.piece.model, candidate.model, shapes)
    retyped = {change.where for change in found.types}
    swapped = _swapped(best.piece.model.proto, candidate.proto)
    apart = () if found.matched or swapped else ("no node of it is in the reproducer",)
    told = [
        *apart,
        *_sentences(found, swapped),
        *(f"{quote(name)} is fed other values" for name in fed if name not in retyped),
    ]
    return Near(candidate, tuple(told), not fed and ours.keys() == theirs.keys())


def _swapped(ours: ModelProto, theirs: ModelProto) -> bool:
    """Whether the graphs differ in one node, where another makes the same values of the same ones."""
    one, other = ours.graph.node, theirs.graph.node
    odd = [(a, b) for a, b in zip(one, other, strict=False) if a.op_type != b.op_type]
    return (
        len(one) == len(other)
        and len(odd) == 1
        and all(a.output == b.output and set(b.input) <= set(a.input) for a, b in odd)
    )


def _sentences(found: Diff, swapped: bool) -> Iterator[str]:
    """What differs; `swapped` if one node has another in its place."""
    if swapped and len(found.removed) == len(found.added) == 1:
        yield f"it has {found.added[0]} in the place of {found.removed[0]}"
    else:
        yield from (f"it is without {label}" for label in found.removed)
        yield from (f"it has {label} besides" for label in found.added)
    for change in [*found.head, *found.changed, *found.types]:
        yield _sentence(change)
    said = {name for change in found.changed for name in (change.before, change.after)}
    for weight in found.weights:
        if (weight.before or weight.after) in said:
            continue
        kind = {"removed": "is not there", "added": "is there"}.get(weight.what, f"has other {weight.what}")
        yield f"initializer {quote(weight.before or weight.after)} {kind}"


def _sentence(change: Change) -> str:
    what = "" if change.what == "type" else f" {change.what}"
    place = change.where if change.where.startswith("'") else quote(change.where)
    if change.after is None:
        return f"{place}{what} is not there (in the reproducer it is {change.before})"
    if change.before is None:
        return f"{place}{what} is {change.after} (the reproducer has none)"
    return f"{place}{what} is {change.after}, not {change.before}"
