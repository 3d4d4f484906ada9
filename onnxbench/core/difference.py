"""How one value differs from what was wanted, as data and as a sentence."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, Literal

from onnxbench.errors import quote

Kind = Literal["dtype", "shape", "nonfinite", "values", "presence"]
Index = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Difference:
    """How one value differs from what was wanted. Errors are in the value's own unit.

    Errors are nan where they mean nothing: strings, and kinds other than "values" and "nonfinite".

    Attributes:
        name: the value; elements of a sequence are `name[i]`.
        kind: what differs first: presence, dtype, shape, the pattern of NaN and Inf, or the numbers.
        max_abs: the largest absolute error among elements that are finite on both sides.
        max_rel: the largest error relative to the wanted element, where that is not zero.
        where: index of the largest absolute error; for "nonfinite" the first element whose pattern differs.
        first: index of the first element beyond tolerance.
        share: of elements beyond tolerance, 0..1.
        tolerances: the largest error in units of what is allowed for its element, where both are finite; inf where
            nothing is allowed.
        norm_rel: ||got-want|| / ||want|| over elements finite on both sides.
        cosine: of the angle between both, over the same elements.
        want_at: the wanted element at `where`; a float, an int, a complex or a string.
        got_at: the element got there.
        detail: the dtypes, shapes or lengths that differ, in words.
    """

    name: str
    kind: Kind
    max_abs: float = math.nan
    max_rel: float = math.nan
    where: Index | None = None
    first: Index | None = None
    share: float = 1.0
    tolerances: float = math.nan
    nan_want: int = 0
    nan_got: int = 0
    inf_want: int = 0
    inf_got: int = 0
    norm_rel: float = math.nan
    cosine: float | None = None
    want_at: Any = None
    got_at: Any = None
    detail: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Plain data that any JSON reader takes: nan errors are null, other odd numbers are strings."""
        plain = {key: _plain(value) for key, value in asdict(self).items()}
        for key in ("max_abs", "max_rel", "tolerances", "norm_rel", "cosine"):
            if plain[key] == "NaN":
                plain[key] = None
        return plain

    def sentence(self) -> str:
        """One line for a person."""
        name = quote(self.name)
        if self.kind in ("dtype", "shape", "presence"):
            return f"{name}: {self.detail}"
        if self.kind == "nonfinite":
            return f"{name}: NaN or Inf differ, first at {_place(self.where)} ({self._at()}){self._counts()}"
        error = "" if math.isnan(self.max_abs) else f", largest error {self.max_abs:.3g} at {_place(self.where)}"
        norm = "" if math.isnan(self.norm_rel) else f", norm-wise {self.norm_rel:.3g}"
        return f"{name}: {100 * self.share:.3g} % of elements beyond tolerance{error} ({self._at()}){norm}"

    def _at(self) -> str:
        return f"wanted {_text(self.want_at)}, got {_text(self.got_at)}"

    def _counts(self) -> str:
        return f"; NaN wanted {self.nan_want}, got {self.nan_got}; Inf wanted {self.inf_want}, got {self.inf_got}"


def _place(index: Index | None) -> str:
    return "[" + ", ".join(map(str, index or ())) + "]"


def _text(item: object) -> str:
    return f"{item:.6g}" if isinstance(item, float | complex) else quote(item) if isinstance(item, str) else str(item)


def _plain(item: Any) -> Any:
    if isinstance(item, complex):
        return str(item)
    if isinstance(item, float) and not math.isfinite(item):
        return "NaN" if math.isnan(item) else "Infinity" if item > 0 else "-Infinity"
    return list(item) if isinstance(item, tuple) else item
