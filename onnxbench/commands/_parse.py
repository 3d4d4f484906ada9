"""From texts of the command line to what services take."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from onnxbench.errors import UsageError, quote

if TYPE_CHECKING:
    from onnxbench.core.graph import GraphView
    from onnxbench.core.values import Value
    from onnxbench.runtimes.base import Limits

_LEAST = 256 << 20  # bytes
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def limits(timeout: float, memory: str) -> Limits:
    """What one run may take.

    Raises:
        UsageError: OB201 for a size that cannot be read, or that every model would go over.
    """
    from onnxbench.isolate import machine_memory
    from onnxbench.runtimes.base import Limits

    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(?:([KMGT]?)i?B?|(%))", memory.strip(), re.IGNORECASE)
    size = 0.0
    if found is not None:
        size = float(found[1]) * (machine_memory() / 100 if found[3] else _UNITS[(found[2] or "").upper()])
    if not 1 <= size < math.inf:
        raise UsageError("OB201", f"--max-memory {memory!r} is no size", hint="--max-memory 8G, or 80%")
    if size < _LEAST:
        least = f"--max-memory {memory} is less than the {_LEAST >> 20}M that a worker with its imports may hold"
        raise UsageError("OB201", least, hint="--max-memory 8G, or 80%")
    return Limits(timeout if math.isfinite(timeout) else None, int(size))


def size(text: str, option: str) -> int:
    """Bytes from a text like 10M.

    Raises:
        UsageError: OB201 for one that cannot be read.
    """
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?)i?B?", text.strip(), re.IGNORECASE)
    if found is None:
        raise UsageError("OB201", f"{option} {text!r} is no size", hint=f"{option} 10M")
    return int(float(found[1]) * _UNITS[found[2].upper()])


def feeds(
    view: GraphView,
    inputs: str | None,
    shapes: Sequence[str] | None,
    dims: Sequence[str] | None,
    ranges: Sequence[str] | None,
    seed: int,
) -> dict[str, Value]:
    """The values to run with: read from `--inputs`, else generated.

    Raises:
        UsageError: OB201 if generated and given inputs are both asked for, or a symbol has several sizes; OB206 if they do
            not fit the model.
    """
    from onnxbench.core.dims import parse_dims, parse_ranges, parse_shapes
    from onnxbench.core.feed_check import check
    from onnxbench.core.feed_files import read
    from onnxbench.core.feeds import generate

    if inputs is not None:
        for option, given in (("--shape", shapes), ("--dim", dims), ("--range", ranges)):
            if given:
                raise UsageError("OB201", f"{option} is for generated inputs, and --inputs gives them")
        return check(read(inputs, view), view)
    parsed = parse_dims(dims or [])
    _refuse_several(parsed)
    return generate(view, seed=seed, shapes=parse_shapes(shapes or []), dims=parsed, ranges=parse_ranges(ranges or []))


def sizes(
    shapes: Sequence[str] | None, dims: Sequence[str] | None
) -> tuple[dict[str, tuple[int, ...]], dict[str, int]]:
    """Shapes by input and sizes by symbol, one of each.

    Raises:
        UsageError: OB201 if they cannot be read, or a symbol has several sizes.
    """
    from onnxbench.core.dims import parse_dims, parse_shapes

    parsed = parse_dims(dims or [])
    _refuse_several(parsed)
    return parse_shapes(shapes or []), {name: given[0] for name, given in parsed.items()}


def _refuse_several(parsed: Mapping[str, tuple[int, ...]]) -> None:
    several = next((name for name, given in parsed.items() if len(given) > 1), None)
    if several is not None:
        raise UsageError("OB201", f"--dim gives {quote(several)} several sizes, and one run has one")


def refuse_json_beside_stream(json: bool, output: str | None) -> None:
    """Standard output holds one thing."""
    if json and output == "-":
        raise UsageError("OB201", "--json and -o - both want standard output", hint="-o FILE")
