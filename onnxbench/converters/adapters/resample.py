"""Resize by Gathers, where no older form samples as it says: each axis by itself, at coordinates in float32.

Sources: ai.onnx Resize-11, 13, 18, 19, and for what they leave open (coordinates in float32, sizes as whole numbers in
them, samples of `antialias` beyond the border) what ONNX Runtime does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from onnx import TensorProto

from onnxbench.converters.adapters._masks import reduced
from onnxbench.converters.adapters._numbers import Number, Numbers
from onnxbench.converters.site import Site
from onnxbench.core.values import Array

_FLOATS: dict[int, int] = {TensorProto.FLOAT: 4, TensorProto.DOUBLE: 8, TensorProto.FLOAT16: 2, TensorProto.BFLOAT16: 2}


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


def _float(value: float) -> Array:
    return np.asarray([value], np.float32)


def _whole(value: int) -> Array:
    return np.asarray([value], np.int64)


def manner(site: Site) -> Manner:
    """As a Resize of opset 11 or later says it."""
    return Manner(
        site.attr("mode"),
        site.attr("coordinate_transformation_mode"),
        site.attr("nearest_mode"),
        site.attr("cubic_coeff_a"),
        bool(site.attr("exclude_outside")),
        site.attr("extrapolation_value"),
        bool(site.attr("antialias", 0)),
    )


def resample(site: Site) -> None:
    """Put Gathers in the place of a Resize of opset 11 or later.

    Raises:
        Refused: if the rank is not known, or for whole numbers that would be weighted.
    """
    numbers = Numbers(site)
    x = site.input(0)
    rank = site.needed_rank(x)
    chosen = site.attr("axes") if site.has("axes") else list(range(rank))
    places = [axis % rank for axis in chosen]
    scales, sizes = _wanted(site, numbers)
    if scales is not None:
        _refuse_parts(site, x, places, scales)
    policy = site.attr("keep_aspect_ratio_policy", "stretch")
    ends = _ends(site, numbers, len(places))
    axes = []
    of = [numbers.size(x, axis) for axis in places]
    common = _common(numbers, of, sizes, policy) if sizes is not None and policy != "stretch" else None
    for place, (axis, size) in enumerate(zip(places, of, strict=True)):
        start, end = ends[place] if ends is not None else (_float(0), _float(1))
        wide = numbers.cast(size, np.float32)
        if common is not None:
            half = numbers.add(numbers.mul(wide, common), _float(0.5))
            scale, count = common, numbers.cast(numbers.do("Floor", half), np.int64)
        elif sizes is not None:
            count = numbers.cast(numbers.pick(sizes, place), np.int64)
            scale = numbers.div(numbers.cast(count, np.float32), wide)
        else:
            assert scales is not None
            scale = numbers.pick(scales, place, "scale")
            count = numbers.cast(numbers.do("Floor", numbers.mul(wide, scale)), np.int64)
        axes.append(Axis(axis, size, count, scale, start, end))
    if ends is not None:
        _refuse_still(site, axes)
    put(site, x, axes, manner(site))


def _wanted(site: Site, numbers: Numbers) -> tuple[Number | None, Number | None]:
    """Scales and sizes: one of them."""
    scales, sizes = site.input(2), site.input(3)
    if sizes and site.dims(sizes) != (0,):
        return None, numbers.of(sizes)
    if not scales:
        site.refuse("it gives neither scales nor sizes")
    return numbers.of(scales), None


def _refuse_still(site: Site, axes: Sequence[Axis]) -> None:
    """A region of an axis whose size stays: the specification crops it, and ONNX Runtime takes the whole axis."""
    for axis in axes:
        whole = (
            not isinstance(axis.start, str)
            and axis.start[0] == 0
            and not isinstance(axis.end, str)
            and axis.end[0] == 1
        )
        if whole or isinstance(axis.size, str) or isinstance(axis.count, str):
            continue
        if axis.size[0] == axis.count[0]:
            site.refuse(f"it crops axis {axis.number} and keeps its size: runtimes do not agree on what that means")


def _refuse_parts(site: Site, x: str, places: list[int], scales: Number) -> None:
    """Scales that end within an element: ONNX's tests take the last for a part in some modes, ONNX Runtime does not."""
    where = site.attr("coordinate_transformation_mode")
    if where == "tf_crop_and_resize":
        site.refuse(
            "it crops and scales: whether the sizes are those of what is left, runtimes do not agree with the specification"
        )
    if where != "align_corners":
        return
    dims = site.dims(x)
    if isinstance(scales, str) or dims is None or any(dims[axis] is None for axis in places):
        site.refuse(f"{where} by scales: whether they make whole sizes is only known at run time")
    for axis, scale in zip(places, scales.reshape(-1), strict=True):
        size = np.float32(dims[axis] or 0) * scale
        if size != np.floor(size) and scale != 1:
            site.refuse(f"{where} by a scale that makes {size} elements: runtimes do not agree on what that means")


