"""Compare values with what was wanted, within the tolerance of their type."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from onnxbench.core.difference import Difference, Index
from onnxbench.core.values import Array, Dtype, Value, dtype_name, is_float, is_integer, is_narrow, part_of, step

__all__ = ["Difference", "Tolerance", "differ", "differ_all"]

_NATIVE = (np.dtype(np.float32), np.dtype(np.float64))
_CHUNK = 1 << 20  # elements that are widened to float64 at a time

_DEFAULTS: dict[str, tuple[float, float]] = {
    "float64": (1e-7, 1e-9),
    "float32": (1e-4, 1e-5),
    "float16": (1e-2, 1e-3),
    "bfloat16": (1e-2, 1e-3),
}


@dataclass(frozen=True, slots=True)
class Tolerance:
    """What a user allows instead of the defaults; None keeps the default of each type.

    Integers, bools and strings are exact whatever is set: an index or a label that is off by one is another answer.
    """

    rtol: float | None = None
    atol: float | None = None

    def for_dtype(self, dtype: Dtype) -> tuple[float, float]:
        """(rtol, atol) for a type.

        Types of 8 bits and fewer allow one step of their own (1/8 for e4m3, 1/4 for e5m2) and 1e-2 of the largest: a
        rounding that falls the other way must not be a finding.
        """
        dtype = part_of(dtype)
        if not is_float(dtype):
            return 0.0, 0.0
        known = _DEFAULTS.get(dtype.name)
        rtol, atol = known if known is not None else (step(dtype), 1e-2)
        return rtol if self.rtol is None else self.rtol, atol if self.atol is None else self.atol


_DEFAULT = Tolerance()


def differ_all(
    want: Mapping[str, Value], got: Mapping[str, Value], tolerance: Tolerance = _DEFAULT
) -> list[Difference]:
    """The differences of all wanted values, in their order, then values that nobody wanted."""
    found: list[Difference] = []
    for name, value in want.items():
        if name not in got:
            found.append(Difference(name, "presence", detail="wanted, but not there"))
            continue
        difference = differ(value, got[name], tolerance, name)
        if difference is not None:
            found.append(difference)
    found += [Difference(name, "presence", detail="there, but not wanted") for name in got if name not in want]
    return found


def differ(want: Value, got: Value, tolerance: Tolerance = _DEFAULT, name: str = "") -> Difference | None:
    """How `got` differs from `want`; None if it does not.

    An element differs when |got-want| > atol*max|want| + rtol*|want|, the maximum over finite elements of `want`. NaN
    must meet NaN, Inf must meet Inf of its sign. The first differing element of a sequence speaks for it.
    """
    if want is None or got is None:
        return None if want is got else Difference(name, "presence", detail=f"wanted {_what(want)}, got {_what(got)}")
    if isinstance(want, list) and isinstance(got, list):
        return _differ_sequence(want, got, tolerance, name)
    if isinstance(want, list) or isinstance(got, list):
        return Difference(name, "dtype", detail=f"wanted {_what(want)}, got {_what(got)}")
    want, got = np.asarray(want), np.asarray(got)
    if dtype_name(want.dtype) != dtype_name(got.dtype):
        return Difference(name, "dtype", detail=f"wanted {dtype_name(want.dtype)}, got {dtype_name(got.dtype)}")
    if want.shape != got.shape:
        return Difference(name, "shape", detail=f"wanted shape {_shape(want)}, got {_shape(got)}")
    if want.size == 0:
        return None
    return _differ_tensor(want, got, tolerance, name)


def _differ_sequence(want: list[Value], got: list[Value], tolerance: Tolerance, name: str) -> Difference | None:
    if len(want) != len(got):
        return Difference(name, "shape", detail=f"wanted a sequence of {len(want)}, got one of {len(got)}")
    pairs = enumerate(zip(want, got, strict=True))
    found = (differ(w, g, tolerance, f"{name}[{i}]") for i, (w, g) in pairs)
    return next((difference for difference in found if difference is not None), None)


def _differ_tensor(want: Array, got: Array, tolerance: Tolerance, name: str) -> Difference | None:
    rtol, atol = tolerance.for_dtype(want.dtype)
    shape, (want, got) = want.shape, (want.reshape(-1), got.reshape(-1))
    if want.dtype in _NATIVE and want.dtype == got.dtype and _is_well_within(want, got, rtol, atol):
        return None
    scale = 0.0
    if part_of(want.dtype) != want.dtype or is_float(want.dtype):
        scale = max(_largest(w) for w, _ in _chunks(want, got))
    tally = _Tally(scale)
    for start, (w, g) in zip(range(0, want.size, _CHUNK), _chunks(want, got), strict=True):
        if dtype_name(want.dtype) == "string":
            tally.add_strings(start, w, g)
        elif is_integer(w.dtype):
            tally.add_integers(start, w, g)
        else:
            tally.add_floats(start, w, g, rtol, atol)
    return tally.difference(name, want, got, shape) if tally.beyond else None


def _is_well_within(want: Array, got: Array, rtol: float, atol: float) -> bool:
    """Whether all is finite and off by less than half of what is allowed; cheap, and never wrong when it says so.

    In the type itself: a difference is rounded once, by far less than the half that is left.
    """
    with np.errstate(all="ignore"):
        scale = want.dtype.type(0)
        for start in range(0, want.size, _CHUNK):
            scale = np.maximum(scale, np.max(np.abs(want[start : start + _CHUNK])))  # a NaN stays one
        if not np.isfinite(scale):
            return False
        base, slope = want.dtype.type(0.5 * atol) * scale, want.dtype.type(0.5 * rtol)
        if not (np.isfinite(base) and np.isfinite(slope)):  # Inf would be within it
            return False
        for start in range(0, want.size, _CHUNK):
            w, g = want[start : start + _CHUNK], got[start : start + _CHUNK]
            error = np.abs(g - w)
            if not np.max(error) <= base and not np.all(error <= base + slope * np.abs(w)):
                return False
    return True


@dataclass(slots=True)
class _Tally:
    """What is known of a pair of arrays after some chunks. `scale` keeps the squares of large numbers finite."""

    scale: float
    beyond: int = 0
    first: int | None = None
    first_odd: int | None = None
    worst: int | None = None
    max_abs: float = math.nan
    max_rel: float = math.nan
    tolerances: float = math.nan
    squares: list[float] = field(default_factory=lambda: [0.0, 0.0, 0.0, 0.0])  # error, want, got, want x got
    counts: list[int] = field(default_factory=lambda: [0, 0, 0, 0])  # nan want, nan got, inf want, inf got

    def add_strings(self, start: int, want: Array, got: Array) -> None:
        self._mark(start, np.asarray(want != got, dtype=bool))

    def add_integers(self, start: int, want: Array, got: Array) -> None:
        """Compared as they are: float64 cannot tell 2**60 from 2**60 + 1. Errors are exact in uint64, which wraps."""
        self._mark(start, want != got)
        high, low = np.maximum(want, got).astype(np.uint64), np.minimum(want, got).astype(np.uint64)
        self._measure(start, (high - low).astype(np.float64), want.astype(np.float64), got.astype(np.float64))

    def add_floats(self, start: int, want: Array, got: Array, rtol: float, atol: float) -> None:
        with np.errstate(all="ignore"):
            finite = np.isfinite(want) & np.isfinite(got)
            if finite.all():  # as nearly always: without masks it takes a third of the time
                self._add_finite(start, want, got, rtol, atol)
                return
            odd = _pattern(want) != _pattern(got)
            error = np.where(finite, np.abs(got - want), 0.0)
            allowed = atol * self.scale + rtol * np.abs(want)
            self._mark(start, odd | (finite & (error > allowed)))
            if self.first_odd is None and odd.any():
                self.first_odd = start + int(odd.argmax())
            times = np.max(error / allowed, initial=-1.0, where=finite & (error > 0))
        if times >= 0 and not times <= self.tolerances:
            self.tolerances = float(times)
        for i, mask in enumerate((np.isnan(want), np.isnan(got), np.isinf(want), np.isinf(got))):
            self.counts[i] += int(np.count_nonzero(mask))
        self._measure(start, error, np.where(finite, want, 0.0), np.where(finite, got, 0.0), finite)

    def _add_finite(self, start: int, want: Array, got: Array, rtol: float, atol: float) -> None:
        error = np.abs(got - want)
        allowed = atol * self.scale + rtol * np.abs(want)
        self._mark(start, error > allowed)
        times = np.nanmax(error / allowed) if error.any() else -1.0  # where nothing is allowed, 0 / 0 is no error
        if times >= 0 and not times <= self.tolerances:
            self.tolerances = float(times)
        self._measure(start, error, want, got)

    def _mark(self, start: int, bad: Array) -> None:
        count = int(np.count_nonzero(bad))
        if count and self.first is None:
            self.first = start + int(bad.argmax())
        self.beyond += count

    def _measure(self, start: int, error: Array, want: Array, got: Array, finite: Array | None = None) -> None:
        if finite is not None and not finite.any():
            return
        at = int(error.argmax())
        if not error[at] <= self.max_abs:
            self.max_abs, self.worst = float(error[at]), start + at
        with np.errstate(all="ignore"):
            size = np.abs(want)
            relative = np.max(error / size if size.all() else error[size != 0] / size[size != 0], initial=-1.0)
            if relative >= 0 and not relative <= self.max_rel:
                self.max_rel = float(relative)
            unit = self.scale or 1.0
            terms = (error / unit, want / unit, got / unit)
            for i, term in enumerate(terms):
                self.squares[i] += float(np.vdot(term, term).real)
            self.squares[3] += float(np.vdot(terms[1], terms[2]).real)

    def difference(self, name: str, want: Array, got: Array, shape: Index) -> Difference:
        odd = self.first_odd is not None
        at = next(place for place in (self.first_odd, self.worst, self.first) if place is not None)
        error, wanted, gotten, product = self.squares
        lengths = math.sqrt(wanted) * math.sqrt(gotten)
        measured = not math.isnan(self.max_abs)
        norm = math.sqrt(error / wanted) if wanted else math.inf if error else 0.0
        return Difference(
            name=name,
            kind="nonfinite" if odd else "values",
            max_abs=self.max_abs,
            max_rel=self.max_rel,
            where=_index(at, shape),
            first=None if self.first is None else _index(self.first, shape),
            share=self.beyond / want.size,
            tolerances=self.tolerances,
            nan_want=self.counts[0],
            nan_got=self.counts[1],
            inf_want=self.counts[2],
            inf_got=self.counts[3],
            norm_rel=norm if measured else math.nan,
            cosine=product / lengths if measured and 0 < lengths < math.inf else None,
            want_at=_item(want[at]),
            got_at=_item(got[at]),
        )


def _chunks(want: Array, got: Array) -> Iterator[tuple[Array, Array]]:
    for start in range(0, want.size, _CHUNK):
        yield _widen(want[start : start + _CHUNK]), _widen(got[start : start + _CHUNK])


def _widen(chunk: Array) -> Array:
    """A chunk in a type that NumPy calculates in without loss."""
    if dtype_name(chunk.dtype) == "string":
        return chunk.astype(object)
    if chunk.dtype.kind == "c":
        return chunk.astype(np.complex128)
    if is_float(chunk.dtype):
        with np.errstate(invalid="ignore"):  # a signalling NaN
            return chunk.astype(np.float64)
    return chunk if chunk.dtype.kind in "iu" else chunk.astype(np.int8)  # bool, int4, int2; uint4 fits too


def _largest(chunk: Array) -> float:
    size = np.abs(chunk)
    return float(np.max(size, initial=0.0, where=np.isfinite(size)))


def _pattern(chunk: Array) -> Array:
    """0 for a finite number, else which of NaN, Inf and -Inf it is; both parts of a complex one count."""
    if chunk.dtype.kind == "c":
        return 4 * _pattern(chunk.real) + _pattern(chunk.imag)
    pattern: Array = np.isnan(chunk) + 2 * np.isposinf(chunk) + 3 * np.isneginf(chunk)
    return pattern


def _index(flat: int, shape: Index) -> Index:
    return tuple(int(i) for i in np.unravel_index(flat, shape))


def _item(scalar: Any) -> Any:
    if isinstance(scalar, str | bytes):
        return scalar if isinstance(scalar, str) else scalar.decode("utf-8", "backslashreplace")
    if is_narrow(scalar.dtype):
        return int(scalar) if is_integer(scalar.dtype) else float(scalar)
    return scalar.item()


def _shape(array: Array) -> str:
    return "[" + ", ".join(map(str, array.shape)) + "]"


def _what(value: Value) -> str:
    if value is None:
        return "nothing (an empty optional)"
    return (
        f"a sequence of {len(value)}"
        if isinstance(value, list)
        else f"a tensor {dtype_name(value.dtype)}{_shape(value)}"
    )
