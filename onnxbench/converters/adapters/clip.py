"""Clip: bounds are attributes before 11, inputs since; the older ones have defaults, so that infinity is clipped too.

Sources: ai.onnx Clip-6 (defaults are the lowest and highest float32), 11, 12 (integers), 13.
"""

from __future__ import annotations

import numpy as np
from onnx import TensorProto, helper

from onnxbench.converters import rules
from onnxbench.converters.adapters import adapter
from onnxbench.converters.adapters._numbers import fits_float32
from onnxbench.converters.site import Site

_FLOATS = (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.BFLOAT16)


def _up(site: Site) -> None:
    x = site.input(0)
    element = site.needed_element(x)
    bounds = [_bound(site, name, element) for name in ("min", "max")]
    site.same([x, *bounds], drop=("min", "max"))


def _bound(site: Site, name: str, element: int) -> str:
    dtype = helper.tensor_dtype_to_np_dtype(element)
    if site.has(name) and element == TensorProto.FLOAT:
        return site.from_attribute(name, name, np.float32)
    with np.errstate(over="ignore"):  # of float16 the defaults are the infinities
        return site.const(site.attr(name), name, dtype)


def _down(site: Site) -> None:
    """A bound that is left out is the last finite number of the element type, to which infinity is clipped (Clip-11)."""
    x = site.input(0)
    ends = _ends(site.needed_element(x))
    given: dict[str, float] = {}
    for place, name in ((1, "min"), (2, "max")):
        value = site.value(site.input(place)) if site.input(place) else np.asarray(ends[place - 1])
        if value is None or not fits_float32(value.reshape(-1)[:1]):
            _at_run_time(site, x, ends)
            return
        given[name] = float(value.reshape(-1)[0]) if value.size else ends[place - 1]
    site.same([x], min=given["min"], max=given["max"])


def _ends(element: int) -> tuple[float, float]:
    """The lowest and the highest finite number of a type."""
    if element == TensorProto.DOUBLE:
        return float(np.finfo(np.float64).min), float(np.finfo(np.float64).max)
    if element == TensorProto.FLOAT16:
        return float(np.finfo(np.float16).min), float(np.finfo(np.float16).max)
    return float(np.finfo(np.float32).min), float(np.finfo(np.float32).max)


def _at_run_time(site: Site, x: str, ends: tuple[float, float]) -> None:
    if site.target < 8 and site.rank(x) != 0:  # there is nothing that broadcasts
        site.refuse(
            "bounds would have to be attributes, which hold float32, and they are only known at run time or wider"
        )
    low = site.input(1) or site.scalar_like(ends[0], x, "lowest")
    high = site.input(2) or site.scalar_like(ends[1], x, "highest")
    site.put("Min", [site.add("Max", x, low), high])


def _whole_numbers(site: Site) -> None:
    """Clip-11 takes no integers: comparisons and choices do (Less-9, Where-9)."""
    x, low, high = site.input(0), site.input(1), site.input(2)
    element = site.needed_element(x)
    if element == TensorProto.FLOAT16 and not (low and high):
        # Runtimes that compute halves in float32 would clip to the last number of that.
        ends = [site.scalar_like(end, x, "end") for end in _ends(element)]
        site.same([x, low or ends[0], high or ends[1]])
        return
    if element in _FLOATS:
        rules.keep(site)
        return
    current = x
    if low:
        current = site.add("Where", site.add("Less", x, low), low, x)
    if high:
        current = site.add("Where", site.add("Greater", current, high), high, current)
    site.put("Identity", [current])


adapter("Clip", 6, 11)(_up)
adapter("Clip", 11, 6)(_down)
adapter("Clip", 12, 11)(_whole_numbers)
