"""Where Resize samples along one axis, and how much each sample weighs; coordinates are in float32.

Sources: ai.onnx Resize-11, 13, 18, 19, and for what they leave open what ONNX Runtime does.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from onnxbench.converters.adapters._numbers import Number, Numbers
from onnxbench.converters.site import Site
from onnxbench.core.values import Array


@dataclass(frozen=True, slots=True)
class Axis:
    """How one axis is resampled; each number is a list of one.

    Attributes:
        number: which.
        size: of the input, int64.
        count: of the output, int64.
        scale: float32.
        start, end: the region in parts of the size, float32; read by tf_crop_and_resize only.
    """

    number: int
    size: Number
    count: Number
    scale: Number
    start: Number
    end: Number


@dataclass(frozen=True, slots=True)
class Manner:
    """How all axes are sampled: attributes of Resize by their names; `nearest` may be "simple", as Resize-10 rounds."""

    mode: str
    coordinates: str
    nearest: str
    a: float = -0.75
    exclude_outside: bool = False
    extrapolation: float = 0.0
    antialias: bool = False


@dataclass(frozen=True, slots=True)
class Tap:
    """Samples of each output element along an axis: where they lie, and their weights (float32).

    Attributes:
        indices: one for each output element; [elements, samples] if stretched.
        weights: as many.
        stretched: whether there are several of each element.
    """

    indices: Number
    weights: Number | None = None
    stretched: bool = False


def real(value: float) -> Array:
    """A list of one float32."""
    return np.asarray([value], np.float32)


def whole(value: int) -> Array:
    """A list of one int64."""
    return np.asarray([value], np.int64)


def taps_of(site: Site, axis: Axis, how: Manner) -> tuple[list[Tap], Number | None]:
    """The samples of an axis, and which output elements lie outside of it, where that matters."""
    numbers = Numbers(site)
    source = _source(site, numbers, axis, how.coordinates)
    top = numbers.cast(numbers.sub(axis.size, whole(1)), np.float32)
    beyond: Number | None = None
    if how.coordinates == "tf_crop_and_resize":
        _refuse_ties(site, source, axis.size, how.mode)
        beyond = numbers.do("Or", numbers.less(source, real(0)), numbers.do("Greater", source, top))
    if how.antialias and how.mode != "nearest":
        return _antialiased(numbers, axis, how, source), beyond
    if how.mode == "nearest":
        place = numbers.cast(_clamped(numbers, _nearest(numbers, source, axis.scale, how.nearest), top), np.int64)
        return [Tap(place)], beyond
    if how.mode == "linear":
        return _linear(numbers, _clamped(numbers, source, top), top), beyond
    if how.mode != "cubic":
        site.refuse(f"nobody knows mode {how.mode}")
    return _cubic(numbers, source, top, how), beyond


def _source(site: Site, numbers: Numbers, axis: Axis, coordinates: str) -> Number:
    """Where each output element lies in the input."""
    places = numbers.cast(numbers.range(axis.count), np.float32)
    size, count = numbers.cast(axis.size, np.float32), numbers.cast(axis.count, np.float32)
    scale, half = axis.scale, real(0.5)
    centred = numbers.sub(numbers.div(numbers.add(places, half), scale), half)
    if coordinates == "half_pixel":
        made = centred
    elif coordinates == "asymmetric":
        made = numbers.div(places, scale)
    elif coordinates == "tf_half_pixel_for_nn":
        made = numbers.div(numbers.add(places, half), scale)
    elif coordinates == "pytorch_half_pixel":
        made = numbers.where(numbers.do("Greater", count, real(1)), centred, numbers.mul(places, real(0)))
    elif coordinates == "half_pixel_symmetric":
        made = _symmetric(numbers, places, size, count, scale)
    elif coordinates == "align_corners":
        # With one element the place is 0, and what it is divided by does not matter.
        steps = numbers.higher(numbers.sub(count, real(1)), real(1))
        made = numbers.div(numbers.mul(places, numbers.sub(size, real(1))), steps)
    elif coordinates == "tf_crop_and_resize":
        return _cropped(numbers, axis, places, size, count)
    else:
        site.refuse(f"nobody knows coordinate_transformation_mode {coordinates}")
    same = numbers.do("Equal", axis.size, axis.count)
    unscaled = numbers.do("Not", numbers.do("Or", numbers.less(scale, real(1)), numbers.do("Greater", scale, real(1))))
    return numbers.where(numbers.do("And", same, unscaled), places, made, wish="source")


def _symmetric(numbers: Numbers, places: Number, size: Number, count: Number, scale: Number) -> Number:
    """The offset in float32, what comes to it in float64: places that are nearly whole are rounded as the runtime does."""
    adjustment = numbers.div(count, numbers.mul(scale, size))
    offset = numbers.mul(numbers.div(size, real(2)), numbers.sub(real(1), adjustment))
    half = np.asarray([0.5], np.float64)
    places, scale, offset = (numbers.cast(number, np.float64) for number in (places, scale, offset))
    along = numbers.div(numbers.add(places, half), scale)
    return numbers.cast(numbers.sub(numbers.add(offset, along), half), np.float32)


def _cropped(numbers: Numbers, axis: Axis, places: Number, size: Number, count: Number) -> Number:
    last, width = numbers.sub(size, real(1)), numbers.sub(axis.end, axis.start)
    steps = numbers.higher(numbers.sub(count, real(1)), real(1))
    along = numbers.div(numbers.mul(numbers.mul(places, width), last), steps)
    many = numbers.add(numbers.mul(axis.start, last), along)
    middle = numbers.mul(numbers.mul(numbers.add(axis.start, axis.end), real(0.5)), last)
    single = numbers.add(middle, numbers.mul(places, real(0)))
    return numbers.where(numbers.do("Greater", count, real(1)), many, single, wish="source")


def _refuse_ties(site: Site, source: Number, size: Number, mode: str) -> None:
    """Places that are told apart by the last bit only; runtimes do not agree on it."""
    if isinstance(source, str):
        return
    apart = [source] if isinstance(size, str) else [source, source - np.float32(size[0] - 1)]
    near = any(((np.abs(each) < 1e-4) & (each != 0)).any() for each in apart)
    halves = np.abs(source * 2 - np.round(source * 2))
    if near or (mode == "nearest" and ((halves < 1e-4) & (halves != 0)).any()):
        site.refuse("it crops where the last bit of a float decides: runtimes do not agree on that")


def _clamped(numbers: Numbers, source: Number, top: Number) -> Number:
    return numbers.lower(numbers.higher(source, real(0)), top)


def _nearest(numbers: Numbers, source: Number, scale: Number, nearest: str) -> Number:
    floor, ceil = numbers.do("Floor", source), numbers.do("Ceil", source)
    if nearest == "floor":
        return floor
    if nearest == "ceil":
        return ceil
    if nearest == "simple":
        return numbers.where(numbers.less(scale, real(1)), ceil, floor)
    above, more = numbers.sub(source, floor), numbers.add(floor, real(1))
    if nearest == "round_prefer_ceil":
        return numbers.where(numbers.less(above, real(0.5)), floor, more)
    return numbers.where(numbers.do("Greater", above, real(0.5)), more, floor)


def _linear(numbers: Numbers, source: Number, top: Number) -> list[Tap]:
    low = numbers.do("Floor", source)
    high = numbers.lower(numbers.add(low, real(1)), top)
    after = numbers.sub(source, low)
    before = numbers.sub(real(1), after)
    return [
        Tap(numbers.cast(low, np.int64), before),
        Tap(numbers.cast(high, np.int64), after),
    ]


def _cubic(numbers: Numbers, source: Number, top: Number, how: Manner) -> list[Tap]:
    """Four samples, each at the border where it would lie beyond."""
    floor = numbers.do("Floor", source)
    t = numbers.sub(source, floor)
    rest = numbers.sub(real(1), t)
    one = real(1)
    weights = [
        _outer(numbers, numbers.add(t, one), how.a),
        _inner(numbers, t, how.a),
        _inner(numbers, rest, how.a),
        _outer(numbers, numbers.add(rest, one), how.a),
    ]
    places = [numbers.add(floor, real(step)) for step in (-1, 0, 1, 2)]
    if how.exclude_outside:
        weights = _inside(numbers, places, weights, top)
    return [
        Tap(numbers.cast(_clamped(numbers, place, top), np.int64), weight)
        for place, weight in zip(places, weights, strict=True)
    ]


def _inside(numbers: Numbers, places: list[Number], weights: list[Number], top: Number) -> list[Number]:
    kept = []
    for place, weight in zip(places, weights, strict=True):
        beyond = numbers.do("Or", numbers.less(place, real(0)), numbers.do("Greater", place, top))
        kept.append(numbers.where(beyond, real(0), weight))
    total = kept[0]
    for weight in kept[1:]:
        total = numbers.add(total, weight)
    return [numbers.div(weight, total) for weight in kept]


def _outer(numbers: Numbers, x: Number, a: float) -> Number:
    """((a x - 5 a) x + 8 a) x - 4 a: the weight from one element to two away."""
    first = numbers.mul(numbers.sub(numbers.mul(real(a), x), real(5 * a)), x)
    return numbers.sub(numbers.mul(numbers.add(first, real(8 * a)), x), real(4 * a))


def _inner(numbers: Numbers, x: Number, a: float) -> Number:
    """((a + 2) x - (a + 3)) x x + 1: the weight up to one element away."""
    first = numbers.mul(numbers.sub(numbers.mul(real(a + 2), x), real(a + 3)), x)
    return numbers.add(numbers.mul(first, x), real(1))


def _antialiased(numbers: Numbers, axis: Axis, how: Manner, source: Number) -> list[Tap]:
    """As many samples as the stretched filter reaches, side by side; beyond the border they are those at it."""
    scale = numbers.lower(axis.scale, real(1))
    reach = numbers.do("Ceil", numbers.div(real(2 if how.mode == "cubic" else 1), scale))
    count = numbers.cast(numbers.add(numbers.mul(reach, real(2)), real(2)), np.int64)
    steps = numbers.sub(numbers.cast(numbers.range(count), np.float32), reach)
    centre = numbers.shaped(source, [-1, 1])
    places = numbers.add(numbers.do("Floor", centre), steps, wish="places")
    top = numbers.cast(numbers.sub(axis.size, whole(1)), np.float32)
    away = numbers.mul(numbers.do("Abs", numbers.sub(places, centre)), scale)
    weights = (
        _keys(numbers, away, how.a) if how.mode == "cubic" else numbers.higher(numbers.sub(real(1), away), real(0))
    )
    if how.exclude_outside:
        beyond = numbers.do("Or", numbers.less(places, real(0)), numbers.do("Greater", places, top))
        weights = numbers.where(beyond, real(0), weights)
    weights = numbers.div(weights, numbers.total(weights, 1), wish="weights")
    return [Tap(numbers.cast(_clamped(numbers, places, top), np.int64), weights, stretched=True)]


def _keys(numbers: Numbers, x: Number, a: float) -> Number:
    """The weight of what lies some elements away."""
    far = numbers.where(numbers.less(x, real(2)), _outer(numbers, x, a), real(0))
    return numbers.where(numbers.do("Greater", x, real(1)), far, _inner(numbers, x, a))
