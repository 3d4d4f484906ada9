"""Operators that fold axes into one value: Reduce*, ArgMax, ArgMin."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np

from onnxbench.core.shape_rules.arithmetic import OPERATIONS
from onnxbench.core.shape_rules.facts import INT64, Dims, Element, Fact, tensor
from onnxbench.core.shape_rules.registry import rule
from onnxbench.core.shape_rules.site import Site

_OPERATORS = (
    *("ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd"),
    *("ReduceSum", "ReduceSumSquare"),
)
_STEPS = {"ReduceSum": "Add", "ReduceProd": "Mul", "ReduceMin": "Min", "ReduceMax": "Max"}


@rule(*_OPERATORS)
def reduced(site: Site) -> Sequence[Fact]:
    """Without axes all are reduced, or none with `noop_with_empty_axes`."""
    before = site.dims(0)
    if before is None:
        return [_without_rank(site)]
    axes = site.integers("axes", 1)
    if axes is None and site.given(1) and site.count(1) != 0:
        return [tensor(site.element(), _unclear(site, before))]
    if not axes:
        if site.integer("noop_with_empty_axes", 0):
            return [tensor(site.element(), before)]
        axes = list(range(len(before)))
    gone = {axis + len(before) if axis < 0 else axis for axis in axes}
    keep = site.integer("keepdims", 1)
    dims = tuple(1 if axis in gone else dim for axis, dim in enumerate(before) if keep or axis not in gone)
    value = _folded(site)
    if value is not None and len(before) == 1:
        return [Fact(site.element(), dims, (value,))]
    return [tensor(site.element(), dims)]


def _without_rank(site: Site) -> Fact:
    everything = not site.has("axes") and not site.given(1) and not site.integer("noop_with_empty_axes", 0)
    return tensor(site.element(), () if everything and not site.integer("keepdims", 1) else None)


def _unclear(site: Site, before: Dims) -> Dims | None:
    if site.integer("keepdims", 1):
        return (None,) * len(before)
    count = site.count(1)
    return None if count is None else (None,) * (len(before) - count)


def _folded(site: Site) -> Element:
    """The one element that a vector of sizes folds into."""
    data = site.input(0).data
    step = OPERATIONS.get(_STEPS.get(site.op, ""))
    if step is None or not data:
        return None
    return reduce(lambda a, b: step(site, a, b), data)


@rule("ArgMax", "ArgMin")
def arg(site: Site) -> Sequence[Fact]:
    """The axis becomes 1, or goes."""
    before = site.dims(0)
    if before is None:
        return [tensor(INT64)]
    axis = site.axis(len(before), 0)
    middle: Dims = (1,) if site.integer("keepdims", 1) else ()
    numbers = site.numbers(0)
    if numbers and len(before) == 1 and not site.integer("select_last_index", 0):
        place = int(np.argmax(numbers) if site.op == "ArgMax" else np.argmin(numbers))
        return [Fact(INT64, middle, (place,))]
    return [tensor(INT64, before[:axis] + middle + before[axis + 1 :])]


@rule("Det")
def det(site: Site) -> Sequence[Fact]:
    """The last two axes go."""
    before = site.dims(0)
    return [tensor(site.element(), None if before is None else before[:-2])]
