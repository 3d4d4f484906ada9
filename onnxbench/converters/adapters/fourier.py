"""DFT, STFT, MelWeightMatrix and DFT along an axis known at run time, by what came before: products with cosines and sines.

Sources: ai.onnx DFT-17 and 20, STFT-17, MelWeightMatrix-17.
"""

from __future__ import annotations

import numpy as np
from onnx import TensorProto, helper

from onnxbench.converters.adapters import adapter
from onnxbench.converters.adapters._masks import axis_mask, reduced
from onnxbench.converters.adapters._numbers import Number, Numbers
from onnxbench.converters.site import Site

_WHOLE = int(TensorProto.INT64)


def along_any(site: Site) -> None:
    """A DFT along an axis that is only known at run time: the dims before it, it, and those behind it."""
    x = site.input(0)
    shape = site.add("Shape", x, wish="shape")
    rank = site.add("Shape", shape, wish="rank")
    axis = site.add("Reshape", site.input(2), site.const([1], "one"), wish="axis")
    axis = site.add("Cast", axis, to=_WHOLE)
    zero, one = site.const([0], "zero"), site.const([1], "one")
    axis = site.add("Where", site.add("Less", axis, zero), site.add("Add", axis, rank), axis, wish="axis")
    mask = axis_mask(site, axis, rank)
    last = site.const([-1], "last")
    behind_axis = site.add("Add", axis, one)
    before = reduced(site, "ReduceProd", site.add("Slice", shape, zero, axis), [0], keepdims=1)
    behind = reduced(site, "ReduceProd", site.add("Slice", shape, behind_axis, last), [0], keepdims=1)
    size, parts = site.add("Gather", shape, axis, axis=0), site.add("Gather", shape, last, axis=0)
    flat = site.add("Reshape", x, site.add("Concat", before, size, behind, parts, axis=0), wish="flat", allowzero=1)
    made = site.add("DFT", flat, site.input(1), axis=1, inverse=site.attr("inverse"), onesided=site.attr("onesided"))
    shape_of_made = site.add("Shape", made)
    count = site.add("Gather", shape_of_made, one, axis=0)
    wide = site.add("Where", mask, count, shape, wish="shape")
    every = site.add(
        "Concat", site.add("Slice", wide, zero, last), site.add("Gather", shape_of_made, last, axis=0), axis=0
    )
    site.put("Reshape", [made, every], allowzero=1)


def _dft(site: Site) -> None:
    axis = site.attr("axis", 1)
    rank = site.needed_rank(site.input(0))
    made = transformed(
        site, site.input(0), site.input(1), axis + rank if axis < 0 else axis, rank,
        inverse=bool(site.attr("inverse")), onesided=bool(site.attr("onesided")),
    )  # fmt: skip
    site.put("Identity", [made])


def transformed(site: Site, x: str, length: str, axis: int, rank: int, *, inverse: bool, onesided: bool) -> str:
    """The transform of x along an axis; its last dim holds real and imaginary parts, or real ones only.

    It is counted in float64: what runtimes do with fewer operations is as exact in float32.

    Raises:
        Refused: for the inverse of one side.
    """
    if inverse and onesided:
        site.refuse("the inverse of a transform that is onesided has no older form")
    if site.opset < 9:
        site.refuse("it takes operators of opset 9")
    element = site.needed_element(x)
    wide = int(TensorProto.DOUBLE)
    if element != wide:
        dims = site.dims(x)
        x = site.add("Cast", x, to=wide, wish="wide")
        site.facts.made[x].rank, site.facts.made[x].dims = rank, dims
    numbers = Numbers(site)
    size = numbers.size(x, axis)
    count = size
    if length:
        count = numbers.cast(numbers.shaped(numbers.of(length), [1], wish="length"), np.int64)
    taken = numbers.lower(size, count)
    x = _first(site, numbers, x, axis, size, taken)
    rows = numbers.add(numbers.div(count, np.asarray([2], np.int64)), np.asarray([1], np.int64)) if onesided else count
    cosines, sines = _waves(numbers, rows, taken, count)
    if inverse:
        cosines, sines = (_over(numbers, each, count) for each in (cosines, sines))
    order = [*(place for place in range(rank - 1) if place != axis), axis, rank - 1]
    moved = x if order == list(range(rank)) else site.add("Transpose", x, perm=order, wish="moved")
    moved = _with_parts(site, numbers, moved, rank, wide)
    straight = site.add("MatMul", numbers.name(cosines, "cosines"), moved)
    crossed = site.add("MatMul", numbers.name(sines, "sines"), moved)
    crossed = site.add("Gather", crossed, site.const([1, 0], "crossed"), axis=rank - 1)
    signs = [-1, 1] if inverse else [1, -1]
    sign = site.const(signs, "signs", np.float64)
    made = site.add("Add", straight, site.add("Mul", crossed, sign), wish="transformed")
    back = [order.index(place) for place in range(rank)]
    if back != list(range(rank)):
        made = site.add("Transpose", made, perm=back, wish="back")
    return site.add("Cast", made, to=element, wish="narrow") if element != wide else made


