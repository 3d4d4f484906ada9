"""GatherElements, GatherND and ScatterND before 11, GatherND's batch dims before 12: counted places in a flat tensor.

Sources: ai.onnx GatherElements-11, GatherND-11 and 12, ScatterND-11.
"""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from onnxbench.converters import rules
from onnxbench.converters.adapters import adapter
from onnxbench.converters.adapters._axes import not_negative_indices, size_along
from onnxbench.converters.adapters._masks import counting
from onnxbench.converters.site import Site


def _wide(site: Site, name: str) -> str:
    if site.element(name) == TensorProto.INT64:
        return name
    return site.add("Cast", name, to=int(TensorProto.INT64), wish="wide")


def _sizes(site: Site, name: str, rank: int) -> list[str]:
    """Each size of a tensor as one int64."""
    return [size_along(site, name, axis) for axis in range(rank)]


def _product(site: Site, factors: list[str]) -> str:
    """The product of sizes, counted now where they are constants."""
    values = [site.value(name) for name in factors]
    known = [value for value in values if value is not None]
    if len(known) == len(values):
        return site.const([int(np.prod([int(value[0]) for value in known]))], "stride")
    result = factors[0]
    for name in factors[1:]:
        result = site.add("Mul", result, name, wish="stride")
    return result


def _elements_down(site: Site) -> None:
    if site.opset < 9:
        site.refuse("it takes operators of opset 9")
    data, indices = site.input(0), site.input(1)
    rank = site.needed_rank(data)
    axis = site.attr("axis", 0)
    axis += rank if axis < 0 else 0
    front = _wide(site, not_negative_indices(site, indices, data, axis))
    sizes = _sizes(site, data, rank)
    places = ""
    for dim in range(rank):
        stride = _product(site, sizes[dim + 1 :]) if dim + 1 < rank else ""
        if dim == axis:
            along = front
        else:
            steps = counting(site, size_along(site, indices, dim))
            shape = [1] * rank
            shape[dim] = -1
            along = site.add("Reshape", steps, site.const(shape, f"shape_{dim}"))
        part = site.add("Mul", along, stride) if stride else along
        places = site.add("Add", places, part, wish="places") if places else part
    flat = site.add("Reshape", data, site.const([-1], "flat"))
    site.put("Gather", [flat, places], axis=0)


def _depth(site: Site, indices: str) -> int:
    dims = site.dims(indices)
    if dims is None or dims[-1] is None:
        site.refuse(f"the last dim of {indices} has to be known")
    return int(dims[-1] or 0)


def _nd_down(site: Site) -> None:
    if site.opset < 9:
        site.refuse("it takes operators of opset 9")
    data, indices = site.input(0), site.input(1)
    rank, depth, reach = site.needed_rank(data), _depth(site, indices), site.needed_rank(indices)
    # Before opset 11 Gather takes no axis from the end of a tensor whose rank it has to know, and it is known here.
    sizes = _sizes(site, data, rank)
    columns = _last_axis_first(site, indices, reach)
    places = _linear_columns(site, sizes, columns, depth)
    rest = sizes[depth:]
    flat = site.add("Reshape", data, site.add("Concat", site.const([-1], "flat"), *rest, axis=0, wish="shape"))
    if not rest:
        flat = site.add("Reshape", data, site.const([-1], "flat"))
    site.put("Gather", [flat, places], axis=0)


def _last_axis_first(site: Site, indices: str, rank: int) -> str:
    """Indices with what they point with in front."""
    wide = _wide(site, indices)
    return wide if rank == 1 else site.add("Transpose", wide, perm=[rank - 1, *range(rank - 1)], wish="columns")


def _linear_columns(site: Site, sizes: list[str], columns: str, count: int) -> str:
    places = ""
    for dim in range(count):
        each = site.add("Gather", columns, site.const(dim, f"column_{dim}"), axis=0, wish="column")
        size = site.add("Reshape", sizes[dim], site.const([], "scalar")) if site.rank(columns) == 1 else sizes[dim]
        below = site.add("Less", each, site.const(0, "zero"))
        each = site.add("Where", below, site.add("Add", each, size), each)
        if dim + 1 < count:
            stride = _product(site, sizes[dim + 1 : count])
            if site.rank(columns) == 1:
                stride = site.add("Reshape", stride, site.const([], "scalar"))
            each = site.add("Mul", each, stride)
        places = site.add("Add", places, each, wish="places") if places else each
    return places


def _batched(site: Site) -> None:
    """GatherND-11 has no batch dims: indices get the place in the batch in front."""
    batch = site.attr("batch_dims", 0)
    if not batch:
        rules.keep(site)
        return
    data, indices = site.input(0), site.input(1)
    rank = site.needed_rank(indices)
    shape = site.add("Shape", indices, wish="shape")
    ones = site.add("Slice", shape, site.const([0], "zero"), site.const([rank - 1], "last"))
    columns = []
    for dim in range(batch):
        steps = counting(site, size_along(site, data, dim))
        own = [1] * rank
        own[dim] = -1
        column = site.add("Reshape", steps, site.const(own, f"shape_{dim}"))
        to = site.add("Concat", ones, site.const([1], "one"), axis=0)
        columns.append(site.add("Expand", column, to, wish="batch"))
    every = site.add("Concat", *columns, _wide(site, indices), axis=rank - 1, wish="indices")
    depth = _depth(site, indices)
    site.facts.made[every].dims = (*(site.dims(indices) or ())[:-1], depth + batch)
    site.facts.made[every].rank = rank
    site.same([data, every], drop=("batch_dims",))


def _scatter_nd_down(site: Site) -> None:
    """Rows of a flat tensor, each written over; Scatter takes a place for every element."""
    if site.opset < 9:
        site.refuse("it takes operators of opset 9")
    data, indices, updates = (site.input(place) for place in range(3))
    rank, depth, reach = site.needed_rank(data), _depth(site, indices), site.needed_rank(indices)
    sizes = _sizes(site, data, rank)
    places = _linear_columns(site, sizes, _last_axis_first(site, indices, reach), depth)
    width = _product(site, sizes[depth:]) if sizes[depth:] else site.const([1], "one")
    minus = site.const([-1], "flat")
    rows = site.add("Reshape", data, site.add("Concat", minus, width, axis=0), wish="rows")
    fresh = site.add("Reshape", updates, site.add("Concat", minus, width, axis=0), wish="rows")
    column = site.add("Reshape", places, site.const([-1, 1], "column"))
    every = site.add("Expand", column, site.add("Shape", fresh), wish="places")
    op = "ScatterElements" if site.opset >= 11 else "Scatter"
    written = site.add(op, rows, every, fresh, axis=0)
    site.put("Reshape", [written, site.add("Shape", data)])


adapter("GatherElements", 11, 0)(_elements_down)
adapter("GatherND", 11, 0)(_nd_down)
adapter("GatherND", 12, 11)(_batched)
adapter("ScatterND", 11, 0)(_scatter_nd_down)
