"""Operators that pick elements or write some: Gather, Scatter, NonZero, TopK and their kin."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from onnxbench.core.shape_rules.facts import BOOL, INT64, Elements, Fact, of_elements, tensor
from onnxbench.core.shape_rules.registry import rule
from onnxbench.core.shape_rules.site import Site, as_size
from onnxbench.core.symbolic import Expr


@rule("Gather")
def gather(site: Site) -> Sequence[Fact]:
    """The dims of the indices stand in place of the axis."""
    before, picked = site.dims(0), site.dims(1)
    if before is None or picked is None:
        return [tensor(site.element())]
    axis = site.axis(len(before), 0)
    array, indices = site.input(0).elements(), site.input(1).elements()
    if array is not None and indices is not None and all(isinstance(i, int) for i in indices.reshape(-1)):
        try:
            return [of_elements(site.element(), _taken(array, indices, axis))]
        except IndexError:
            pass
    return [tensor(site.element(), (*before[:axis], *picked, *before[axis + 1 :]))]


def _taken(array: Elements, indices: Elements, axis: int) -> Elements:
    taken = np.empty((*array.shape[:axis], *indices.shape, *array.shape[axis + 1 :]), dtype=object)
    taken[...] = np.take(array, indices.astype(np.int64), axis=axis)
    return taken


@rule("GatherElements")
def gather_elements(site: Site) -> Sequence[Fact]:
    """One element for each index."""
    return [tensor(site.element(), site.dims(1))]


@rule("GatherND")
def gather_nd(site: Site) -> Sequence[Fact]:
    """indices[:-1] and what the last axis of indices leaves of the data."""
    before, indices = site.dims(0), site.dims(1)
    batch = site.integer("batch_dims", 0)
    if before is None or not indices or not isinstance(indices[-1], int):
        return [tensor(site.element())]
    return [tensor(site.element(), (*indices[:-1], *before[batch + indices[-1] :]))]


@rule("ScatterElements", "ScatterND", "Scatter", "TensorScatter", "ReverseSequence", "Trilu", "CumSum", "CumProd")
def same_as_first(site: Site) -> Sequence[Fact]:
    """Written or moved elements leave the shape."""
    return [tensor(site.element(), site.dims(0))]


@rule("NonZero")
def non_zero(site: Site) -> Sequence[Fact]:
    """One row per axis; a scalar counts as one axis in ONNX Runtime and as none elsewhere."""
    rank = site.input(0).rank
    array = site.input(0).elements()
    numbers = site.numbers(0)
    if array is not None and numbers is not None and rank:
        places = np.nonzero(array.astype(np.float64))
        return [of_elements(INT64, np.array(places, dtype=np.int64).reshape(rank, -1).astype(object))]
    return [tensor(INT64, (rank if rank else None, None))]


@rule("TopK")
def top_k(site: Site) -> Sequence[Fact]:
    """`k` is an attribute before opset 10; values and their indices."""
    before = site.dims(0)
    data = site.input(1).data
    k = site.integer("k") if site.has("k") else as_size(data[0]) if data else None
    if isinstance(k, Expr) and not site.never_negative(k):
        k = None
    if before is None:
        return [tensor(site.element()), tensor(INT64)]
    axis = site.axis(len(before), -1)
    dims = (*before[:axis], k, *before[axis + 1 :])
    return [tensor(site.element(), dims), tensor(INT64, dims)]


@rule("Compress")
def compress(site: Site) -> Sequence[Fact]:
    """As many as the condition has true, along an axis or of the flattened input."""
    before = site.dims(0)
    kept = site.numbers(1)
    count = None if kept is None else sum(1 for flag in kept if flag)
    if not site.has("axis"):
        return [tensor(site.element(), (count if _covers(before, kept) else None,))]
    if before is None:
        return [tensor(site.element())]
    axis = site.axis(len(before))
    covers = _covers(before[axis : axis + 1], kept)
    return [tensor(site.element(), (*before[:axis], count if covers else None, *before[axis + 1 :]))]


def _covers(dims: tuple[object, ...] | None, kept: list[object] | None) -> bool:
    """Whether the condition is no longer than what it selects from."""
    if dims is None or kept is None:
        return False
    numbers = [dim for dim in dims if isinstance(dim, int)]
    return len(numbers) == len(dims) and len(kept) <= int(np.prod(numbers))


@rule("Unique")
def unique(site: Site) -> Sequence[Fact]:
    """Data decides how many; values, first places, inverse, counts."""
    before = site.dims(0)
    if not site.has("axis"):
        first = tensor(site.element(), (None,))
    elif before is None:
        first = tensor(site.element())
    else:
        axis = site.axis(len(before))
        first = tensor(site.element(), (*before[:axis], None, *before[axis + 1 :]))
    return [first, *(tensor(INT64, (None,)) for _ in range(3))]


@rule("NonMaxSuppression")
def non_max_suppression(site: Site) -> Sequence[Fact]:
    """Data decides how many boxes; batch, class and box of each."""
    return [tensor(INT64, (None, 3))]


@rule("RoiAlign")
def roi_align(site: Site) -> Sequence[Fact]:
    """(regions, channels, height, width)."""
    before, rois = site.dims(0), site.dims(1)
    height, width = site.integer("output_height", 1), site.integer("output_width", 1)
    channels = before[1] if before is not None and len(before) == 4 else None
    return [tensor(site.element(), (rois[0] if rois else None, channels, height, width))]


@rule("StringConcat")
def string_concat(site: Site) -> Sequence[Fact]:
    """Broadcast like Add."""
    return [tensor(site.element(), site.broadcast(site.dims(0), site.dims(1)))]


@rule("RegexFullMatch")
def regex(site: Site) -> Sequence[Fact]:
    """A question to each string."""
    return [tensor(BOOL, site.dims(0))]
