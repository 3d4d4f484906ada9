"""Conditions that ask whether one size of a value is 1, as exporters write them."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np
from onnx import AttributeProto, NodeProto, TensorProto

from onnxbench.core.graph import GraphView, Node
from onnxbench.core.values import Array
from onnxbench.folding.constancy import refers
from onnxbench.folding.scope import Scope, is_default_domain

#: Operators that leave the one element of a tensor as it is.
_KEEPERS = frozenset({"Identity", "Squeeze", "Unsqueeze", "Reshape", "Flatten"})
#: Types in which a size is 1 exactly where it is 1 in int64, and those in which a truth is kept.
_SIZES = frozenset({TensorProto.INT64, TensorProto.FLOAT, TensorProto.DOUBLE})
_TRUTHS = _SIZES | {TensorProto.BOOL, TensorProto.INT32, TensorProto.UINT8, TensorProto.INT8}
_END = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Place:
    """A value, by the graph that makes it: a body may have one that is called alike."""

    home: GraphView
    name: str


@dataclass(frozen=True, slots=True)
class LoneSize:
    """That the size of `place` along `axis`, as the model counts it, is 1: where the condition is `truth`, and only there."""

    place: Place
    axis: int
    truth: bool


def place_of(view: GraphView, name: str) -> Place | None:
    """Where a value that is visible in a graph comes from, through Identity."""
    while True:
        home = next((scope for scope in view.outward() if scope.defines(name)), None)
        maker = home.producer.get(name) if home is not None else None
        if home is None or maker is None or maker.proto.op_type != "Identity" or not is_default_domain(maker.proto):
            return Place(home, name) if home is not None else None
        view, name = home, maker.proto.input[0]


def lone_size(scope: Scope, view: GraphView, condition: str) -> LoneSize | None:
    """What a condition asks, through Not, Cast and changes of its shape; None if it asks something else.

    Args:
        scope: any of the model, for its constants.
        view: the graph in which the condition is visible.
        condition: the name.
    """
    found = _maker(view, condition)
    if found is None:
        return None
    home, node = found
    first = node.proto.input[0] if node.proto.input else ""
    match node.proto.op_type:
        case "Not":
            inner = lone_size(scope, home, first)
            return dataclasses.replace(inner, truth=not inner.truth) if inner is not None else None
        case "Cast" if _target(node.proto) in _TRUTHS:
            return lone_size(scope, home, first)
        case "Equal" if home.opsets.get("", 0) >= 7 and len(node.proto.input) == 2:
            sides = list(node.proto.input)
            asked = next((side for side, other in (sides, sides[::-1]) if _is_one(scope, home, other)), None)
            return _size(scope, home, asked) if asked is not None else None
        case operator if operator in _KEEPERS:
            return lone_size(scope, home, first)
    return None


def axes_of(scope: Scope, view: GraphView, squeeze: NodeProto) -> list[int] | None:
    """The axes that a Squeeze names, as the model counts them; None if it names none, or they are not known."""
    axes = _given(squeeze, "axes")
    if axes is None and len(squeeze.input) > 1 and squeeze.input[1]:
        axes = integers(scope, view, squeeze.input[1])
    if axes is None or (view.opsets.get("", 0) < 11 and any(axis < 0 for axis in axes)):
        return None  # Squeeze-1 counts from the front
    return axes


def integers(scope: Scope, view: GraphView, name: str) -> list[int] | None:
    """The elements of a small constant of integers that is visible in a graph."""
    value = _value(scope, view, name)
    return None if value is None or value.dtype.kind not in "iu" else [int(item) for item in value.reshape(-1)]


def _value(scope: Scope, view: GraphView, name: str) -> Array | None:
    place = place_of(view, name)
    return dataclasses.replace(scope, view=place.home, _values={}).value(place.name) if place is not None else None


def _is_one(scope: Scope, view: GraphView, name: str) -> bool:
    value = _value(scope, view, name)
    return value is not None and value.dtype.kind in "iuf" and value.size == 1 and bool(np.all(value == 1))


def _size(scope: Scope, view: GraphView, name: str) -> LoneSize | None:
    """The one size that a value holds, through changes of its type and shape."""
    found = _maker(view, name)
    if found is None:
        return None
    home, node = found
    proto = node.proto
    match proto.op_type:
        case "Cast" if _target(proto) in _SIZES:
            return _size(scope, home, proto.input[0])
        case operator if operator in _KEEPERS:
            return _size(scope, home, proto.input[0])
        case "Gather" if _integer(proto, "axis", 0) in (0, -1):
            index = integers(scope, home, proto.input[1])
            return _of_shape(home, proto.input[0], index[0]) if index is not None and len(index) == 1 else None
        case "Slice":
            start = _sliced(scope, home, proto)
            return _of_shape(home, proto.input[0], start) if start is not None else None
        case "Shape":
            first, end = _integer(proto, "start", 0), _integer(proto, "end", None)
            return _asked(home, proto.input[0], first) if first is not None and _is_one_of(first, end) else None
    return None


def _of_shape(view: GraphView, name: str, index: int) -> LoneSize | None:
    """The size at an index of what Shape makes."""
    found = _maker(view, name)
    if found is None:
        return None
    home, node = found
    if node.proto.op_type == "Cast" and _target(node.proto) in _SIZES:
        return _of_shape(home, node.proto.input[0], index)
    if node.proto.op_type != "Shape" or node.proto.attribute:  # `start` and `end` shift the index
        return None
    return _asked(home, node.proto.input[0], index)


def _asked(view: GraphView, name: str, axis: int) -> LoneSize | None:
    place = place_of(view, name)
    return LoneSize(place, axis, True) if place is not None else None


def _sliced(scope: Scope, view: GraphView, node: NodeProto) -> int | None:
    """The index of the only element that a Slice of a vector takes."""
    starts, ends, axes = (_slice_input(scope, view, node, *key) for key in (("starts", 1), ("ends", 2), ("axes", 3)))
    steps = _slice_input(scope, view, node, "steps", 4)
    if steps not in ([1], []) or axes not in ([0], [-1], []) or not starts or not ends or len(starts) != 1:
        return None
    return starts[0] if len(ends) == 1 and _is_one_of(starts[0], ends[0]) else None


def _slice_input(scope: Scope, view: GraphView, node: NodeProto, name: str, place: int) -> list[int] | None:
    """Attributes before Slice-10, inputs later; [] for what is left out."""
    given = _given(node, name)
    if given is not None:
        return given
    if len(node.input) <= place or not node.input[place]:
        return []
    return integers(scope, view, node.input[place])


def _is_one_of(start: int, end: int | None) -> bool:
    """Whether no more than one element lies between them; a last one may end wherever."""
    if start == -1:
        return end is None or end >= _END
    return end is not None and end == start + 1


def _maker(view: GraphView, name: str) -> tuple[GraphView, Node] | None:
    """The node of ai.onnx that makes a value, and its graph."""
    place = place_of(view, name)
    node = place.home.producer.get(place.name) if place is not None else None
    if place is None or node is None or not is_default_domain(node.proto) or refers(node.proto):
        return None
    return place.home, node


def _attribute(node: NodeProto, name: str) -> AttributeProto | None:
    return next((attribute for attribute in node.attribute if attribute.name == name), None)


def _integer(node: NodeProto, name: str, default: int | None) -> int | None:
    found = _attribute(node, name)
    return default if found is None else int(found.i)


def _given(node: NodeProto, name: str) -> list[int] | None:
    found = _attribute(node, name)
    return None if found is None else list(found.ints)


def _target(node: NodeProto) -> int | None:
    """The type that a Cast makes; Cast-1 names it in text."""
    found = _attribute(node, "to")
    return int(found.i) if found is not None and found.type == AttributeProto.INT else None
