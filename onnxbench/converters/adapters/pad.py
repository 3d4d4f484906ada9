"""Pad: `paddings` in 1, attributes before 11, inputs since; axes since 18, wrapping since 19.

Sources: ai.onnx Pad-1, 2, 11, 13, 18, 19.
"""

from __future__ import annotations

import numpy as np
from onnx import TensorProto, helper

from onnxbench.converters import rules
from onnxbench.converters.adapters import adapter
from onnxbench.converters.adapters._axes import size_along
from onnxbench.converters.adapters._masks import counting
from onnxbench.converters.adapters._numbers import fits_float32
from onnxbench.converters.site import Site

_FLOATS = (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16)


def _from_1(site: Site) -> None:
    site.same(drop=("paddings",), pads=site.attr("paddings"))


def _to_1(site: Site) -> None:
    site.same(drop=("pads",), paddings=site.attr("pads"))


def _up(site: Site) -> None:
    x = site.input(0)
    value = site.attr("value")
    given = ""
    if value and site.attr("mode") == "constant":
        given = site.scalar_like(value, x, "value")
    site.same([x, site.from_attribute("pads", "pads"), given], drop=("pads", "value"))


def _down(site: Site) -> None:
    """To Pad-2, whose pads are known, elements floats, and value a float32; else each axis is gathered."""
    x = site.input(0)
    pads, value = site.value(site.input(1)), _value(site)
    if site.element(x) in _FLOATS and pads is not None and value is not None:
        site.same([x], pads=[int(pad) for pad in pads.reshape(-1)], value=value)
        return
    if site.target < 9:
        site.refuse(
            "pads and value would have to be attributes of floats, and are only known at run time, or of wider types"
        )
    _gathered(site, x, None if pads is None else [int(pad) for pad in pads.reshape(-1)])


def _value(site: Site) -> float | None:
    """The constant as an attribute, which is a float32, gives it; None if it cannot."""
    if not site.input(2) or site.attr("mode") != "constant":
        return 0.0
    known = site.value(site.input(2))
    return None if known is None or not known.size or not fits_float32(known) else float(known.reshape(-1)[0])


def _gathered(site: Site, x: str, pads: list[int] | None) -> None:
    """Each axis by itself: blocks of the constant on both sides, or a Gather of elements that repeat or are mirrored."""
    rank, mode = site.needed_rank(x), site.attr("mode")
    current = x
    wide = site.input(1)
    if pads is None and site.element(wide) != TensorProto.INT64:
        wide = site.add("Cast", wide, to=int(TensorProto.INT64))
    value = _constant(site, x) if mode == "constant" else ""
    for axis in range(rank):
        if pads is not None and pads[axis] == 0 == pads[axis + rank]:
            continue
        before, after = (
            site.const([pads[place]], f"pad_{place}")
            if pads is not None
            else site.add("Gather", wide, site.const([place], f"place_{place}"), axis=0)
            for place in (axis, axis + rank)
        )
        if mode == "constant":
            current = _between_blocks(site, current, axis, rank, before, after, value)
            continue
        size = size_along(site, current, axis)
        total = site.add("Add", site.add("Add", size, before), after)
        places = site.add("Sub", counting(site, total), before, wish="places")
        current = site.add("Gather", current, _indices(site, places, size, mode), axis=axis, wish="padded")
    site.put("Identity", [current])


def _constant(site: Site, x: str) -> str:
    if site.input(2):
        return site.add("Reshape", site.input(2), site.const([], "scalar"), wish="value")
    dtype = helper.tensor_dtype_to_np_dtype(site.needed_element(x))
    return site.const("" if dtype.hasobject else 0, "value", dtype)


