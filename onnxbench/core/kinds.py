"""In what ways values differ, without measuring it: what a search asks hundreds of times, of arrays that are large."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Literal

import numpy as np

from onnxbench.core.compare import Tolerance, differ_all
from onnxbench.core.values import Array, Value

_NATIVE = (np.dtype(np.float32), np.dtype(np.float64))
_CHUNK = 1 << 14  # elements whose errors fit into a processor's cache

_Clear = Literal["same", "values"]


def kinds_of_difference(want: Mapping[str, Value], got: Mapping[str, Value], tolerance: Tolerance) -> set[str]:
    """The kinds of what `differ_all` finds; none if it finds nothing."""
    found: set[str] = set()
    unclear: dict[str, Value] = {}
    for name, value in want.items():
        clear = _clearly(value, got[name], tolerance) if name in got else None
        if clear is None:
            unclear[name] = value
        elif clear == "values":
            found.add(clear)
    rest = {name: value for name, value in got.items() if name in unclear or name not in want}
    return found | {difference.kind for difference in differ_all(unclear, rest, tolerance)}


def _clearly(want: Value, got: Value, tolerance: Tolerance) -> _Clear | None:
    """Whether two arrays are the same within half the tolerance, or beyond twice of it; None where it takes a closer look.

    In the type itself: a difference is rounded once, by far less than the half that is left.
    """
    if not (isinstance(want, np.ndarray) and isinstance(got, np.ndarray) and want.dtype in _NATIVE and want.size):
        return None
    if want.dtype != got.dtype or want.shape != got.shape:
        return None
    rtol, atol = tolerance.for_dtype(want.dtype)
    with np.errstate(all="ignore"):
        return _compared(want.reshape(-1), got.reshape(-1), rtol, atol)


def _compared(want: Array, got: Array, rtol: float, atol: float) -> _Clear | None:
    scale = max(-float(want.min()), float(want.max()))
    if not math.isfinite(scale):
        return None
    base, slope = want.dtype.type(atol * scale), want.dtype.type(rtol)
    if not math.isfinite(base):  # Inf would be within it
        return None
    errors, allowances = np.empty((2, min(_CHUNK, want.size)), want.dtype)
    for start in range(0, want.size, _CHUNK):
        w, g = want[start : start + _CHUNK], got[start : start + _CHUNK]
        error, allowed = errors[: w.size], allowances[: w.size]
        np.abs(np.subtract(g, w, out=error), out=error)
        if error.max() <= 0.5 * base:
            continue
        np.abs(w, out=allowed)
        allowed *= slope
        allowed += base
        worst = float((error / allowed).max())
        if worst > 2.0 and math.isfinite(worst) and math.isfinite(float(got.max()) - float(got.min())):
            return "values"
        if not worst < 0.5:
            return None
    return "same"
