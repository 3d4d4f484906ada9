"""Arithmetic of whole numbers, and remainders, before the operators for it: Mod, BitShift, Max and Min, Pow.

Sources: ai.onnx Mod-10 and 13, BitShift-11, Max-8 and 12, Min alike, Pow-7 and 12; comparisons and Where of opset 9.
"""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from onnxbench.converters import rules
from onnxbench.converters.adapters import adapter
from onnxbench.converters.adapters._numbers import fits_float32
from onnxbench.converters.site import Site

_FLOATS = (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16)
#: What a float64 holds and a float32 does not.
_HELD = (TensorProto.INT32, TensorProto.UINT32, TensorProto.DOUBLE)
#: What arithmetic of opset 7 takes of whole numbers, and where the others fit into.
_WIDER: dict[int, int] = {
    TensorProto.INT8: TensorProto.INT32,
    TensorProto.INT16: TensorProto.INT32,
    TensorProto.UINT8: TensorProto.UINT32,
    TensorProto.UINT16: TensorProto.UINT32,
}


def widened(site: Site, names: list[str], element: int) -> tuple[list[str], int]:
    """Values in an element type that arithmetic of opset 7 takes, and that type."""
    wide = _WIDER.get(element)
    if wide is None:
        return names, element
    return [site.add("Cast", name, to=int(wide), wish="wide") for name in names], int(wide)


def finish(site: Site, value: str, wide: int, element: int) -> None:
    """Make the output of a value in a wider type."""
    if wide == element:
        site.put("Identity", [value])
    else:
        site.put("Cast", [value], to=element)


def _mod(site: Site) -> None:
    x, y = site.input(0), site.input(1)
    element = site.needed_element(x)
    if element in _FLOATS:
        if element != TensorProto.FLOAT16:
            site.refuse("no older operators give the remainder of large quotients to the last bit")
        wide = int(TensorProto.DOUBLE)
        x, y = (site.add("Cast", name, to=wide, wish="wide") for name in (x, y))
        # float64 holds every quotient of two float16, and what is cut off of it, to the last bit.
        quotient = site.add("Div", x, y)
        cut = _cut(site, quotient)
        left = site.add("Sub", x, site.add("Mul", cut, y))
        # Nothing goes into infinity: all of what is finite is left.
        most = site.const(float(np.finfo(np.float16).max), "most", np.float64)
        endless, too = (site.add("Greater", site.add("Abs", name), most) for name in (y, x))
        whole = site.add("And", endless, site.add("Not", too))
        finish(site, site.add("Where", whole, x, left), wide, element)
        return
    (x, y), wide = widened(site, [x, y], element)
    left = site.add("Sub", x, site.add("Mul", site.add("Div", x, y), y), wish="left")
    if site.attr("fmod", 0) or element in (2, 4, 12, 13):
        finish(site, left, wide, element)
        return
    # The sign is that of the divisor: Div of whole numbers cuts off, so what is left has that of the dividend.
    zero = site.scalar_like(0, left, "zero")
    apart = site.add("Xor", site.add("Less", left, zero), site.add("Less", y, zero))
    some = site.add("Or", site.add("Less", left, zero), site.add("Greater", left, zero))
    finish(site, site.add("Where", site.add("And", apart, some), site.add("Add", left, y), left), wide, element)


def _float_sign(site: Site) -> None:
    """Before 28 floats have the sign of the dividend only (fmod): what is left is moved by a divisor."""
    x, y = site.input(0), site.input(1)
    if site.attr("fmod", 0) or site.needed_element(x) not in (*_FLOATS, TensorProto.BFLOAT16):
        rules.keep(site)
        return
    left = site.add("Mod", x, y, fmod=1)
    zero = site.scalar_like(0, x, "zero")
    apart = site.add("Xor", site.add("Less", left, zero), site.add("Less", y, zero))
    some = site.add("Not", site.add("Equal", left, zero))
    moved = site.add("Add", left, y)
    site.put("Where", [site.add("And", apart, some), moved, left])


