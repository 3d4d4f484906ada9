"""Resize by Gathers, where no older form samples as it says: each axis by itself, at coordinates in float32.

Sources: ai.onnx Resize-11, 13, 18, 19, and for what they leave open (coordinates in float32, sizes as whole numbers in
them, samples of `antialias` beyond the border) what ONNX Runtime does.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import TensorProto, helper

from onnxbench.converters.adapters._masks import reduced
from onnxbench.converters.adapters._numbers import Number, Numbers
from onnxbench.converters.adapters._taps import Axis, Manner, Tap, real, taps_of, whole
from onnxbench.converters.site import Site

_FLOATS: dict[int, int] = {TensorProto.FLOAT: 4, TensorProto.DOUBLE: 8, TensorProto.FLOAT16: 2, TensorProto.BFLOAT16: 2}


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
        start, end = ends[place] if ends is not None else (real(0), real(1))
        wide = numbers.cast(size, np.float32)
        if common is not None:
            half = numbers.add(numbers.mul(wide, common), real(0.5))
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
        every = (
            not isinstance(axis.start, str)
            and axis.start[0] == 0
            and not isinstance(axis.end, str)
            and axis.end[0] == 1
        )
        if every or isinstance(axis.size, str) or isinstance(axis.count, str):
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
        axes.append(Axis(axis, size, count, scale, real(0), real(1)))
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
                weights = numbers.into(tap.weights, [whole(-1), columns, *(whole(1) for _ in behind)])
            else:
                weights = tap.weights if tap.stretched else numbers.shaped(tap.weights, [-1, *behind])
            if element == TensorProto.DOUBLE:
                weights = numbers.cast(weights, np.float64)
            if tap.stretched:  # 0 times infinity is NaN, and what the filter does not reach is infinite, too
                sample = _reached(site, numbers, sample, weights, element)
            sample = site.add("Mul", sample, numbers.name(weights, "weights"), wish="weighted")
        if tap.stretched:
            sample = reduced(site, "ReduceSum", sample, [axis + 1])
        total = site.add("Add", total, sample, wish="sum") if total else sample
    return total


def _reached(site: Site, numbers: Numbers, sample: str, weights: Number, element: int) -> str:
    """A sample, and 0 where its weight is 0."""
    dtype = helper.tensor_dtype_to_np_dtype(element)
    none = np.zeros((), dtype)
    reached = numbers.name(numbers.do("Greater", numbers.do("Abs", weights), none), "reached")
    return site.add("Where", reached, sample, site.const(0.0, "none", dtype), wish="reached")
