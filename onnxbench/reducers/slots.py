"""Where a reproducer says sizes: dims of feeds and weights, elements of shape tensors, attributes; and how to change them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from onnx import AttributeProto, TensorProto

from onnxbench.core.attributes import all_nodes
from onnxbench.core.tensors import is_external
from onnxbench.core.types import type_of
from onnxbench.core.values import Array, Value, is_float, is_integer
from onnxbench.reducers.edits import forget_output_sizes, forget_shapes, keep
from onnxbench.reducers.reproducer import LARGEST, Reproducer, declare_dims, held, payload_bytes, put, values_of

#: Attributes that hold sizes, of which inference or the operator needs to know.
_SIZES = frozenset(
    {"kernel_shape", "output_shape", "shape", "split", "hidden_size", "num_heads", "block_size", "blocksize"}
)
#: Attributes that say how a window goes over its input; each has a default that is the plainest.
_WINDOW = frozenset({"pads", "strides", "dilations", "output_padding", "auto_pad", "ceil_mode"})
#: An integer tensor of one dim and so many elements is taken for a shape.
_SHAPE_ELEMENTS = 8

#: Which part of a tensor stays: its beginning, the place of its largest number (of either sign), or of its smallest.
Window = Literal["front", "peak", "low"]


@dataclass(frozen=True, slots=True)
class Slot:
    """One size: `axis` of the feed `name`, or of the tensor at `place`; an element of that; or of a node's attribute.

    Of a feed that is a sequence the place is that of one of its tensors.
    """

    kind: Literal["feed", "axis", "item", "attribute"]
    name: str
    place: int
    axis: int


def slots(reproducer: Reproducer) -> dict[Slot, int]:
    """Every size above 1, by its slot."""
    found: dict[Slot, int] = {}
    for name, place, array in reproducer.fed():
        found.update((Slot("feed", name, place, axis), size) for axis, size in enumerate(array.shape))
    for place, tensor in held(reproducer.proto):
        if says_a_shape(tensor) and not is_external(tensor):
            values = values_of(reproducer, tensor).reshape(-1).tolist()
            found.update((Slot("item", "", place, i), int(value)) for i, value in enumerate(values))
        else:
            found.update((Slot("axis", "", place, axis), size) for axis, size in enumerate(tensor.dims))
    for place, node in enumerate(all_nodes(reproducer.proto)):
        for attribute in node.attribute:
            if attribute.name in _SIZES:
                numbers = attribute.ints if attribute.type == AttributeProto.INTS else [attribute.i]
                found.update((Slot("attribute", attribute.name, place, i), n) for i, n in enumerate(numbers))
    return {slot: size for slot, size in found.items() if size > 1}


def says_a_shape(tensor: TensorProto) -> bool:
    """Whether the numbers of a tensor look like sizes or axes, of which other ones would be another model."""
    whole = tensor.data_type in (TensorProto.INT64, TensorProto.INT32)
    return whole and len(tensor.dims) == 1 and tensor.dims[0] <= _SHAPE_ELEMENTS


def static(reproducer: Reproducer) -> Reproducer:
    """The reproducer with the sizes that are fed declared."""
    return resized(reproducer, {}, "front") or reproducer


def resized(reproducer: Reproducer, sizes: Mapping[Slot, int], window: Window) -> Reproducer | None:
    """The reproducer with smaller sizes; None if that takes new bytes that are too many.

    Every input declares the sizes it is fed, open ones too.
    """
    feeds = _cut_feeds(reproducer, sizes, window)
    proto = reproducer.draft()
    for place, tensor in held(proto):
        mine = {slot.axis: size for slot, size in sizes.items() if slot.place == place and slot.kind == "axis"}
        items = {slot.axis: size for slot, size in sizes.items() if slot.place == place and slot.kind == "item"}
        if mine and not _resize(reproducer, tensor, mine, window):
            return None
        if items:
            values = np.array(values_of(reproducer, tensor))
            for i, size in items.items():
                values[i] = size
            put(tensor, values)
    nodes = list(all_nodes(proto))
    for slot, size in sizes.items():
        if slot.kind == "attribute":
            _set(next(a for a in nodes[slot.place].attribute if a.name == slot.name), slot.axis, size)
    forget_shapes(proto)
    forget_output_sizes(proto)
    for info in proto.graph.input:
        value = feeds.get(info.name)
        if isinstance(value, np.ndarray) and info.type.HasField("tensor_type"):
            declare_dims(info.type.tensor_type, value.shape)
        elif isinstance(value, list) and (kind := type_of(value)) is not None:
            info.type.CopyFrom(kind)
    return reproducer.with_model(proto, feeds)


def _cut_feeds(reproducer: Reproducer, sizes: Mapping[Slot, int], window: Window) -> dict[str, Value]:
    feeds = dict(reproducer.feeds)
    for name, place, array in reproducer.fed():
        axes = {s.axis: n for s, n in sizes.items() if (s.kind, s.name, s.place) == ("feed", name, place)}
        part, whole = _cut(array, axes, window), feeds[name]
        feeds[name] = [*whole[:place], part, *whole[place + 1 :]] if isinstance(whole, list) else part
    return feeds


def unwindowed(reproducer: Reproducer) -> Reproducer:
    """The reproducer with windows that neither pad nor jump, which fit any size."""
    proto = reproducer.draft()
    for node in all_nodes(proto):
        keep(node.attribute, [attribute for attribute in node.attribute if attribute.name not in _WINDOW])
    return reproducer.with_model(proto)


def _set(attribute: AttributeProto, i: int, size: int) -> None:
    if attribute.type == AttributeProto.INTS:
        attribute.ints[i] = size
    else:
        attribute.i = size


def _resize(reproducer: Reproducer, tensor: TensorProto, axes: Mapping[int, int], window: Window) -> bool:
    """Cut a tensor; whether that could be done without too many new bytes."""
    before = payload_bytes(tensor)
    dims = [axes.get(axis, dim) for axis, dim in enumerate(tensor.dims)]
    count, all_ = int(np.prod(dims)), int(np.prod(tensor.dims))
    after = before * count // max(1, all_)
    if after <= LARGEST:
        values = values_of(reproducer, tensor)
        put(tensor, _cut(values, axes, window if before <= LARGEST else "front"))
        return True
    if set(axes) != {0} or not is_external(tensor) or before * count % all_:
        return False
    tensor.dims[0] = dims[0]  # the first rows are a part of the same bytes
    for entry in tensor.external_data:
        if entry.key == "length":
            entry.value = str(after)
    return True


def _cut(array: Array, axes: Mapping[int, int], window: Window) -> Array:
    """A part of an array."""
    if not axes:
        return array
    center = _center(array, window)
    index = [slice(None)] * array.ndim
    for axis, size in axes.items():
        start = min(center[axis], array.shape[axis] - size)
        index[axis] = slice(start, start + size)
    return np.array(array[tuple(index)])


def _center(array: Array, window: Window) -> tuple[int, ...]:
    if window == "front" or not array.size or not (is_float(array.dtype) or is_integer(array.dtype)):
        return (0,) * array.ndim
    wide = array.astype(np.float64)
    order = np.abs(wide) if window == "peak" else -wide
    at = int(np.argmax(np.where(np.isfinite(order), order, -np.inf)))
    return tuple(int(i) for i in np.unravel_index(at, array.shape))