def _ends(site: Site, numbers: Numbers, count: int) -> list[tuple[Number, Number]] | None:
    if site.attr("coordinate_transformation_mode") != "tf_crop_and_resize":
        return None
    if not site.input(1):
        site.refuse("it crops, and gives no roi")
    roi = numbers.of(site.input(1))
    if isinstance(roi, str) and site.element(roi) != TensorProto.FLOAT:
        site.refuse("its roi is not of float32")
    if not isinstance(roi, str):
        roi = roi.astype(np.float32)
    return [(numbers.pick(roi, place, "start"), numbers.pick(roi, place + count, "end")) for place in range(count)]


def _common(numbers: Numbers, of: list[Number], sizes: Number, policy: str) -> Number:
    """The scale that all axes share."""
    best: Number | None = None
    for place, size in enumerate(of):
        wanted = numbers.cast(numbers.cast(numbers.pick(sizes, place), np.int64), np.float32)
        ratio = numbers.div(wanted, numbers.cast(size, np.float32))
        choose = numbers.lower if policy == "not_larger" else numbers.higher
        best = ratio if best is None else choose(best, ratio)
    assert best is not None
    return best


def resample_10(site: Site) -> None:
    """Put Gathers in the place of a Resize-10, which samples asymmetrically, and rounds up where it shrinks.

    Raises:
        Refused: as `resample` does.
    """
    numbers = Numbers(site)
    x = site.input(0)
    scales = numbers.of(site.input(1))
    axes = []
    for axis in range(site.needed_rank(x)):
        size, scale = numbers.size(x, axis), numbers.pick(scales, axis, "scale")
        reach = numbers.mul(numbers.cast(size, np.float32), scale)
        count = numbers.cast(numbers.do("Floor", reach), np.int64)
        axes.append(Axis(axis, size, count, scale, _float(0), _float(1)))
    put(site, x, axes, Manner(site.attr("mode"), "asymmetric", "simple"))


def put(site: Site, x: str, axes: Sequence[Axis], how: Manner) -> None:
    """Resample some axes of a value, and make the output of it."""
    numbers = Numbers(site)
    moved = [axis for axis in axes if not _stands(axis, how)]
    element = site.needed_element(x)
    current, narrow = x, element
    if how.mode != "nearest" and moved:
        if element not in _FLOATS:
            site.refuse(f"mode {how.mode} of whole numbers: how they are rounded is not specified")
        if _FLOATS[element] == 2:
            current, narrow = site.add("Cast", x, to=int(TensorProto.FLOAT), wish="wide"), int(TensorProto.FLOAT)
    outside = ""
    rank = site.needed_rank(x)
    for axis in moved:
        taps, beyond = taps_of(site, axis, how)
        current = _sampled(site, numbers, current, axis.number, rank, taps, narrow)
        if beyond is not None:
            mask = numbers.shaped(beyond, [-1] + [1] * (rank - axis.number - 1))
            outside = _either(site, numbers, outside, mask)
    if narrow != element:
        current = site.add("Cast", current, to=element, wish="narrow")
    if outside:
        value = site.scalar_like(how.extrapolation, x, "extrapolation")
        site.put("Where", [outside, value, current])
    else:
        site.put("Identity", [current])


def _either(site: Site, numbers: Numbers, outside: str, mask: Number) -> str:
    name = numbers.name(mask, "outside")
    return site.add("Or", outside, name, wish="outside") if outside else name


def _stands(axis: Axis, how: Manner) -> bool:
    """Whether nothing becomes of an axis."""
    known = [axis.size, axis.count, axis.scale]
    if any(isinstance(number, str) for number in known) or how.coordinates == "tf_crop_and_resize":
        return False
    return np.array_equal(axis.size, axis.count) and bool(np.asarray(axis.scale).reshape(-1)[0] == 1)


