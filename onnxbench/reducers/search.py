"""Find a minimal failing subset, with as few questions as can be.

`fails(subset)` answers whether a subset, in the order of `items`, still fails. Every function starts from items that are known
to fail and returns a subset that was seen to fail.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TypeVar

T = TypeVar("T")
Fails = Callable[[list[T]], bool]
#: Told what is likely asked next, so that answers can be sought side by side.
Expect = Callable[[Iterable[list[T]]], None]


def _expect_nothing(questions: Iterable[list[T]]) -> None:
    pass


def _nothing_likely() -> Iterable[list[T]]:
    return ()


def minimise(
    items: Sequence[T],
    fails: Fails[T],
    expect: Expect[T] = _expect_nothing,
    likely: Callable[[], Iterable[list[T]]] = _nothing_likely,
) -> list[T]:
    """A 1-minimal failing subset: halve, search what is scattered, then sweep to a fixpoint.

    Args:
        items: known to fail.
        fails: answers.
        expect: told what is likely asked next.
        likely: subsets that are asked about when halving leads nowhere; asking for them may cost something.
    """
    return sweep(narrow(items, fails, expect, likely), fails, expect)


def narrow(
    items: Sequence[T],
    fails: Fails[T],
    expect: Expect[T] = _expect_nothing,
    likely: Callable[[], Iterable[list[T]]] = _nothing_likely,
) -> list[T]:
    """Optimistic halving, and a search from both ends when more than one item is needed.

    One culprit among n takes ceil(log2 n) + 1 questions: a half that passes is taken to put the culprit in the other
    half, which is asked about only at the end.
    """
    failing = current = list(items)
    while len(current) > 1:
        left, right = current[: len(current) // 2], current[len(current) // 2 :]
        expect(half for half in (left, right[: len(right) // 2], left[: len(left) // 2]) if half)
        if fails(left):
            failing = current = left
        else:
            current = right
    if current is failing or fails(current):
        return current
    hint = next((subset for subset in likely() if fails(subset)), None)
    return hint if hint is not None else _scattered(failing, fails)


def _scattered(items: list[T], fails: Fails[T]) -> list[T]:
    """Fix the last needed item, then the first, then the next from the outside in: log2 n + 1 questions each.

    (A prefix search with a fixed needed set; both ends in turn, because what fails together mostly lies together.)
    Holds throughout: head + pool + tail was seen to fail.
    """
    head: list[T] = []
    tail: list[T] = []
    pool = items
    from_the_end = True
    while pool:
        if from_the_end:
            pool = pool[: _shortest(len(pool), partial(_with_first, fails, head, pool, tail))]
            pool, tail = pool[:-1], [pool[-1], *tail]
        else:
            pool = pool[-_shortest(len(pool), partial(_with_last, fails, head, pool, tail)) :]
            head, pool = [*head, pool[0]], pool[1:]
        if pool and fails([*head, *tail]):
            pool = []
        from_the_end = not from_the_end
    return [*head, *tail]


def _with_first(fails: Fails[T], head: list[T], pool: list[T], tail: list[T], count: int) -> bool:
    return fails([*head, *pool[:count], *tail])


def _with_last(fails: Fails[T], head: list[T], pool: list[T], tail: list[T], count: int) -> bool:
    return fails([*head, *pool[-count:], *tail])


def _shortest(length: int, fails: Callable[[int], bool]) -> int:
    """The smallest n from 1 on for which `fails(n)`, given that it holds for `length`."""
    low, high = 1, length
    while low < high:
        middle = (low + high) // 2
        if fails(middle):
            high = middle
        else:
            low = middle + 1
    return high


def sweep(items: Sequence[T], fails: Fails[T], expect: Expect[T] = _expect_nothing) -> list[T]:
    """Drop runs of items, long ones first, until no single one can go."""
    left = list(items)
    size = max(1, len(left) // 2)
    while True:
        before = len(left)
        left = _drop_runs(left, size, fails, expect)
        if size > 1:
            size //= 2
        elif len(left) == before:
            return left


def _drop_runs(items: list[T], size: int, fails: Fails[T], expect: Expect[T]) -> list[T]:
    left, start = items, 0
    while start < len(left):
        rest = left[:start] + left[start + size :]
        now = left
        expect(now[:i] + now[i + size :] for i in range(start, len(now), size) if len(now) > size)
        if rest and fails(rest):
            left = rest
        else:
            start += size
    return left