def _first(site: Site, numbers: Numbers, x: str, axis: int, size: Number, taken: Number) -> str:
    """As many elements of an axis as there are places for."""
    if not isinstance(size, str) and not isinstance(taken, str) and size[0] == taken[0]:
        return x
    return site.add("Gather", x, numbers.name(numbers.range(taken), "first"), axis=axis, wish="first")


def _waves(numbers: Numbers, rows: Number, columns: Number, count: Number) -> tuple[Number, Number]:
    """Cosines and sines of row * column / count turns, in whole numbers as far as that goes."""
    row = numbers.shaped(numbers.range(rows), [-1, 1])
    product = numbers.mul(row, numbers.range(columns))
    if not isinstance(product, str) and not isinstance(count, str):
        known = (product % int(count[0])) * (2 * np.pi / int(count[0]))
        return np.cos(known), np.sin(known)
    turns = numbers.sub(product, numbers.mul(numbers.div(product, count), count))
    share = numbers.div(numbers.cast(turns, np.float64), numbers.cast(count, np.float64))
    angle = numbers.name(numbers.mul(share, _double(2 * np.pi)), "angle")
    site = numbers.site
    quarter = site.add("Add", angle, site.const([np.pi / 2], "quarter", np.float64))
    return site.add("Sin", quarter, wish="cosines"), site.add("Sin", angle, wish="sines")


def _over(numbers: Numbers, wave: Number, count: Number) -> Number:
    return numbers.div(wave, numbers.cast(count, np.float64))


def _with_parts(site: Site, numbers: Numbers, x: str, rank: int, element: int) -> str:
    """With imaginary parts, which are 0 where there are none."""
    dims = site.dims(x)
    if dims is not None and dims[-1] == 2:
        return x
    zero = helper.make_tensor("value", element, [1], [0])
    zeros = site.add("ConstantOfShape", site.add("Shape", x), value=zero, wish="zeros")
    both = site.add("Concat", x, zeros, axis=rank - 1, wish="parts")
    return site.add("Gather", both, site.const([0, 1], "parts"), axis=rank - 1, wish="parts")


