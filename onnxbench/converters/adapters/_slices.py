"""Slices that an attribute cannot say, as a Gather with counted indices for each axis."""

from __future__ import annotations

from onnx import TensorProto

from onnxbench.converters.adapters._masks import counting
from onnxbench.converters.site import Site


def gathered(site: Site, x: str, starts: str, ends: str, axes: str, steps: str) -> None:
    """Put a slice in the node's place whose bounds are only known at run time, or whose steps are not 1.

    Of each dim the first element, the step and how many there are is computed (Slice-10: starts and ends are clamped to
    the dim, for a negative step to one less), and Gather takes them.

    Raises:
        Refused: if the rank is not known, or the opset has no NonZero.
    """
    rank = site.needed_rank(x)
    if site.opset < 9:
        site.refuse("where it starts and ends would have to be attributes, and is only known at run time")
    if rank == 0:
        site.put("Identity", [x])
        return
    shape = site.add("Shape", x, wish="shape")
    starts, ends = _wide(site, starts), _wide(site, ends)
    steps = _wide(site, steps) if steps else ""
    known = site.value(axes) if axes else None
    count = _count(site, starts, ends)
    if not axes and count is not None:
        numbers: list[int] | None = list(range(count))
    else:
        numbers = None if known is None else [int(axis) % rank for axis in known.reshape(-1)]
    current = x
    touched = numbers if numbers is not None else list(range(rank))
    if numbers is None:
        starts, ends, steps = _for_every_axis(site, shape, starts, ends, _wide(site, axes), steps, rank)
    for place, axis in enumerate(touched):
        pick = site.const([place], f"place_{place}")
        size = site.add("Gather", shape, site.const([axis], f"axis_{axis}"), axis=0, wish="size")
        first, last = (site.add("Gather", name, pick, axis=0) for name in (starts, ends))
        step = site.add("Gather", steps, pick, axis=0) if steps else site.const([1], "one")
        indices = _indices(site, size, first, last, step, backwards=_direction(site, steps, place))
        current = site.add("Gather", current, indices, axis=axis, wish="sliced")
    site.put("Identity", [current])


def _wide(site: Site, name: str) -> str:
    if not name:
        return ""
    if site.element(name) == TensorProto.INT64:
        return name
    return site.add("Cast", name, to=int(TensorProto.INT64), wish="wide")


def _count(site: Site, *names: str) -> int | None:
    for name in names:
        dims = site.dims(name)
        if dims is not None and len(dims) == 1 and dims[0] is not None:
            return dims[0]
    return None


def _direction(site: Site, steps: str, place: int) -> bool | None:
    """Whether a step goes backwards; None if that is only known at run time."""
    if not steps:
        return False
    known = site.value(steps)
    return None if known is None or known.ndim != 1 or place >= len(known) else bool(known[place] < 0)


def _for_every_axis(
    site: Site, shape: str, starts: str, ends: str, axes: str, steps: str, rank: int
) -> tuple[str, str, str]:
    """Bounds of every dim, those of dims that are not sliced being the whole."""
    zeros = site.const([0] * rank, "zeros")
    if not axes:
        axes = counting(site, site.add("Shape", starts))
    front = site.add(
        "Where", site.add("Less", axes, site.const([0], "zero")), _plus(site, axes, rank), axes, wish="axes"
    )
    put = "ScatterElements" if site.opset >= 11 else "Scatter"
    every_start = site.add(put, zeros, front, starts, axis=0, wish="starts")
    every_end = site.add(put, shape, front, ends, axis=0, wish="ends")
    ones = site.const([1] * rank, "ones")
    every_step = site.add(put, ones, front, steps, axis=0, wish="steps") if steps else ones
    return every_start, every_end, every_step


def _plus(site: Site, axes: str, rank: int) -> str:
    return site.add("Add", axes, site.const([rank], "rank"))


def _indices(site: Site, size: str, first: str, last: str, step: str, *, backwards: bool | None) -> str:
    """The indices that a slice of one axis takes, counted from the front."""
    zero, one = site.const([0], "zero"), site.const([1], "one")
    less = site.add("Less", step, zero) if backwards is None else ""
    first, last = (_from_front(site, name, size, zero) for name in (first, last))
    top = site.add("Sub", size, one)
    if backwards is None:
        start = site.add("Where", less, _clamp(site, first, zero, top), _clamp(site, first, zero, size))
        minus = site.const([-1], "minus")
        end = site.add("Where", less, _clamp(site, last, minus, top), _clamp(site, last, zero, size))
    elif backwards:
        start, end = _clamp(site, first, zero, top), _clamp(site, last, site.const([-1], "minus"), top)
    else:
        start, end = _clamp(site, first, zero, size), _clamp(site, last, zero, size)
    reach = site.add("Sub", end, start)
    # How many: reach / step, rounded up; Div of integers cuts off, and reach and step have one sign or there are none.
    sign = site.add("Where", less, site.const([-1], "minus"), one) if backwards is None else ""
    room = site.add("Sub", step, sign) if sign else site.add("Add" if backwards else "Sub", step, one)
    count = site.add("Div", site.add("Add", reach, room), step, wish="count")
    count = site.add("Where", site.add("Less", count, zero), zero, count, wish="count")
    return site.add("Add", start, site.add("Mul", counting(site, count), step), wish="indices")


def _from_front(site: Site, name: str, size: str, zero: str) -> str:
    return site.add("Where", site.add("Less", name, zero), site.add("Add", name, size), name)


def _clamp(site: Site, name: str, low: str, high: str) -> str:
    raised = site.add("Where", site.add("Less", name, low), low, name)
    return site.add("Where", site.add("Greater", raised, high), high, raised)


def gathered_range(site: Site, x: str, axis: int, start: str, size: str, output: str) -> None:
    """Make an output of elements from `start` on, `size` of them, along an axis; both are one int64."""
    indices = site.add("Add", start, counting(site, size), wish="indices")
    made = site.add("Gather", x, indices, axis=axis)
    site.made[-1].output[0] = output
    site.facts.made.forget(made)
