"""What can be proved of sizes: whether one is never negative, never one, larger than another."""

from __future__ import annotations

from collections.abc import Container
from math import gcd, inf

from onnxbench.core.symbolic import Atom, Call, Expr, Size

Bounds = tuple[float, float]


def bounds(size: Size, seen: Container[Size] = ()) -> Bounds:
    """The least and the greatest that a size can be, if every symbol is 0 or more, and all that are `seen` too."""
    if isinstance(size, int):
        return size, size
    low, high = 0.0, 0.0
    for monomial, factor in size.terms.items():
        ends: Bounds = (factor, factor)
        for atom, power in monomial:
            for _ in range(power):
                ends = _product(ends, _atom(atom, seen))
        low, high = low + ends[0], high + ends[1]
    if low < 0 and size in seen:
        low = 0
    return low, high


def never_negative(size: Size, seen: Container[Size] = ()) -> bool:
    """Whether a size is 0 or more whatever its symbols are."""
    return bounds(size, seen)[0] >= 0


def never_one(size: Size, seen: Container[Size] = ()) -> bool:
    """Whether a size is not 1 whatever its symbols are: then broadcasting cannot stretch it."""
    if isinstance(size, int):
        return size != 1
    if bounds(size, seen)[0] > 1:
        return True
    whole = size.terms.get((), 0)
    common = gcd(*(factor for monomial, factor in size.terms.items() if monomial))
    return common > 1 and whole % common != 1


def is_capped(size: Size, whole: Size) -> bool:
    """Whether a size is the smaller of `whole` and numbers above 0: 1 where that is 1, and never 0 by itself."""
    if not isinstance(size, Expr) or len(size.terms) != 1:
        return False
    ((monomial, factor),) = size.terms.items()
    if factor != 1 or len(monomial) != 1 or monomial[0][1] != 1 or not isinstance(monomial[0][0], Call):
        return False
    call = monomial[0][0]
    rest = [argument for argument in call.arguments if argument != whole]
    return (
        call.function == "min"
        and len(rest) < len(call.arguments)
        and all(isinstance(argument, int) and argument > 0 for argument in rest)
    )


def _product(left: Bounds, right: Bounds) -> Bounds:
    ends = [0.0 if a == 0 or b == 0 else a * b for a in left for b in right]
    return min(ends), max(ends)


def _atom(atom: Atom, seen: Container[Size]) -> Bounds:
    if isinstance(atom, str):
        return 0, inf
    inner = [bounds(argument, seen) for argument in atom.arguments]
    match atom.function:
        case "min":
            return min(low for low, _ in inner), min(high for _, high in inner)
        case "max":
            return max(low for low, _ in inner), max(high for _, high in inner)
        case "mod" if inner[1][0] > 0:
            return 0, inner[1][1] - 1
        case "floordiv" if inner[1][0] >= 0 and inner[0][0] >= 0:
            return 0, inner[0][1]
        case "floordiv" if isinstance(atom.arguments[1], int) and atom.arguments[1] > 0:
            low, high = inner[0]
            by = atom.arguments[1]
            return low if low == -inf else low // by, high if high == inf else high // by
    return (0, inf) if Expr({((atom, 1),): 1}) in seen else (-inf, inf)