def _stft(site: Site) -> None:
    """Frames are gathered, and multiplied with the window."""
    signal, window = site.input(0), site.input(2)
    numbers = Numbers(site)
    step = numbers.cast(numbers.shaped(numbers.of(site.input(1)), [1], wish="step"), np.int64)
    size = numbers.size(signal, 1)
    if site.input(3):
        length = numbers.cast(numbers.shaped(numbers.of(site.input(3)), [1], wish="length"), np.int64)
    elif window:
        length = numbers.size(window, 0)
    else:
        length = size
    one = np.asarray([1], np.int64)
    frames = numbers.add(numbers.div(numbers.sub(size, length), step), one)
    starts = numbers.shaped(numbers.mul(numbers.range(frames), step), [-1, 1])
    places = numbers.add(starts, numbers.range(length))
    framed = site.add("Gather", signal, numbers.name(places, "frames"), axis=1, wish="framed")
    if window:
        framed = site.add("Mul", framed, site.add("Reshape", window, site.const([-1, 1], "column")), wish="windowed")
    dims = site.dims(signal)
    site.facts.made[framed].rank = 4
    known = None if isinstance(length, str) else int(length[0])
    site.facts.made[framed].dims = (None, None, known, dims[-1] if dims is not None else None)
    onesided = bool(site.attr("onesided", 1))
    site.put("Identity", [transformed(site, framed, "", 2, 4, inverse=False, onesided=onesided)])


def _mel(site: Site) -> None:
    """Triangles between places that are even on the mel scale; counted in float64."""
    if site.opset < 9:
        site.refuse("it takes operators of opset 9")
    numbers, kind = Numbers(site), site.attr("output_datatype", 1)

    def whole(place: int) -> Number:
        return numbers.cast(numbers.shaped(numbers.of(site.input(place)), [1]), np.int64)

    def real(number: Number) -> Number:
        return numbers.cast(number, np.float64)

    bins, length, rate = (whole(place) for place in range(3))
    edges = [numbers.shaped(numbers.of(site.input(place)), [1]) for place in (3, 4)]
    lowest, highest = (_mels(numbers, real(edge)) for edge in edges)
    count = numbers.add(bins, _long(2))
    step = numbers.div(numbers.sub(highest, lowest), real(count))
    mels = numbers.add(numbers.mul(real(numbers.range(count)), step), lowest)
    powers = numbers.do("Exp", numbers.mul(mels, _double(np.log(10) / 2595)))
    hertz = numbers.mul(numbers.sub(powers, _double(1)), _double(700))
    places = numbers.div(numbers.mul(hertz, real(numbers.add(length, _long(1)))), real(rate))
    places = numbers.cast(numbers.do("Floor", places), np.int64, wish="places")
    rows = numbers.shaped(numbers.range(numbers.add(numbers.div(length, _long(2)), _long(1))), [-1, 1])
    matrix = _triangles(numbers, bins, places, rows)
    site.put("Cast", [numbers.name(matrix, "weights")], to=kind)


def _long(value: int) -> Number:
    return np.asarray([value], np.int64)


def _double(value: float) -> Number:
    return np.asarray([value], np.float64)


def _mels(numbers: Numbers, hertz: Number) -> Number:
    grown = numbers.add(numbers.div(hertz, _double(700)), _double(1))
    return numbers.mul(numbers.do("Log", grown), _double(2595 / np.log(10)))


def _triangles(numbers: Numbers, bins: Number, places: Number, rows: Number) -> Number:
    """Each column rises from its first place to the middle, and falls to the last."""
    steps = numbers.range(bins)
    first, middle, last = (numbers.taken(places, numbers.add(steps, _long(shift))) for shift in range(3))
    rise, fall = numbers.sub(middle, first), numbers.sub(last, middle)
    one = _long(1)

    def share(part: Number, whole: Number) -> Number:
        return numbers.div(numbers.cast(part, np.float64), numbers.cast(numbers.higher(whole, one), np.float64))

    def between(low: Number, high: Number) -> Number:
        """Whether a row is one of low to high - 1."""
        below = numbers.less(rows, low)
        return numbers.do("And", numbers.do("Not", below), numbers.less(rows, high))

    rising = numbers.where(between(first, middle), share(numbers.sub(rows, first), rise), _double(0))
    falling = numbers.where(between(middle, last), share(numbers.sub(last, rows), fall), rising)
    return numbers.where(numbers.do("Equal", rows, middle), _double(1), falling)


adapter("DFT", 17, 0)(_dft)
adapter("STFT", 17, 0)(_stft)
adapter("MelWeightMatrix", 17, 0)(_mel)
