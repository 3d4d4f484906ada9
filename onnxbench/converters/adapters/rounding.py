"""Round and the quantization operators before them: rounding half to even by what opset 9 has.

Sources: ai.onnx Round-11, QuantizeLinear-10 and 13, DequantizeLinear-10 and 13, MatMulInteger-10.
"""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from onnxbench.converters.adapters import adapter
from onnxbench.converters.site import Site

_LIMITS: dict[int, tuple[int, int]] = {TensorProto.UINT8: (0, 255), TensorProto.INT8: (-128, 127)}


def rounded(site: Site, x: str) -> str:
    """Half to even: what is above the floor decides, and at one half whether the floor is even."""
    floor = site.add("Floor", x)
    above = site.add("Sub", x, floor)
    half, one = site.scalar_like(0.5, x, "half"), site.scalar_like(1, x, "one")
    halves = site.add("Mul", floor, half)
    odd = site.add("Greater", site.add("Sub", halves, site.add("Floor", halves)), site.scalar_like(0, x, "zero"))
    tie = site.add("Not", site.add("Or", site.add("Less", above, half), site.add("Greater", above, half)))
    up = site.add("Or", site.add("Greater", above, half), site.add("And", tie, odd))
    # Of infinity there is nothing above the floor, and Where keeps it.
    return site.add("Where", up, site.add("Add", floor, one), floor, wish="rounded")


def _round(site: Site) -> None:
    if site.opset < 9:
        site.refuse("it takes operators of opset 9")
    site.put("Identity", [rounded(site, site.input(0))])


def _along(site: Site, name: str, x: str) -> str:
    """Scales or zero points with the dims that it takes to broadcast along the axis."""
    rank = site.rank(name)
    if rank == 0 or site.dims(name) == (1,):
        return name
    if rank != 1:
        site.refuse("the rank of its scale is not known")
    of = site.needed_rank(x)
    axis = site.attr("axis", 1)
    axis += of if axis < 0 else 0
    behind = of - axis - 1
    return site.add("Reshape", name, site.const([-1] + [1] * behind, "column"), wish="along") if behind else name


def _is_single(site: Site, name: str) -> bool:
    return not name or site.rank(name) == 0


def _quantize_to_10(site: Site) -> None:
    """QuantizeLinear-10 has one scale and zero point for all."""
    x, scale, zero = (site.input(place) for place in range(3))
    if _is_single(site, scale):
        site.same(drop=("axis",))
        return
    _quantized(site, x, scale, zero)


def _quantize_to_9(site: Site) -> None:
    if site.opset < 9:
        site.refuse("it takes operators of opset 9")
    _quantized(site, *(site.input(place) for place in range(3)))


def _quantized(site: Site, x: str, scale: str, zero: str) -> None:
    element = site.needed_element(zero) if zero else int(TensorProto.UINT8)
    if element not in _LIMITS:
        site.refuse("it quantizes to something else than 8 bits")
    if site.needed_element(x) == TensorProto.INT32:
        x = site.add("Cast", x, to=int(TensorProto.FLOAT), wish="wide")
    low, high = _LIMITS[element]
    ratio = site.add("Div", x, _along(site, scale, site.input(0)))
    value = rounded(site, ratio)
    if zero:
        value = site.add("Add", value, site.add("Cast", _along(site, zero, site.input(0)), to=int(TensorProto.FLOAT)))
    value = (
        site.add("Clip", value, min=float(low), max=float(high)) if site.opset < 11 else _clip(site, value, low, high)
    )
    site.put("Cast", [value], to=element)


def _clip(site: Site, value: str, low: int, high: int) -> str:
    return site.add("Clip", value, site.const(low, "low", np.float32), site.const(high, "high", np.float32))


def _dequantize_to_10(site: Site) -> None:
    if _is_single(site, site.input(1)):
        site.same(drop=("axis",))
        return
    _dequantized(site)


def _dequantized(site: Site) -> None:
    x, scale, zero = (site.input(place) for place in range(3))
    element = int(TensorProto.FLOAT)
    wide = x
    whole = int(TensorProto.INT32)
    if zero:
        left = x if site.element(x) == whole else site.add("Cast", x, to=whole, wish="wide")
        right = _along(site, zero, x)
        right = right if site.element(zero) == whole else site.add("Cast", right, to=whole, wish="zero")
        wide = site.add("Sub", left, right)
    site.put("Mul", [site.add("Cast", wide, to=element), _along(site, scale, x)])


def _matmul_integer(site: Site) -> None:
    """MatMul-9 takes int32, and so do differences of 8 bits."""
    if site.opset < 9:
        site.refuse("MatMul of whole numbers came with opset 9")
    whole = int(TensorProto.INT32)
    sides = []
    for place in (0, 1):
        name, zero = site.input(place), site.input(place + 2)
        wide = site.add("Cast", name, to=whole, wish="wide")
        if zero:
            point = site.add("Cast", zero, to=whole, wish="zero")
            if site.rank(zero) == 1 and place == 0 and site.dims(zero) != (1,):
                point = site.add("Reshape", point, site.const([-1, 1], "column"))
            wide = site.add("Sub", wide, point)
        sides.append(wide)
    site.put("MatMul", sides)


adapter("Round", 11, 0)(_round)
adapter("QuantizeLinear", 13, 10)(_quantize_to_10)
adapter("QuantizeLinear", 10, 0)(_quantize_to_9)
adapter("DequantizeLinear", 13, 10)(_dequantize_to_10)
adapter("DequantizeLinear", 10, 0)(_dequantized)
adapter("MatMulInteger", 10, 0)(_matmul_integer)