def _between_blocks(site: Site, x: str, axis: int, rank: int, before: str, after: str, value: str) -> str:
    """What is left of an axis once negative pads are cut off, between two blocks of a constant."""
    zero = site.const([0], "zero")
    size = size_along(site, x, axis)
    cut = [site.add("Where", site.add("Less", pad, zero), pad, zero, wish="cut") for pad in (before, after)]
    more = [site.add("Where", site.add("Less", pad, zero), zero, pad, wish="more") for pad in (before, after)]
    left = site.add("Add", size, site.add("Add", *cut), wish="left")
    inner = site.add("Gather", x, site.add("Sub", counting(site, left), cut[0], wish="places"), axis=axis, wish="inner")
    sizes = [size_along(site, x, place) for place in range(rank)]
    blocks = []
    for count in more:
        sizes[axis] = count
        shape = site.add("Concat", *sizes, axis=0, wish="shape") if rank > 1 else count
        blocks.append(site.add("Expand", value, shape, wish="block"))
    return site.add("Concat", blocks[0], inner, blocks[1], axis=axis, wish="padded")


def _indices(site: Site, places: str, size: str, mode: str) -> str:
    zero, one = site.const([0], "zero"), site.const([1], "one")
    if mode == "edge":
        top = site.add("Sub", size, one)
        raised = site.add("Where", site.add("Less", places, zero), zero, places)
        return site.add("Where", site.add("Greater", raised, top), top, raised, wish="indices")
    if mode == "wrap":
        return _modulo(site, places, size)
    if mode != "reflect":
        site.refuse(f"mode {mode} has no older form")
    # There and back again: the period is twice the size less two, and its second half counts backwards.
    top = site.add("Sub", size, one)
    two = site.const([2], "two")
    period = site.add("Mul", top, two)
    period = site.add("Where", site.add("Less", period, one), one, period, wish="period")
    turned = site.add("Sub", top, _modulo(site, places, period))
    negative = site.add("Where", site.add("Less", turned, zero), turned, site.add("Sub", zero, turned))
    return site.add("Add", top, negative, wish="indices")


def _modulo(site: Site, places: str, size: str) -> str:
    """Places counted round and round; Div of integers cuts off, so what is left may be negative once."""
    left = site.add("Sub", places, site.add("Mul", site.add("Div", places, size), size))
    zero = site.const([0], "zero")
    return site.add("Where", site.add("Less", left, zero), site.add("Add", left, size), left, wish="modulo")


def _without_axes(site: Site) -> None:
    """Pad-13 has pads for every axis."""
    axes = site.input(3)
    if not axes:
        rules.keep(site)
        return
    x, known = site.input(0), site.value(axes)
    rank = site.needed_rank(x)
    pads = site.value(site.input(1))
    dtype = np.int64
    if known is not None and pads is not None:
        every = [0] * (2 * rank)
        count = known.size
        for place, axis in enumerate(int(axis) % rank for axis in known.reshape(-1)):
            every[axis], every[axis + rank] = int(pads[place]), int(pads[place + count])
        site.same([x, site.const(every, "pads", dtype), site.input(2)])
        return
    # At run time: one list of both sides, scattered to where the axes say.
    front = site.add("Cast", axes, to=int(TensorProto.INT64))
    size = site.const([rank], "rank")
    less = site.add("Less", front, site.const([0], "zero"))
    front = site.add("Where", less, site.add("Add", front, size), front)
    both = site.add("Concat", front, site.add("Add", front, size), axis=0, wish="places")
    every_pad = site.add(
        "ScatterElements", site.const([0] * (2 * rank), "zeros"), both, site.input(1), axis=0, wish="pads"
    )
    site.same([x, every_pad, site.input(2)])


def _no_wrap(site: Site) -> None:
    if site.attr("mode") != "wrap":
        rules.keep(site)
        return
    if site.input(3):
        site.refuse("it wraps around some axes only")
    pads = site.value(site.input(1))
    _gathered(site, site.input(0), None if pads is None else [int(pad) for pad in pads.reshape(-1)])


adapter("Pad", 1, 2)(_from_1)
adapter("Pad", 2, 1)(_to_1)
adapter("Pad", 2, 11)(_up)
adapter("Pad", 11, 2)(_down)
adapter("Pad", 18, 13)(_without_axes)
adapter("Pad", 19, 18)(_no_wrap)
