"""GridSample of volumes, which 16 has not: the corners around each place are gathered from the flat volume.

Source: ai.onnx GridSample-16 and 20.
"""

from __future__ import annotations

from itertools import product

import numpy as np
from onnx import TensorProto

from onnxbench.converters.adapters._numbers import Number, Numbers
from onnxbench.converters.site import Site
from onnxbench.core.values import Array


def sample(site: Site) -> None:
    """Put Gathers in the place of a GridSample over some axes, of mode linear or nearest.

    Raises:
        Refused: for cubic ones, whole numbers that would be weighted, and reflections.
    """
    x, grid = site.input(0), site.input(1)
    axes = site.needed_rank(x) - 2
    mode, padding = site.attr("mode"), site.attr("padding_mode")
    element = site.needed_element(x)
    if mode not in ("linear", "nearest") or padding not in ("zeros", "border"):
        site.refuse(f"GridSample-16 takes four dims, and mode {mode} with padding_mode {padding} has no other form")
    if element != TensorProto.FLOAT or site.needed_element(grid) != TensorProto.FLOAT:
        site.refuse("GridSample-16 takes four dims, and of others only float32 is sampled")
    numbers = Numbers(site)
    sizes = [numbers.size(x, axis + 2) for axis in range(axes)]
    # The last number of the grid is of the first axis.
    places = [_place(site, numbers, grid, axes, axis, sizes[axis]) for axis in range(axes)]
    if padding == "border":
        places = [_clamped(numbers, place, _last(numbers, size)) for place, size in zip(places, sizes, strict=True)]
    else:  # beyond this there is nothing, and arithmetic with infinity would make NaN of it
        places = [
            numbers.lower(numbers.higher(place, _float(-2)), numbers.add(_last(numbers, size), _float(2)))
            for place, size in zip(places, sizes, strict=True)
        ]
    batch, channels = numbers.size(x, 0), numbers.size(x, 1)
    flat = numbers.name(numbers.into(x, [batch, channels, _long(-1)], "flat"), "flat")
    if mode == "nearest":
        whole = [site.add("Round", numbers.name(place, "place")) for place in places]
        made = _taken(site, numbers, flat, whole, sizes, batch)
    else:
        made = _weighted(site, numbers, flat, places, sizes, batch)
    shape = site.add("Slice", site.add("Shape", grid), site.const([1], "one"), site.const([-1], "last"))
    front = [numbers.name(size, "size") for size in (batch, channels)]
    site.put("Reshape", [made, site.add("Concat", *front, shape, axis=0, wish="shape")])


def _long(value: int) -> Array:
    return np.asarray([value], np.int64)


def _float(value: float) -> Array:
    return np.asarray([value], np.float32)


def _last(numbers: Numbers, size: Number) -> Number:
    return numbers.cast(numbers.sub(size, _long(1)), np.float32)


def _place(site: Site, numbers: Numbers, grid: str, axes: int, axis: int, size: Number) -> Number:
    """Where the samples lie along an axis, in elements, as [batch, samples]."""
    each: Number = site.add("Gather", grid, site.const(axes - 1 - axis, f"axis_{axis}"), axis=axes + 1, wish="along")
    each = numbers.into(each, [numbers.size(grid, 0), _long(-1)], "along")
    wide = numbers.cast(size, np.float32)
    if site.attr("align_corners"):
        return numbers.mul(numbers.div(numbers.add(each, _float(1)), _float(2)), numbers.sub(wide, _float(1)))
    scaled = numbers.mul(numbers.add(each, _float(1)), wide)
    return numbers.div(numbers.sub(scaled, _float(1)), _float(2))


def _clamped(numbers: Numbers, place: Number, last: Number) -> Number:
    return numbers.lower(numbers.higher(place, _float(0)), last)


def _weighted(site: Site, numbers: Numbers, flat: str, places: list[Number], sizes: list[Number], batch: Number) -> str:
    """Every corner by how near it is along each axis."""
    floors = [numbers.do("Floor", place) for place in places]
    after = [numbers.sub(place, floor) for place, floor in zip(places, floors, strict=True)]
    before = [numbers.sub(_float(1), part) for part in after]
    total = ""
    for corner in product((0, 1), repeat=len(places)):
        whole = [numbers.add(floor, _float(step)) for floor, step in zip(floors, corner, strict=True)]
        weight: Number = _float(1)
        for axis, step in enumerate(corner):
            weight = numbers.mul(weight, after[axis] if step else before[axis])
        taken = _taken(site, numbers, flat, [numbers.name(place, "corner") for place in whole], sizes, batch)
        part = site.add("Mul", taken, numbers.name(numbers.into(weight, [batch, _long(1), _long(-1)]), "weight"))
        total = site.add("Add", total, part, wish="sum") if total else part
    return total


def _taken(site: Site, numbers: Numbers, flat: str, places: list[str], sizes: list[Number], batch: Number) -> str:
    """The elements at whole places, as [batch, channels, samples]; those outside are 0."""
    index: Number = _long(0)
    outside: Number | None = None
    for place, size in zip(places, sizes, strict=True):
        last = _last(numbers, size)
        beyond = numbers.do("Or", numbers.less(place, _float(0)), numbers.do("Greater", place, last))
        outside = beyond if outside is None else numbers.do("Or", outside, beyond)
        inside = numbers.cast(_clamped(numbers, place, last), np.int64)
        index = numbers.add(numbers.mul(index, size), inside, wish="index")
    row = [batch, _long(1), _long(-1)]
    column = numbers.name(numbers.into(index, row, "index"), "index")
    channels = site.add(
        "Concat",
        site.const([1], "one"),
        numbers.name(numbers.size(flat, 1), "channels"),
        site.const([1], "one"),
        axis=0,
    )
    every = site.add("Expand", column, channels, wish="index")
    taken = site.add("GatherElements", flat, every, axis=2, wish="taken")
    assert outside is not None
    mask = numbers.name(numbers.into(outside, row, "outside"), "outside")
    return site.add("Where", mask, site.const(0, "nothing", np.float32), taken, wish="taken")
