"""Trilu before 14 and IsInf before 10, by comparisons.

Sources: ai.onnx Trilu-14, IsInf-10, Less-9, Greater-7, Where-9.
"""

from __future__ import annotations

import numpy as np
from onnx import TensorProto, helper

from onnxbench.converters.adapters import adapter
from onnxbench.converters.adapters._masks import counting
from onnxbench.converters.adapters._numbers import Number, Numbers
from onnxbench.converters.site import Site


def _trilu(site: Site) -> None:
    """A column stays if it is k and more behind its row, or at most k."""
    if site.opset < 9:
        site.refuse("it takes operators of opset 9")
    x, numbers = site.input(0), Numbers(site)
    element = site.needed_element(x)
    dims = site.dims(x)
    sizes: list[Number]
    if dims is not None and dims[-2] is not None and dims[-1] is not None:
        sizes = [np.asarray([dims[place]], np.int64) for place in (-2, -1)]
    else:
        shape = site.add("Shape", x, wish="shape")
        rank = numbers.sub(site.add("Shape", shape, wish="rank"), np.asarray([0], np.int64))
        sizes = []
        for back in (2, 1):
            place = numbers.name(numbers.sub(rank, np.asarray([back], np.int64)), "place")
            sizes.append(site.add("Gather", shape, place, axis=0, wish="size"))
    rows = numbers.shaped(_range(site, numbers, sizes[0]), [-1, 1])
    k: Number = np.asarray([0], np.int64)
    if site.input(1):
        k = numbers.shaped(numbers.of(site.input(1)), [1], wish="k")
    away = numbers.sub(_range(site, numbers, sizes[1]), rows)
    beyond = numbers.less(away, k) if site.attr("upper", 1) else numbers.do("Greater", away, k)
    if element == TensorProto.STRING:
        site.refuse("it is of text")
    zero = site.const(0, "zero", helper.tensor_dtype_to_np_dtype(element))
    site.put("Where", [numbers.name(beyond, "beyond"), zero, x])


def _range(site: Site, numbers: Numbers, count: Number) -> Number:
    return counting(site, count) if isinstance(count, str) else numbers.range(count)


def _is_inf(site: Site) -> None:
    """More than the greatest number of the type, or less than the lowest."""
    x = site.input(0)
    element = site.needed_element(x)
    if element not in (TensorProto.FLOAT, TensorProto.DOUBLE):
        site.refuse("it takes float32 and float64 only")
    most = float(np.finfo(helper.tensor_dtype_to_np_dtype(element)).max)
    parts = []
    if site.attr("detect_positive", 1):
        parts.append(site.add("Greater", x, site.scalar_like(most, x, "most")))
    if site.attr("detect_negative", 1):
        parts.append(site.add("Less", x, site.scalar_like(-most, x, "least")))
    if not parts:
        none = site.add("Greater", x, site.scalar_like(float("inf"), x, "beyond"))
        parts.append(none)
    if len(parts) == 1:
        site.put("Identity", parts)
    else:
        site.put("Or", parts)


adapter("Trilu", 14, 0)(_trilu)
adapter("IsInf", 10, 0)(_is_inf)
