"""Axes and indices that count from the end, which operators before opset 11 do not know."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from onnxbench.converters import rules
from onnxbench.converters.adapters import Adapter
from onnxbench.converters.site import Site


def not_negative(*names: str, place: int = 0) -> Adapter:
    """An adapter that writes axes as counted from the front; the rank of an input has to be known where one is not.

    Args:
        names: attributes that hold an axis or a list of them.
        place: the input that they are axes of.
    """

    def down(site: Site) -> None:
        counted(site, names, place)
        rules.keep(site)

    return down


def counted(site: Site, names: tuple[str, ...], place: int = 0, extra: int = 0) -> None:
    """Write axes of the node as counted from the front; in place.

    Args:
        site: where the node is.
        names: attributes that hold an axis or a list of them.
        place: the input that they are axes of.
        extra: dims that the axes count beside those of the input.
    """
    for attribute in site.node.attribute:
        if attribute.name not in names:
            continue
        value = site.attr(attribute.name)
        if isinstance(value, list):
            if any(axis < 0 for axis in value):
                rank = site.needed_rank(site.input(place)) + extra
                attribute.ints[:] = [axis + rank if axis < 0 else axis for axis in value]
        elif value < 0:
            attribute.i = value + site.needed_rank(site.input(place)) + extra


def not_negative_indices(site: Site, indices: str, data: str, axis: int) -> str:
    """Indices along an axis, counted from the front; at run time, where they are no constants."""
    known = site.value(indices)
    dims = site.dims(data)
    if known is not None:
        if not (known < 0).any():
            return indices
        if dims is not None and dims[axis] is not None:
            size = dims[axis]
            return site.const(np.where(known < 0, known + size, known), "indices", known.dtype)
    element = site.needed_element(indices)
    size_of = size_along(site, data, axis)
    if element != TensorProto.INT64:
        size_of = site.add("Cast", size_of, to=element, wish="size")
    zero = site.scalar_like(0, indices, "zero")
    # Where and Less take integers since opset 9.
    return site.add(
        "Where", site.add("Less", indices, zero), site.add("Add", indices, size_of), indices, wish="indices"
    )


def size_along(site: Site, data: str, axis: int) -> str:
    """The size of an axis, as a tensor of one int64."""
    dims = site.dims(data)
    if dims is not None and dims[axis] is not None:
        return site.const([dims[axis]], "size")
    shape = site.add("Shape", data, wish="shape")
    return site.add("Gather", shape, site.const([axis], "axis"), axis=0, wish="size")
