"""Simpler numbers for a tensor, simplest first."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import numpy as np

from onnxbench.core.values import Array, dtype_name, is_float, is_integer
from onnxbench.reducers.measure import oddness
from onnxbench.reducers.reproducer import Reproducer
from onnxbench.reducers.shrink import Shrinker

Simpler = Callable[[Array], Array]
Key = TypeVar("Key", str, int)
#: The reproducer with other values for these keys.
Replace = Callable[[Reproducer, Mapping[Key, Array]], Reproducer | None]
#: The values by key, of those that may change.
Read = Callable[[Reproducer], Mapping[Key, Array]]


def simplify(shrinker: Shrinker, read: Read[Key], replace: Replace[Key]) -> None:
    """Simplify all tensors alike, then each by itself."""
    for rung in LADDER:
        if shrinker.consider(_on_rung(shrinker.best, read, replace, rung, None)):
            break
    for key in list(read(shrinker.best)):
        for rung in LADDER:
            if shrinker.consider(_on_rung(shrinker.best, read, replace, rung, [key])):
                break


def _on_rung(
    best: Reproducer, read: Read[Key], replace: Replace[Key], rung: Simpler, keys: Sequence[Key] | None
) -> Reproducer | None:
    """The reproducer with those tensors simplified that get simpler by it; None if none does."""
    made: dict[Key, Array] = {}
    for key, value in read(best).items():
        if (keys is None or key in keys) and value.size and (_is_number(value) or rung is _letters):
            simple = rung(value)
            if oddness(simple) < oddness(value):
                made[key] = simple
    return replace(best, made) if made else None


def _is_number(value: Array) -> bool:
    return value.dtype.kind == "b" or is_float(value.dtype) or is_integer(value.dtype)


def _ones(value: Array) -> Array:
    return np.ones_like(value)


def _zeros(value: Array) -> Array:
    return np.zeros_like(value)


def _signs(value: Array) -> Array:
    return np.sign(_wide(value)).astype(value.dtype)


def _peak(value: Array) -> Array:
    """All are the largest in size, rounded away from zero."""
    return np.full_like(value, _round_up(_wide(value).reshape(-1)[_largest(value)]))


def _low(value: Array) -> Array:
    """All are the smallest."""
    return np.full_like(value, _round_up(_wide(value).min()))


def _only_peak(value: Array) -> Array:
    return _only(value, _largest(value))


def _only_low(value: Array) -> Array:
    return _only(value, int(np.argmin(_wide(value))))


def _only(value: Array, at: int) -> Array:
    """Zeros but for one number."""
    made = np.zeros_like(value)
    made.reshape(-1)[at] = _round_up(_wide(value).reshape(-1)[at])
    return made


def _whole(value: Array) -> Array:
    return np.rint(_wide(value)).astype(value.dtype)


def _tenths(value: Array) -> Array:
    return np.round(_wide(value), 1).astype(value.dtype)


def _two_digits(value: Array) -> Array:
    wide = _wide(value)
    with np.errstate(all="ignore"):
        unit = 10.0 ** (np.floor(np.log10(np.abs(np.where(wide == 0, 1, wide)))) - 1)
        return np.asarray(np.round(wide / unit) * unit).astype(value.dtype)


def _letters(value: Array) -> Array:
    """One letter for each string; other tensors stay."""
    return np.full_like(value, "a") if dtype_name(value.dtype) == "string" else value


def _wide(value: Array) -> Array:
    wide = value.astype(np.float64)
    return np.nan_to_num(wide, nan=0.0, posinf=0.0, neginf=0.0)


def _largest(value: Array) -> int:
    return int(np.argmax(np.abs(_wide(value))))


def _round_up(number: float) -> float:
    """The next number of one digit, away from zero: what needs a threshold passed still passes it."""
    number = float(number)
    if number == 0:
        return 0.0
    unit = 10.0 ** math.floor(math.log10(abs(number)))
    return math.copysign(math.ceil(abs(number) / unit - 1e-9) * unit, number)


#: From the simplest on. Zeros come after ones: they hide most failures of numbers.
LADDER: tuple[Simpler, ...] = (
    *(_ones, _zeros, _only_peak, _only_low, _peak, _low, _signs),
    *(_whole, _tenths, _two_digits, _letters),
)
