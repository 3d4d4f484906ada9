"""Slice: attributes before 10, inputs since; no steps before 10, no negative axes before 11.

Sources: ai.onnx Slice-1, 10, 11, 13.
"""

from __future__ import annotations

import numpy as np

from onnxbench.converters import rules
from onnxbench.converters.adapters import adapter
from onnxbench.converters.adapters._slices import gathered
from onnxbench.converters.site import Site


def _up(site: Site) -> None:
    starts, ends = site.from_attribute("starts", "starts"), site.from_attribute("ends", "ends")
    axes = site.from_attribute("axes", "axes") if site.has("axes") else ""
    site.same([site.input(0), starts, ends, axes], drop=("starts", "ends", "axes"))


def _down(site: Site) -> None:
    x = site.input(0)
    values = [site.value(name) if name else None for name in (*list(site.node.input)[1:5], "", "", "")[:4]]
    starts, ends, axes, steps = values
    known = starts is not None and ends is not None
    known = known and (axes is not None or not site.input(3)) and (steps is not None or not site.input(4))
    if known and (steps is None or bool((steps == 1).all())):
        given = None if axes is None else _counted(site, x, axes)
        site.same([x], starts=_ints(starts), ends=_ints(ends), axes=given)
        return
    gathered(site, x, *(site.input(place) for place in range(1, 5)))


def _ints(values: object) -> list[int]:
    return [int(value) for value in np.asarray(values).reshape(-1)]


def _counted(site: Site, x: str, axes: np.ndarray) -> list[int]:
    numbers = _ints(axes)
    if any(axis < 0 for axis in numbers):
        rank = site.needed_rank(x)
        return [axis % rank for axis in numbers]
    return numbers


def _to_10(site: Site) -> None:
    """Slice-10 says nothing of axes that count from the end."""
    axes = site.value(site.input(3))
    if axes is not None and (axes < 0).any():
        axes = np.asarray(_counted(site, site.input(0), axes), axes.dtype)
        site.node.input[3] = site.const(axes, "axes", axes.dtype)
    rules.keep(site)


def _shape_down(site: Site) -> None:
    """Shape-13 has no start and end: a Slice of the whole shape has, and clamps them alike."""
    start, end = site.attr("start", 0), site.attr("end")
    if start == 0 and end is None:
        site.same(drop=("start",))
        return
    whole = site.add("Shape", site.input(0))
    last = (1 << 63) - 1 if end is None else end
    site.put("Slice", [whole, site.const([start], "start"), site.const([last], "end"), site.const([0], "axis")])


adapter("Shape", 15, 13)(_shape_down)
adapter("Slice", 1, 10)(_up)
adapter("Slice", 10, 1)(_down)
adapter("Slice", 11, 10)(_to_10)
