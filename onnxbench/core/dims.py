"""Read what the user says of inputs: `--shape`, `--dim` and `--range`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TypeVar

from onnxbench.errors import UsageError, quote

T = TypeVar("T")


def parse_shapes(texts: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """Shapes by input from texts like `image=1x3x224x224`; `x=` is a scalar.

    Raises:
        UsageError: OB201 for a text that is no such thing, or an input that gets two shapes.
    """
    hint = "write INPUT=1x3x224x224, or INPUT= for a scalar"
    found: dict[str, tuple[int, ...]] = {}
    for text in texts:
        name, right = _split("--shape", text, hint)
        sizes = right.strip().lower()
        shape = tuple(_size("--shape", text, part, hint) for part in sizes.split("x")) if sizes else ()
        _add(found, "--shape", name, shape)
    return found


def parse_dims(texts: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """Sizes by symbol from texts like `batch=1`, or `seq=1,7,64` for several runs.

    Raises:
        UsageError: OB201 for a text that is no such thing, or a symbol that is given twice.
    """
    hint = "write SYMBOL=4, or SYMBOL=1,7,64 for several sizes"
    found: dict[str, tuple[int, ...]] = {}
    for text in texts:
        name, right = _split("--dim", text, hint)
        _add(found, "--dim", name, tuple(_size("--dim", text, part, hint) for part in right.split(",")))
    return found


def parse_ranges(texts: Sequence[str]) -> dict[str, tuple[float, float]]:
    """Half-open ranges by input from texts like `ids=0:32000`.

    Raises:
        UsageError: OB201 for a text that is no such thing, an empty range, or an input that gets two.
    """
    hint = "write INPUT=LOW:HIGH with LOW < HIGH; HIGH itself is not drawn"
    found: dict[str, tuple[float, float]] = {}
    for text in texts:
        name, right = _split("--range", text, hint)
        low, colon, high = right.partition(":")
        bounds = (_number("--range", text, low, hint), _number("--range", text, high, hint)) if colon else (0.0, 0.0)
        if not bounds[0] < bounds[1]:
            raise _wrong("--range", text, hint)
        _add(found, "--range", name, bounds)
    return found


def runs(dims: Mapping[str, Sequence[int]]) -> list[dict[str, int]]:
    """One size by symbol for each run: all symbols step together, and a shorter list stays at its last size."""
    count = max((len(sizes) for sizes in dims.values()), default=1)
    return [{name: sizes[min(i, len(sizes) - 1)] for name, sizes in dims.items()} for i in range(count)]


def _split(option: str, text: str, hint: str) -> tuple[str, str]:
    """Name and rest; names may hold `=` and colons, so the last `=` counts."""
    name, equals, right = text.rpartition("=")
    if not equals or not name:
        raise _wrong(option, text, hint)
    return name, right


def _size(option: str, text: str, part: str, hint: str) -> int:
    digits = part.strip()
    if not (digits.isascii() and digits.isdigit()) or int(digits) >= 1 << 63:
        raise _wrong(option, text, hint)
    return int(digits)


def _number(option: str, text: str, part: str, hint: str) -> float:
    try:
        number = int(part)
    except ValueError:
        try:
            number = float(part)  # type: ignore[assignment]
        except ValueError:
            raise _wrong(option, text, hint) from None
    if not math.isfinite(number):
        raise _wrong(option, text, hint)
    return number


def _wrong(option: str, text: str, hint: str) -> UsageError:
    return UsageError("OB201", f"{option} {quote(text)} cannot be read", hint=hint)


def _add(found: dict[str, T], option: str, name: str, item: T) -> None:
    if found.setdefault(name, item) != item:
        raise UsageError("OB201", f"{option} gives {quote(name)} twice", hint="leave one of them out")
