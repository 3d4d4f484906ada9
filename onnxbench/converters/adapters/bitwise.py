"""Bits of whole numbers before the operators for them: four at a time by a table, shifts by powers of two, in int64.

Sources: ai.onnx BitwiseAnd-18, BitwiseOr-18, BitwiseXor-18, BitwiseNot-18, BitShift-11 and 28.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from onnx import TensorProto

from onnxbench.converters import rules
from onnxbench.converters.adapters import adapter
from onnxbench.converters.adapters._masks import reduced
from onnxbench.converters.site import Site

_SIGNED: dict[int, int] = {TensorProto.INT8: 8, TensorProto.INT16: 16, TensorProto.INT32: 32, TensorProto.INT64: 64}
_UNSIGNED: dict[int, int] = {
    TensorProto.UINT8: 8,
    TensorProto.UINT16: 16,
    TensorProto.UINT32: 32,
    TensorProto.UINT64: 64,
}
_WIDE = int(TensorProto.INT64)
_LOWEST = -(1 << 63)
_TABLES: dict[str, Callable[[int, int], int]] = {
    "BitwiseAnd": lambda a, b: a & b,
    "BitwiseOr": lambda a, b: a | b,
    "BitwiseXor": lambda a, b: a ^ b,
}


def _both(site: Site) -> None:
    """Each number as one that is not negative, in int64; a 64th bit goes by itself."""
    x, y = site.input(0), site.input(1)
    element = site.needed_element(x)
    if element == TensorProto.UINT64:
        _both_halves(site, x, y)
        return
    bits = {**_SIGNED, **_UNSIGNED}[element]
    lows = [_positive(site, name, element, bits) for name in (x, y)]
    low = _by_table(site, lows, min(bits, 63))
    if element not in _SIGNED:
        site.put("Cast", [low], to=element)
        return
    if bits == 64:
        zero = site.const(0, "zero")
        signs = [site.add("Less", name, zero) for name in (x, y)]
        sign = site.add(site.node.op_type.removeprefix("Bitwise"), *signs, wish="sign")
        site.put("Add", [low, site.add("Where", sign, site.const(_LOWEST, "lowest"), zero)])
        return
    site.put("Cast", [_signed(site, low, bits)], to=element)


def _positive(site: Site, name: str, element: int, bits: int) -> str:
    """A number without its sign bit if that is the 64th; else the number that has the same bits."""
    wide = name if element == _WIDE else site.add("Cast", name, to=_WIDE, wish="wide")
    if element not in _SIGNED:
        return wide
    less = site.add("Less", wide, site.const(0, "zero"))
    moved = (
        site.add("Sub", wide, site.const(_LOWEST, "lowest"))
        if bits == 64
        else site.add("Add", wide, site.const(1 << bits, "turn"))
    )
    return site.add("Where", less, moved, wide, wish="bits")


def _signed(site: Site, low: str, bits: int) -> str:
    beyond = site.add("Less", low, site.const(1 << (bits - 1), "half"))
    return site.add("Where", beyond, low, site.add("Sub", low, site.const(1 << bits, "turn")), wish="signed")


def _by_table(site: Site, numbers: list[str], bits: int) -> str:
    combine = _TABLES[site.node.op_type]
    table = site.const([combine(a, b) for a in range(16) for b in range(16)], "table")
    powers = site.const([1 << place for place in range(0, bits, 4)], "powers")
    sixteen, last = site.const(16, "sixteen"), site.const([-1], "last")
    columns = []
    for name in numbers:
        shifted = site.add("Div", site.add("Unsqueeze", name, last), powers)
        columns.append(site.add("Mod", shifted, sixteen, wish="digits"))
    places = site.add("Add", site.add("Mul", columns[0], sixteen), columns[1], wish="places")
    digits = site.add("Gather", table, places, axis=0, wish="digits")
    return reduced(site, "ReduceSum", site.add("Mul", digits, powers), [-1])


def _both_halves(site: Site, x: str, y: str) -> None:
    half = site.const(1 << 32, "half", np.uint64)
    lows, highs = [], []
    for name in (x, y):
        high = site.add("Div", name, half, wish="high")
        low = site.add("Sub", name, site.add("Mul", high, half), wish="low")
        highs.append(site.add("Cast", high, to=_WIDE))
        lows.append(site.add("Cast", low, to=_WIDE))
    made = [site.add("Cast", _by_table(site, pair, 32), to=int(TensorProto.UINT64)) for pair in (highs, lows)]
    site.put("Add", [site.add("Mul", made[0], half), made[1]])


def _not(site: Site) -> None:
    """Of a number with a sign -1 less it, of one without the highest less it."""
    x = site.input(0)
    element = site.needed_element(x)
    highest = -1 if element in _SIGNED else (1 << _UNSIGNED[element]) - 1
    if element in (TensorProto.INT32, TensorProto.INT64, TensorProto.UINT64):
        site.put("Sub", [site.scalar_like(highest, x, "highest"), x])
        return
    wide = site.add("Cast", x, to=_WIDE, wish="wide")
    site.put("Cast", [site.add("Sub", site.const(highest, "highest"), wide)], to=element)


def _shift_signed(site: Site) -> None:
    """BitShift-11 takes numbers without sign. What is shifted out is gone; to the right the sign fills up."""
    x = site.input(0)
    element = site.needed_element(x)
    if element not in _SIGNED:
        rules.keep(site)
        return
    bits, by = _SIGNED[element], site.input(1)
    if element != _WIDE:
        x, by = (site.add("Cast", name, to=_WIDE, wish="wide") for name in (x, by))
    zero = site.const(0, "zero")
    most = min(bits, 63) - 1 if site.attr("direction") == "RIGHT" else bits - 1
    beyond = site.add("Or", site.add("Less", by, zero), site.add("Greater", by, site.const(most, "most")))
    steps = site.add("Where", beyond, zero, by, wish="steps")
    powers = site.const([1 << place for place in range(min(bits, 63))] + [1] * (bits == 64), "powers")
    power = site.add("Gather", powers, steps, axis=0, wish="power")
    if site.attr("direction") == "RIGHT":
        rest = site.add("Where", site.add("Less", x, zero), site.const(-1, "minus"), zero)
        moved = site.add("Div", site.add("Sub", x, site.add("Mod", x, power)), power)
    else:
        rest = zero
        moved = _left(site, x, steps, power, bits)
    result = site.add("Where", beyond, rest, moved, wish="shifted")
    if element == _WIDE:
        site.put("Identity", [result])
    else:
        site.put("Cast", [result], to=element)


def _left(site: Site, x: str, steps: str, power: str, bits: int) -> str:
    """What stays below the sign bit, and the bit that comes to stand there."""
    # Shifts by 0 are taken apart: the number that they would divide by has no place in int64.
    tops = site.const([1] + [1 << (bits - 1 - place) for place in range(1, bits)], "tops")
    top = site.add("Gather", tops, steps, axis=0, wish="top")
    if bits == 64:
        high = site.const([1 << place for place in range(63)] + [_LOWEST], "powers")
        power = site.add("Gather", high, steps, axis=0, wish="power")
    low = site.add("Mod", x, top)
    bit = site.add("Mod", site.add("Div", site.add("Sub", x, low), top), site.const(2, "two"), wish="bit")
    sign = site.add("Mul", bit, site.const(-(1 << (bits - 1)), "sign"))
    moved = site.add("Add", site.add("Mul", low, power), sign)
    return site.add("Where", site.add("Equal", steps, site.const(0, "zero")), x, moved)


for _op in _TABLES:
    adapter(_op, 18, 0)(_both)
adapter("BitwiseNot", 18, 0)(_not)
adapter("BitShift", 28, 11)(_shift_signed)