def _sampled(site: Site, numbers: Numbers, x: str, axis: int, rank: int, taps: list[Tap], element: int) -> str:
    """The weighted sum of samples along an axis."""
    total = ""
    for tap in taps:
        indices = numbers.name(tap.indices, "indices")
        sample = site.add("Gather", x, indices, axis=axis, wish="sample")
        if tap.weights is not None:
            behind = [1] * (rank - axis - 1)
            if tap.stretched and behind:
                columns = numbers.columns(tap.weights)
                weights = numbers.into(tap.weights, [_whole(-1), columns, *(_whole(1) for _ in behind)])
            else:
                weights = tap.weights if tap.stretched else numbers.shaped(tap.weights, [-1, *behind])
            if element == TensorProto.DOUBLE:
                weights = numbers.cast(weights, np.float64)
            sample = site.add("Mul", sample, numbers.name(weights, "weights"), wish="weighted")
        if tap.stretched:
            sample = reduced(site, "ReduceSum", sample, [axis + 1])
        total = site.add("Add", total, sample, wish="sum") if total else sample
    return total


def taps_of(site: Site, axis: Axis, how: Manner) -> tuple[list[Tap], Number | None]:
    """The samples of an axis, and which output elements lie outside of it, where that matters."""
    numbers = Numbers(site)
    source = _source(site, numbers, axis, how.coordinates)
    top = numbers.cast(numbers.sub(axis.size, _whole(1)), np.float32)
    beyond: Number | None = None
    if how.coordinates == "tf_crop_and_resize":
        _refuse_ties(site, source, axis.size, how.mode)
        beyond = numbers.do("Or", numbers.less(source, _float(0)), numbers.do("Greater", source, top))
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
    scale, half = axis.scale, _float(0.5)
    centred = numbers.sub(numbers.div(numbers.add(places, half), scale), half)
    if coordinates == "half_pixel":
        made = centred
    elif coordinates == "asymmetric":
        made = numbers.div(places, scale)
    elif coordinates == "tf_half_pixel_for_nn":
        made = numbers.div(numbers.add(places, half), scale)
    elif coordinates == "pytorch_half_pixel":
        made = numbers.where(numbers.do("Greater", count, _float(1)), centred, numbers.mul(places, _float(0)))
    elif coordinates == "half_pixel_symmetric":
        made = _symmetric(numbers, places, size, count, scale)
    elif coordinates == "align_corners":
        # With one element the place is 0, and what it is divided by does not matter.
        steps = numbers.higher(numbers.sub(count, _float(1)), _float(1))
        made = numbers.div(numbers.mul(places, numbers.sub(size, _float(1))), steps)
    elif coordinates == "tf_crop_and_resize":
        return _cropped(numbers, axis, places, size, count)
    else:
        site.refuse(f"nobody knows coordinate_transformation_mode {coordinates}")
    same = numbers.do("Equal", axis.size, axis.count)
    unscaled = numbers.do(
        "Not", numbers.do("Or", numbers.less(scale, _float(1)), numbers.do("Greater", scale, _float(1)))
    )
    return numbers.where(numbers.do("And", same, unscaled), places, made, wish="source")


def _symmetric(numbers: Numbers, places: Number, size: Number, count: Number, scale: Number) -> Number:
    """The offset in float32, what comes to it in float64: places that are nearly whole are rounded as the runtime does."""
    adjustment = numbers.div(count, numbers.mul(scale, size))
    offset = numbers.mul(numbers.div(size, _float(2)), numbers.sub(_float(1), adjustment))
    half = np.asarray([0.5], np.float64)
    places, scale, offset = (numbers.cast(number, np.float64) for number in (places, scale, offset))
    along = numbers.div(numbers.add(places, half), scale)
    return numbers.cast(numbers.sub(numbers.add(offset, along), half), np.float32)


def _cropped(numbers: Numbers, axis: Axis, places: Number, size: Number, count: Number) -> Number:
    last, width = numbers.sub(size, _float(1)), numbers.sub(axis.end, axis.start)
    steps = numbers.higher(numbers.sub(count, _float(1)), _float(1))
    along = numbers.div(numbers.mul(numbers.mul(places, width), last), steps)
    many = numbers.add(numbers.mul(axis.start, last), along)
    middle = numbers.mul(numbers.mul(numbers.add(axis.start, axis.end), _float(0.5)), last)
    single = numbers.add(middle, numbers.mul(places, _float(0)))
    return numbers.where(numbers.do("Greater", count, _float(1)), many, single, wish="source")


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
    return numbers.lower(numbers.higher(source, _float(0)), top)


def _nearest(numbers: Numbers, source: Number, scale: Number, nearest: str) -> Number:
    floor, ceil = numbers.do("Floor", source), numbers.do("Ceil", source)
    if nearest == "floor":
        return floor
    if nearest == "ceil":
        return ceil
    if nearest == "simple":
        return numbers.where(numbers.less(scale, _float(1)), ceil, floor)
    above, more = numbers.sub(source, floor), numbers.add(floor, _float(1))
    if nearest == "round_prefer_ceil":
        return numbers.where(numbers.less(above, _float(0.5)), floor, more)
    return numbers.where(numbers.do("Greater", above, _float(0.5)), more, floor)


