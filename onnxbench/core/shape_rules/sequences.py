"""Sequences and optionals."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from onnxbench.core.shape_rules.facts import (
    BOOL,
    FLOAT,
    NOTHING,
    Dim,
    Fact,
    join,
    optional,
    scalar,
    sequence,
    tensor,
)
from onnxbench.core.shape_rules.registry import rule
from onnxbench.core.shape_rules.site import Site, as_size
from onnxbench.core.shape_rules.splicing import joined
from onnxbench.core.symbolic import ceildiv


def holding(items: Sequence[Fact]) -> Fact:
    """A sequence whose members are known one by one."""
    plain = tuple(items)
    return sequence(reduce(join, plain) if plain else None, plain)


@rule("SequenceEmpty")
def empty(site: Site) -> Sequence[Fact]:
    """No members, of a type that the attribute says."""
    return [sequence(tensor(site.integer("dtype", FLOAT)), ())]


@rule("SequenceConstruct")
def construct(site: Site) -> Sequence[Fact]:
    """The inputs are the members."""
    return [holding([fact for fact in site.inputs if fact is not None])]


@rule("SequenceInsert")
def insert(site: Site) -> Sequence[Fact]:
    """At the end if no place is given."""
    source, new = site.input(0), site.input(1)
    place = site.numbers(2)
    if source.items is not None and (not site.given(2) or place):
        items = list(source.items)
        where = len(items) if not place else int(place[0])
        items.insert(where + len(items) if where < 0 else where, new)
        return [holding(items)]
    return [sequence(join(source.inner, new) if source.inner is not None else None)]


@rule("SequenceErase")
def erase(site: Site) -> Sequence[Fact]:
    """The last one if no place is given."""
    source = site.input(0)
    place = site.numbers(1)
    if source.items and (not site.given(1) or place):
        items = list(source.items)
        where = int(place[0]) if place else -1
        if -len(items) <= where < len(items):
            del items[where]
            return [holding(items) if items else sequence(source.inner, ())]
    return [sequence(source.inner)]


@rule("SequenceAt")
def at(site: Site) -> Sequence[Fact] | None:
    """The member itself if the place is known, else what all members share."""
    source = site.input(0)
    place = site.numbers(1)
    if source.items and place and -len(source.items) <= place[0] < len(source.items):
        return [source.items[int(place[0])]]
    return [source.inner] if source.inner is not None else None


@rule("SequenceLength")
def length(site: Site) -> Sequence[Fact]:
    """The number of members."""
    items = site.input(0).items
    return [scalar(None if items is None else len(items))]


@rule("ConcatFromSequence")
def concat_from(site: Site) -> Sequence[Fact]:
    """Concatenated, or stacked with `new_axis`."""
    source = site.input(0)
    axis, stacked = site.integer("axis", 0), bool(site.integer("new_axis", 0))
    if source.items:
        return [joined(site, source.items, axis, stacked)]
    inner = source.inner or NOTHING
    if inner.dims is None:
        return [tensor(inner.element)]
    dims = list(inner.dims)
    rank = len(dims) + stacked
    axis = axis + rank if axis < 0 else axis
    if stacked:
        dims.insert(axis, None)
    else:
        dims[axis] = None
    return [tensor(inner.element, dims)]


@rule("SplitToSequence")
def split(site: Site) -> Sequence[Fact]:
    """A scalar `split` cuts even parts with the rest in the last; none cuts parts of 1, which may lose the axis."""
    before = site.dims(0)
    if before is None:
        return [sequence(tensor(site.element()))]
    axis = site.axis(len(before), 0)
    keep = site.integer("keepdims", 1) or site.given(1)
    parts = _parts(site, before[axis])
    made = None if parts is None else [_part(site, axis, part, bool(keep)) for part in parts]
    if made is not None:
        return [holding(made) if made else sequence(tensor(site.element()), ())]
    return [sequence(_part(site, axis, None if site.given(1) else 1, bool(keep)))]


def _part(site: Site, axis: int, size: Dim, keep: bool) -> Fact:
    before = site.dims(0)
    assert before is not None
    return tensor(site.element(), (*before[:axis], *((size,) if keep else ()), *before[axis + 1 :]))


def _parts(site: Site, whole: Dim) -> list[Dim] | None:
    sizes = site.input(1).data
    if not site.given(1):
        return [1] * whole if isinstance(whole, int) and whole < 1000 else None
    if sizes is None or site.input(1).rank is None:
        return None
    if site.input(1).rank:
        return [as_size(size) for size in sizes]
    step = sizes[0]
    if not isinstance(step, int) or not isinstance(whole, int) or step < 1 or whole // step > 1000:
        return None
    count = ceildiv(whole, step)
    assert isinstance(count, int)
    return [step if (i + 1) * step <= whole else whole - i * step for i in range(count)]


@rule("Optional")
def make_optional(site: Site) -> Sequence[Fact] | None:
    """An input wrapped; an empty one is left to its attribute."""
    return [optional(site.input(0))] if site.given(0) else None


@rule("OptionalGetElement")
def get_element(site: Site) -> Sequence[Fact] | None:
    """What is inside, or a plain value as it is (opset 18)."""
    source = site.input(0)
    if source.kind == "optional":
        return [source.inner] if source.inner is not None else None
    return [source]


@rule("OptionalHasElement")
def has_element(site: Site) -> Sequence[Fact]:
    """A single question."""
    return [tensor(BOOL, ())]