def _cut(site: Site, x: str) -> str:
    """The whole part of a float."""
    zero = site.scalar_like(0, x, "zero")
    return site.add("Where", site.add("Less", x, zero), site.add("Ceil", x), site.add("Floor", x))


def _shift(site: Site) -> None:
    """By multiplication and division with powers of two; what is shifted out is gone, 64 places and more leave 0."""
    if site.opset < 9:
        site.refuse("it takes operators of opset 9")
    x, by = site.input(0), site.input(1)
    element = site.needed_element(x)
    bits = {2: 8, 4: 16, 12: 32, 13: 64}[element]
    wide = int(TensorProto.UINT64 if bits == 64 else TensorProto.INT64)
    dtype = np.uint64 if bits == 64 else np.int64
    x = x if element == wide else site.add("Cast", x, to=wide, wish="wide")
    steps = site.add("Cast", by, to=int(TensorProto.INT64), wish="steps")
    most = site.const(bits - 1, "most")
    beyond = site.add("Greater", steps, most)
    table = site.const([1 << place for place in range(bits)], "powers", dtype)
    power = site.add("Gather", table, site.add("Where", beyond, most, steps), axis=0, wish="powers")
    moved = site.add("Mul" if site.attr("direction") == "LEFT" else "Div", x, power)
    zero = site.const(0, "nothing", dtype)
    finish(site, site.add("Where", beyond, zero, moved), wide, element)


def _extreme(site: Site) -> None:
    """Max-8 and Min-8 take floats."""
    element = site.needed_element(site.input(0))
    if element in _FLOATS:
        rules.keep(site)
        return
    if element == TensorProto.BFLOAT16:
        site.refuse(f"{site.node.op_type}-8 takes no bfloat16")
    if site.target < 9:
        site.refuse("comparisons of whole numbers came with opset 9")
    compare = "Less" if site.node.op_type == "Max" else "Greater"
    current = site.input(0)
    for name in site.node.input[1:]:
        current = site.add("Where", site.add(compare, current, name), name, current)
    site.put("Identity", [current])


def _power(site: Site) -> None:
    """Pow-7 takes floats of one type; a float64 holds every int32, of which a float32 loses whether it is odd."""
    x, y = site.input(0), site.input(1)
    element, other = site.needed_element(x), site.needed_element(y)
    if element in _FLOATS and other == element:
        site.same()
        return
    if element in _FLOATS:
        exponent = site.value(y)
        wider = element != TensorProto.DOUBLE and not (exponent is not None and fits_float32(exponent))
        if wider and other in (TensorProto.INT64, TensorProto.UINT64):
            site.refuse("its exponent has a wider type than what it is applied to")
        if wider and other in _HELD:
            _power_in(int(TensorProto.DOUBLE), site, element)
        elif element == TensorProto.FLOAT16:
            _power_in(int(TensorProto.FLOAT), site, element)
        else:
            site.same([x, site.add("Cast", y, to=element, wish="exponent")])
        return
    if element != TensorProto.INT32 or other in (TensorProto.INT64, TensorProto.UINT64):
        exponent = site.value(y)
        whole = exponent is not None and exponent.size == 1 and float(exponent.reshape(-1)[0]) in (1.0, 2.0, 3.0)
        if not whole:
            site.refuse("powers of such numbers do not all fit into a float64")
        assert exponent is not None
        count, current = int(exponent.reshape(-1)[0]), x
        for _ in range(count - 1):
            current = site.add("Mul", current, x)
        site.put("Identity", [current])
        return
    _power_in(int(TensorProto.DOUBLE), site, element)


def _power_in(wide: int, site: Site, element: int) -> None:
    raised = site.add("Pow", *(site.add("Cast", site.input(place), to=wide) for place in (0, 1)))
    finish(site, raised, wide, element)


adapter("Mod", 10, 0)(_mod)
adapter("Mod", 28, 13)(_float_sign)
adapter("BitShift", 11, 0)(_shift)
for _op in ("Max", "Min"):
    adapter(_op, 12, 8)(_extreme)
adapter("Pow", 12, 7)(_power)
