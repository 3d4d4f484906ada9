"""Operators that cut along an axis or join along one: Slice, Split, Concat, Pad."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import numpy as np

from onnxbench.core.shape_rules.facts import Dim, Element, Elements, Fact, of_elements, tensor
from onnxbench.core.shape_rules.registry import MICROSOFT, rule
from onnxbench.core.shape_rules.site import Site, as_size, total
from onnxbench.core.symbolic import Size, ceildiv, floordiv, largest, smallest

#: Ends of a slice beyond this mean "as far as it goes".
_FAR = 10**9


@rule("Concat")
def concat(site: Site) -> Sequence[Fact]:
    """The sum along `axis`; the other dims must agree."""
    return [joined(site, [fact for fact in site.inputs if fact is not None], site.integer("axis", 1))]


@rule("QLinearConcat", domain=MICROSOFT)
def quantized_concat(site: Site) -> Sequence[Fact]:
    """Inputs are (scale, zero point) of the result, then threes of tensor, scale, zero point."""
    parts = [site.input(place) for place in range(2, len(site.inputs), 3)]
    made = joined(site, parts, site.integer("axis", 1))
    return [tensor(site.element(1), made.dims)]


def joined(site: Site, parts: Sequence[Fact], axis: int, new_axis: bool = False) -> Fact:
    """Tensors concatenated; with `new_axis` stacked."""
    element = next((part.element for part in parts if part.element is not None), None)
    ranks = {part.rank for part in parts if part.rank is not None}
    if len(ranks) != 1:
        return tensor(element)
    (rank,) = ranks
    axis = axis + rank + new_axis if axis < 0 else axis
    arrays = [array for part in parts if (array := part.elements()) is not None]
    if len(arrays) == len(parts) and rank:
        try:
            return of_elements(element, np.stack(arrays, axis) if new_axis else np.concatenate(arrays, axis))
        except ValueError:
            return tensor(element, (None,) * (rank + new_axis))
    known = [part.dims for part in parts if part.dims is not None]
    dims: list[Dim] = [_agreed(site, [shape[i] for shape in known]) for i in range(rank) if new_axis or i != axis]
    along: Dim = len(parts) if new_axis else None
    if not new_axis and len(known) == len(parts) and axis < rank:
        along = total(*(shape[axis] for shape in known))
    return tensor(element, [*dims[:axis], along, *dims[axis:]])


def _agreed(site: Site, sizes: Sequence[Dim]) -> Dim:
    """The size of an axis that is not joined. Nothing is concluded of the parts: runtimes let empty ones be of any shape."""
    known = {size for size in sizes if size is not None and not site.is_made(size)}
    numbers = [size for size in known if isinstance(size, int)]
    if numbers:
        return numbers[0] if len(numbers) == 1 else None
    if known:
        return next(size for size in sizes if size in known)
    return sizes[0] if len(set(sizes)) == 1 else None


@rule("Slice")
def slice_(site: Site) -> Sequence[Fact]:
    """Starts, ends and axes are attributes before opset 10."""
    before = site.dims(0)
    if before is None:
        return [tensor(site.element())]
    starts, ends, axes, steps = _ends(site)
    if starts is None and ends is None and axes is None:
        return [tensor(site.element(), (None,) * len(before))]
    length = len(starts or ends or axes or ())
    axes = list(range(length)) if axes is None else axes
    numbers = _whole_numbers(site, starts, ends, steps)
    array = site.input(0).elements()
    if array is not None and numbers is not None and axes is not None:
        return [of_elements(site.element(), _cut(array, axes, *numbers))]
    dims = list(before)
    for i, axis in enumerate(axes):
        axis = axis + len(dims) if axis < 0 else axis
        start = as_size(starts[i]) if starts is not None else None
        end = as_size(ends[i]) if ends is not None else None
        if axis < len(dims):
            dims[axis] = cut_length(site, dims[axis], start, end, 1 if steps is None else steps[i])
    return [tensor(site.element(), dims)]


def _ends(
    site: Site,
) -> tuple[Sequence[Element] | None, Sequence[Element] | None, list[int] | None, Sequence[Element] | None]:
    if site.version < 10:
        return site.ints("starts"), site.ints("ends"), site.ints("axes"), None
    starts, ends = site.input(1).data, site.input(2).data
    axes = site.numbers(3) if site.given(3) else None
    steps = site.input(4).data if site.given(4) else None
    unclear = (site.given(3) and axes is None) or (site.given(4) and steps is None)
    if unclear:
        return None, None, None, None
    return starts, ends, axes, steps


def _whole_numbers(
    site: Site, starts: Sequence[Element] | None, ends: Sequence[Element] | None, steps: Sequence[Element] | None
) -> tuple[list[int], list[int], list[int]] | None:
    if starts is None or ends is None:
        return None
    lists = [list(starts), list(ends), list(steps) if steps is not None else [1] * len(starts)]
    if not all(isinstance(value, int) for values in lists for value in values) or 0 in lists[2]:
        return None
    return tuple(lists)  # type: ignore[return-value]


def _cut(array: Elements, axes: Sequence[int], starts: list[int], ends: list[int], steps: list[int]) -> Elements:
    index: list[slice] = [slice(None)] * array.ndim
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        size = array.shape[axis]
        low = max(start + size, 0 if step > 0 else -1) if start < 0 else start
        stop = end + size if end < 0 else end
        last: int | None = max(stop, 0) if step > 0 else stop
        index[axis] = slice(low, None if last is not None and last < 0 else last, step)
        if low < 0:
            index[axis] = slice(0, 0)
    return array[tuple(index)]


def cut_length(site: Site, dim: Dim, start: Dim, end: Dim, step: Element) -> Dim:
    """How many elements a slice takes of an axis; None unless it is certain."""
    if dim is None or start is None or end is None or not isinstance(step, int) or step == 0:
        return None
    if step < 0:
        return _backwards(dim, start, end, step)
    low, high = _clamped(site, start, dim), _clamped(site, end, dim)
    if low is None or high is None:
        return None
    length = high - low
    if not site.never_negative(length):
        length = largest(length, 0)
    return ceildiv(length, step)


def _clamped(site: Site, place: Size, dim: Size) -> Dim:
    """A start or end counted from the front, within the axis."""
    if isinstance(place, int) and place >= _FAR:
        return dim
    if isinstance(place, int) and place <= -_FAR:
        return 0
    low, high = site.bounds(place)
    if place == 0:
        return 0
    if low >= 0:
        return _smaller(site, place, dim)
    if high < 0:
        from_front = dim + place
        return from_front if site.never_negative(from_front) else largest(from_front, 0)
    if site.never_negative(place - dim):
        return dim
    return None


def _smaller(site: Site, one: Size, other: Size) -> Size:
    if site.never_negative(other - one):
        return one
    if site.never_negative(one - other):
        return other
    return smallest(one, other)


def _backwards(dim: Size, start: Size, end: Size, step: int) -> Dim:
    """Slices with a negative step: numbers throughout, or the whole axis."""
    if isinstance(dim, int) and isinstance(start, int) and isinstance(end, int):
        first = min(start + dim if start < 0 else start, dim - 1)
        last = max(end + dim, -1) if end < 0 else min(end, dim - 1)
        return max(0, -((last - first) // -step)) if first >= 0 and first > last else 0
    from_last = start == -1 or (isinstance(start, int) and start >= _FAR)
    if from_last and isinstance(end, int) and end <= -_FAR:
        return ceildiv(dim, -step)
    return None


@rule("Split")
def split(site: Site) -> Sequence[Fact]:
    """Given sizes, or even parts with what is left in the last (opset 18)."""
    before, count = site.dims(0), len(site.node.output)
    if before is None:
        return [tensor(site.element())] * count
    axis = site.axis(len(before), 0)
    sizes: Sequence[Element] | None = site.ints("split") if site.has("split") else site.input(1).data
    parts: list[Dim]
    if sizes is not None and len(sizes) == count:
        parts = [as_size(size) for size in sizes]
    elif site.given(1):
        parts = [None] * count
    else:
        parts = _even(before[axis], count, must_fit=site.version < 18)
    array = site.input(0).elements()
    lengths = [part for part in parts if isinstance(part, int)]
    if array is not None and len(lengths) == count and sum(lengths) == array.shape[axis]:
        places = list(accumulate(lengths))[:-1]
        return [of_elements(site.element(), piece) for piece in np.split(array, places, axis=axis)]
    return [tensor(site.element(), (*before[:axis], part, *before[axis + 1 :])) for part in parts]


def _even(whole: Dim, count: int, must_fit: bool) -> list[Dim]:
    """Equal parts; if they need not fit the last one is what is left."""
    if whole is None:
        return [None] * count
    if must_fit:
        return [floordiv(whole, count)] * count
    part = ceildiv(whole, count)
    return [*([part] * (count - 1)), whole - part * (count - 1)]


@rule("Pad")
def pad(site: Site) -> Sequence[Fact]:
    """Pads are attributes before opset 11; with `axes` (opset 18) the other axes stay."""
    before = site.dims(0)
    if before is None:
        return [tensor(site.element())]
    pads = site.ints("pads") or site.ints("paddings") or site.input(1).data
    axes = site.numbers(3) if site.given(3) else list(range(len(before)))
    if pads is None or axes is None or len(pads) != 2 * len(axes):
        return [tensor(site.element(), (None,) * len(before))]
    dims = list(before)
    for i, axis in enumerate(axes):
        dims[axis] = total(dims[axis], as_size(pads[i]), as_size(pads[i + len(axes)]))
    return [tensor(site.element(), dims)]


@rule("CenterCropPad")
def center_crop(site: Site) -> Sequence[Fact]:
    """The axes named get the sizes wanted."""
    before, sizes = site.dims(0), site.input(1).data
    if before is None:
        return [tensor(site.element())]
    axes = site.ints("axes") or list(range(len(before)))
    dims = list(before)
    for i, axis in enumerate(axes):
        dims[axis] = as_size(sizes[i]) if sizes is not None and len(sizes) == len(axes) else None
    return [tensor(site.element(), dims)]
