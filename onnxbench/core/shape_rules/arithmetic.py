"""Operators on single elements that are sizes: what a shape calculation in a model comes to."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from onnx import TensorProto

from onnxbench.core.shape_rules.facts import BOOL, Element, Elements, is_real, is_whole, rounded
from onnxbench.core.shape_rules.site import Site
from onnxbench.core.symbolic import Expr, Size, floordiv, largest, modulo, smallest
from onnxbench.core.values import dtype_of

Operation = Callable[[Site, Element, Element], Element]


def elementwise(site: Site, arrays: Sequence[Elements | None]) -> Elements | None:
    """The operator applied to arrays of elements; None if it is none of ours or the arrays do not fit."""
    operation = OPERATIONS.get(site.op)
    if operation is None or not arrays or any(array is None for array in arrays):
        return None
    result = arrays[0]
    try:
        for other in arrays[1:]:
            left, right = np.broadcast_arrays(result, other)  # type: ignore[arg-type]
            result = np.empty(left.shape, dtype=object)
            pairs = zip(left.reshape(-1), right.reshape(-1), strict=True)
            result.reshape(-1)[:] = [_held(site, operation(site, a, b)) for a, b in pairs]
    except (ValueError, OverflowError):
        return None
    return result


def _held(site: Site, value: Element) -> Element:
    """A result as the tensor holds it: integers that would wrap are unknown, reals are rounded."""
    return value if isinstance(value, Expr) or site.op in _ANSWERS else held(value, site.element())


def held(value: float | None, element: int | None) -> Element:
    """A number as a tensor of the type holds it; None for an integer beyond its range, which wraps at run time."""
    if value is None or is_real(element):
        return value if value is None else rounded(value, element)
    dtype = dtype_of(element) if element is not None and is_whole(element) else None
    if dtype is None or dtype.kind not in "iu":
        return value
    bounds = np.iinfo(dtype)
    return value if int(bounds.min) <= value <= int(bounds.max) else None


def _number(site: Site, value: float) -> Element:
    return rounded(value, site.element())


def _add(site: Site, a: Element, b: Element) -> Element:
    if a is None or b is None:
        return None
    if isinstance(a, float) or isinstance(b, float):
        return None if isinstance(a, Expr) or isinstance(b, Expr) else _number(site, a + b)
    return a + b


def _subtract(site: Site, a: Element, b: Element) -> Element:
    if a is None or b is None:
        return None
    if isinstance(a, float) or isinstance(b, float):
        return None if isinstance(a, Expr) or isinstance(b, Expr) else _number(site, a - b)
    return a - b


def _multiply(site: Site, a: Element, b: Element) -> Element:
    if (a == 0 or b == 0) and not (is_real(site.element()) and (a is None or b is None)):  # 0 * NaN is NaN
        return 0
    if a is None or b is None:
        return None
    if isinstance(a, float) or isinstance(b, float):
        return None if isinstance(a, Expr) or isinstance(b, Expr) else _number(site, a * b)
    return a * b


def _divide(site: Site, a: Element, b: Element) -> Element:
    if a is None or b is None or b == 0:
        return None
    if isinstance(a, float) or isinstance(b, float):
        return None if isinstance(a, Expr) or isinstance(b, Expr) else _number(site, a / b)
    if isinstance(a, int) and isinstance(b, int):
        if is_real(site.element()):
            return _number(site, a / b)
        return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    if modulo(a, b) == 0:
        return floordiv(a, b)
    if is_real(site.element()) or not site.never_negative(a) or not site.never_negative(b):
        return None
    return floordiv(a, b)


def _modulo(site: Site, a: Element, b: Element) -> Element:
    if not _whole(a, b) or b == 0 or site.integer("fmod", 0):
        return None
    return modulo(a, b)  # type: ignore[arg-type]


def _power(site: Site, a: Element, b: Element) -> Element:
    if not isinstance(b, int) or not 0 <= b < 8 or a is None or isinstance(a, float):
        return None
    result: Size = 1
    for _ in range(b):
        result = result * a
    return result


def _least(site: Site, a: Element, b: Element) -> Element:
    return _extreme(site, a, b, smallest, min)


def _most(site: Site, a: Element, b: Element) -> Element:
    return _extreme(site, a, b, largest, max)


def _extreme(site: Site, a: Element, b: Element, sizes: Callable[..., Size], numbers: Callable[..., float]) -> Element:
    if a is None or b is None:
        return None
    if isinstance(a, float) or isinstance(b, float):
        return None if isinstance(a, Expr) or isinstance(b, Expr) else numbers(a, b)
    low, high = site.bounds(a - b)
    if low >= 0 or high <= 0:
        return a if (low >= 0) == (numbers is max) else b
    return sizes(a, b)


def _equal(site: Site, a: Element, b: Element) -> Element:
    if a is None or b is None:
        return None
    if isinstance(a, float) or isinstance(b, float):
        return None if isinstance(a, Expr) or isinstance(b, Expr) else int(a == b)
    if a == b:
        return 1
    low, high = site.bounds(a - b)
    return 0 if low > 0 or high < 0 else None


def _less(site: Site, a: Element, b: Element) -> Element:
    if a is None or b is None:
        return None
    if isinstance(a, float) or isinstance(b, float):
        return None if isinstance(a, Expr) or isinstance(b, Expr) else int(a < b)
    low, high = site.bounds(b - a)
    return 1 if low > 0 else 0 if high <= 0 else None


def _not(value: Element) -> Element:
    return None if value is None else int(not value)


def _and(site: Site, a: Element, b: Element) -> Element:
    if a == 0 or b == 0:
        return 0
    return 1 if a == 1 and b == 1 else None


def _or(site: Site, a: Element, b: Element) -> Element:
    if a == 1 or b == 1:
        return 1
    return 0 if a == 0 and b == 0 else None


def _whole(*values: Element) -> bool:
    return all(isinstance(value, (int, Expr)) for value in values)


#: Types that hold every size that a tensor can reasonably have.
_HOLD_SIZES = frozenset(
    getattr(TensorProto, name) for name in ("INT32", "INT64", "UINT32", "UINT64", "FLOAT", "DOUBLE")
)

OPERATIONS: dict[str, Operation] = {
    "Add": _add,
    "Sum": _add,
    "Sub": _subtract,
    "Mul": _multiply,
    "Div": _divide,
    "Mod": _modulo,
    "Pow": _power,
    "Min": _least,
    "Max": _most,
    "Equal": _equal,
    "Less": _less,
    "Greater": lambda site, a, b: _less(site, b, a),
    "GreaterOrEqual": lambda site, a, b: _not(_less(site, a, b)),
    "LessOrEqual": lambda site, a, b: _not(_less(site, b, a)),
    "And": _and,
    "Or": _or,
    "Xor": lambda site, a, b: None if a is None or b is None else int(a != b),
}


#: Operators whose result is a boolean, kept as 0 and 1.
_ANSWERS = frozenset({"Equal", "Less", "Greater", "GreaterOrEqual", "LessOrEqual", "And", "Or", "Xor"})


def of_one(site: Site, value: Element) -> Element:
    """A unary operator applied to one element."""
    made = _of_one(site, value)
    return made if isinstance(made, Expr) else held(made, site.element())


def _of_one(site: Site, value: Element) -> Element:
    if value is None:
        return None
    number = value if isinstance(value, (int, float)) else None
    match site.op:
        case "Identity" | "Dropout":
            return value
        case "Floor" | "Ceil" | "Round":
            return value if number is None else _turned(site.op, number)
        case "Neg":
            return _subtract(site, 0, value)
        case "Not":
            return _not(number) if number is not None else None
        case "Abs":
            return abs(number) if number is not None else value if site.never_negative(value) else None  # type: ignore[arg-type]
        case "Relu":
            return _most(site, value, 0)
        case "Sqrt" if number is not None and number >= 0:
            return _number(site, math.sqrt(number))
        case "Reciprocal" if number:
            return _number(site, 1 / number)
        case "Sign" if number is not None:
            return (number > 0) - (number < 0)
    return None


def _turned(operator: str, number: float) -> int:
    match operator:
        case "Floor":
            return math.floor(number)
        case "Ceil":
            return math.ceil(number)
    return round(number)


def converted(value: Element, target: int | None) -> Element:
    """An element cast to another type."""
    if value is None:
        return None
    if isinstance(value, Expr):
        return value if target in _HOLD_SIZES else None
    if target == BOOL:
        return int(value != 0)
    return held(value if is_real(target) else int(value), target)