def _linear(numbers: Numbers, source: Number, top: Number) -> list[Tap]:
    low = numbers.do("Floor", source)
    high = numbers.lower(numbers.add(low, _float(1)), top)
    after = numbers.sub(source, low)
    before = numbers.sub(_float(1), after)
    return [
        Tap(numbers.cast(low, np.int64), before),
        Tap(numbers.cast(high, np.int64), after),
    ]


def _cubic(numbers: Numbers, source: Number, top: Number, how: Manner) -> list[Tap]:
    """Four samples, each at the border where it would lie beyond."""
    floor = numbers.do("Floor", source)
    t = numbers.sub(source, floor)
    rest = numbers.sub(_float(1), t)
    one = _float(1)
    weights = [
        _outer(numbers, numbers.add(t, one), how.a),
        _inner(numbers, t, how.a),
        _inner(numbers, rest, how.a),
        _outer(numbers, numbers.add(rest, one), how.a),
    ]
    places = [numbers.add(floor, _float(step)) for step in (-1, 0, 1, 2)]
    if how.exclude_outside:
        weights = _inside(numbers, places, weights, top)
    return [
        Tap(numbers.cast(_clamped(numbers, place, top), np.int64), weight)
        for place, weight in zip(places, weights, strict=True)
    ]


def _inside(numbers: Numbers, places: list[Number], weights: list[Number], top: Number) -> list[Number]:
    kept = []
    for place, weight in zip(places, weights, strict=True):
        beyond = numbers.do("Or", numbers.less(place, _float(0)), numbers.do("Greater", place, top))
        kept.append(numbers.where(beyond, _float(0), weight))
    total = kept[0]
    for weight in kept[1:]:
        total = numbers.add(total, weight)
    return [numbers.div(weight, total) for weight in kept]


def _outer(numbers: Numbers, x: Number, a: float) -> Number:
    """((a x - 5 a) x + 8 a) x - 4 a: the weight from one element to two away."""
    first = numbers.mul(numbers.sub(numbers.mul(_float(a), x), _float(5 * a)), x)
    return numbers.sub(numbers.mul(numbers.add(first, _float(8 * a)), x), _float(4 * a))


def _inner(numbers: Numbers, x: Number, a: float) -> Number:
    """((a + 2) x - (a + 3)) x x + 1: the weight up to one element away."""
    first = numbers.mul(numbers.sub(numbers.mul(_float(a + 2), x), _float(a + 3)), x)
    return numbers.add(numbers.mul(first, x), _float(1))


def _antialiased(numbers: Numbers, axis: Axis, how: Manner, source: Number) -> list[Tap]:
    """As many samples as the stretched filter reaches, side by side; beyond the border they are those at it."""
    scale = numbers.lower(axis.scale, _float(1))
    reach = numbers.do("Ceil", numbers.div(_float(2 if how.mode == "cubic" else 1), scale))
    count = numbers.cast(numbers.add(numbers.mul(reach, _float(2)), _float(2)), np.int64)
    steps = numbers.sub(numbers.cast(numbers.range(count), np.float32), reach)
    centre = numbers.shaped(source, [-1, 1])
    places = numbers.add(numbers.do("Floor", centre), steps, wish="places")
    top = numbers.cast(numbers.sub(axis.size, _whole(1)), np.float32)
    away = numbers.mul(numbers.do("Abs", numbers.sub(places, centre)), scale)
    weights = (
        _keys(numbers, away, how.a) if how.mode == "cubic" else numbers.higher(numbers.sub(_float(1), away), _float(0))
    )
    if how.exclude_outside:
        beyond = numbers.do("Or", numbers.less(places, _float(0)), numbers.do("Greater", places, top))
        weights = numbers.where(beyond, _float(0), weights)
    weights = numbers.div(weights, numbers.total(weights, 1), wish="weights")
    return [Tap(numbers.cast(_clamped(numbers, places, top), np.int64), weights, stretched=True)]


def _keys(numbers: Numbers, x: Number, a: float) -> Number:
    """The weight of what lies some elements away."""
    far = numbers.where(numbers.less(x, _float(2)), _outer(numbers, x, a), _float(0))
    return numbers.where(numbers.do("Greater", x, _float(1)), far, _inner(numbers, x, a))
