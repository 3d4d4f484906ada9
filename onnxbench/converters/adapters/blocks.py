"""SpaceToDepth column by column, Col2Im and TensorScatter: elements put elsewhere.

Sources: ai.onnx SpaceToDepth-13 and 28, Col2Im-18, TensorScatter-24, ScatterElements-16.
"""

from __future__ import annotations

import numpy as np
from onnx import helper

from onnxbench.converters import rules
from onnxbench.converters.adapters import adapter
from onnxbench.converters.adapters._numbers import Number, Numbers
from onnxbench.converters.site import Site
from onnxbench.core.values import Array


def _space_to_depth(site: Site) -> None:
    if site.attr("mode") != "CRD":
        rules.keep(site)
        return
    x, block = site.input(0), _long(site.attr("blocksize"))
    numbers = Numbers(site)
    n, c, h, w = (numbers.size(x, axis) for axis in range(4))
    h, w = numbers.div(h, block), numbers.div(w, block)
    parts = numbers.into(x, [n, c, h, block, w, block], "parts")
    moved = site.add("Transpose", numbers.name(parts, "parts"), perm=[0, 1, 3, 5, 2, 4])
    channels = numbers.mul(numbers.mul(c, block), block)
    site.put("Identity", [numbers.name(numbers.into(moved, [n, channels, h, w], "depth"), "depth")])


def _long(value: int) -> Array:
    return np.asarray([value], np.int64)


def _tensor_scatter(site: Site) -> None:
    """Each sample of the batch has its place to start at, behind which the update goes, round and round if circular."""
    past, update, starts = (site.input(place) for place in range(3))
    rank, axis = site.needed_rank(past), site.attr("axis", -2)
    axis += rank if axis < 0 else 0
    numbers = Numbers(site)
    steps: Number = numbers.range(numbers.size(update, axis))
    steps = numbers.shaped(steps, [-1] + [1] * (rank - axis - 1))
    places = steps
    if starts:
        column = site.add("Reshape", starts, site.const([-1] + [1] * (rank - 1), "column"))
        places = numbers.add(column, steps)
    if site.attr("mode") == "circular":
        places = site.add("Mod", numbers.name(places, "places"), numbers.name(numbers.size(past, axis), "most"))
    every = site.add("Expand", numbers.name(places, "places"), site.add("Shape", update), wish="places")
    site.put("ScatterElements", [past, every, update], axis=axis)


def _col2im(site: Site) -> None:
    """Every element of every column is added to its place in the padded image, which is cut out then."""
    if site.opset < 16:
        site.refuse("ScatterElements adds since opset 16")
    x, numbers = site.input(0), Numbers(site)
    axes = _count(site)
    image, block = ([numbers.pick(numbers.of(site.input(place)), axis) for axis in range(axes)] for place in (1, 2))
    dilations = site.attr("dilations", None) or [1] * axes
    strides = site.attr("strides", None) or [1] * axes
    pads = site.attr("pads", None) or [0] * (2 * axes)
    padded = [numbers.add(image[axis], _long(pads[axis] + pads[axis + axes])) for axis in range(axes)]
    places = _places(numbers, padded, block, dilations, strides)
    n, per_channel, room = numbers.size(x, 0), _product(numbers, block), _product(numbers, padded)
    channels = numbers.div(numbers.size(x, 1), per_channel)
    flat = numbers.name(numbers.into(x, [n, channels, _long(-1)], "columns"), "columns")
    sizes = [numbers.name(number, wish) for number, wish in ((n, "batch"), (channels, "channels"), (room, "room"))]
    zero = helper.make_tensor("value", site.needed_element(x), [1], [0])
    empty = site.add("ConstantOfShape", site.add("Concat", *sizes, axis=0, wish="shape"), value=zero, wish="empty")
    every = site.add("Expand", numbers.name(places, "places"), site.add("Shape", flat), wish="places")
    added = site.add("ScatterElements", empty, every, flat, axis=2, reduction="add")
    whole = numbers.name(numbers.into(added, [n, channels, *padded], "padded"), "padded")
    begins = site.const(pads[:axes], "begins")
    ends = [numbers.name(numbers.add(image[axis], _long(pads[axis])), "end") for axis in range(axes)]
    end = site.add("Concat", *ends, axis=0, wish="ends")
    site.put("Slice", [whole, begins, end, site.const(list(range(2, axes + 2)), "axes")])


def _count(site: Site) -> int:
    """How many axes the image has.

    Raises:
        Refused: if it is not known.
    """
    for place in (1, 2):
        dims = site.dims(site.input(place))
        if dims is not None and len(dims) == 1 and dims[0] is not None:
            return dims[0]
    given = next((name for name in ("dilations", "strides", "pads") if site.has(name)), None)
    if given is None:
        site.refuse("how many axes its image has is not known")
    return len(site.attr(given)) // (2 if given == "pads" else 1)


def _product(numbers: Numbers, factors: list[Number]) -> Number:
    made = factors[0]
    for factor in factors[1:]:
        made = numbers.mul(made, factor)
    return made


def _places(
    numbers: Numbers, padded: list[Number], block: list[Number], dilations: list[int], strides: list[int]
) -> Number:
    """Where each element of the block of each column goes in the flat image: block first, as the columns are laid out."""
    one = _long(1)
    flat: Number = np.zeros((1, 1, 1, 1), np.int64)
    rows: Number = one
    columns: Number = one
    for size, reach, dilation, stride in zip(padded, block, dilations, strides, strict=True):
        span = numbers.mul(numbers.sub(reach, one), _long(dilation))
        count = numbers.add(numbers.div(numbers.sub(numbers.sub(size, span), one), _long(stride)), one)
        down = numbers.shaped(numbers.mul(numbers.range(reach), _long(dilation)), [1, -1, 1, 1])
        along = numbers.mul(numbers.range(count), _long(stride))
        flat = numbers.add(numbers.add(numbers.mul(flat, size), down), along)
        rows, columns = numbers.mul(rows, reach), numbers.mul(columns, count)
        flat = numbers.into(flat, [rows, one, columns, one])
    return numbers.shaped(flat, [-1])


adapter("SpaceToDepth", 28, 13)(_space_to_depth)
adapter("TensorScatter", 24, 0)(_tensor_scatter)
adapter("Col2Im", 18, 0)(_col2im)
