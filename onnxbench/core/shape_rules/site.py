"""A node as a rule sees it: its attributes, and what is known of its inputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, Protocol, TypeAlias

from onnx import AttributeProto, NodeProto, TensorProto

from onnxbench.core.shape_rules.bounds import bounds, is_capped, never_negative, never_one
from onnxbench.core.shape_rules.facts import NOTHING, Dim, Dims, Element, Fact
from onnxbench.core.symbolic import Expr, Size

Rule: TypeAlias = "Callable[[Site], Sequence[Fact] | None]"


class Unifier(Protocol):
    """Where equalities go that a run cannot do without."""

    seen: set[Size]
    made: set[str]

    def must_equal(self, one: Size, other: Size) -> Size: ...


class Site:
    """One node in its place."""

    __slots__ = ("_attributes", "inputs", "node", "op", "unifier", "version")

    def __init__(self, node: NodeProto, version: int, inputs: Sequence[Fact | None], unifier: Unifier) -> None:
        self.node, self.version, self.inputs, self.unifier = node, version, inputs, unifier
        self.op: str = node.op_type
        self._attributes: dict[str, AttributeProto] = {a.name: a for a in node.attribute} if node.attribute else {}

    def has(self, name: str) -> bool:
        return name in self._attributes

    def integer(self, name: str, default: Any = None) -> Any:
        found = self._attributes.get(name)
        return default if found is None else int(found.i)

    def ints(self, name: str) -> list[int] | None:
        found = self._attributes.get(name)
        return None if found is None else list(found.ints)

    def floats(self, name: str) -> list[float] | None:
        found = self._attributes.get(name)
        return None if found is None else list(found.floats)

    def text(self, name: str, default: str = "") -> str:
        found = self._attributes.get(name)
        return default if found is None else found.s.decode("utf-8", "replace")

    def attribute(self, name: str) -> AttributeProto | None:
        return self._attributes.get(name)

    def tensor(self, name: str) -> TensorProto | None:
        found = self._attributes.get(name)
        return None if found is None or not found.HasField("t") else found.t

    def given(self, place: int) -> bool:
        """Whether the input is connected."""
        return place < len(self.inputs) and self.inputs[place] is not None

    def input(self, place: int) -> Fact:
        """What is known of an input; nothing of one that is left out."""
        fact = self.inputs[place] if place < len(self.inputs) else None
        return NOTHING if fact is None else fact

    def dims(self, place: int) -> Dims | None:
        return self.input(place).dims

    def element(self, place: int = 0) -> Any:
        return self.input(place).element

    def numbers(self, place: int) -> list[Any] | None:
        """The elements of an input if all are plain numbers."""
        data = self.input(place).data
        if data is None or not all(isinstance(value, (int, float)) for value in data):
            return None
        return list(data)

    def integers(self, name: str, place: int) -> list[Any] | None:
        """Integers that are an attribute in one opset and an input in another."""
        return self.ints(name) if self.has(name) else self.numbers(place)

    def count(self, place: int) -> Any:
        """The length of a one-dimensional input, if it is a number."""
        dims = self.dims(place)
        return dims[0] if dims is not None and len(dims) == 1 and isinstance(dims[0], int) else None

    def axis(self, rank: Any, default: Any = None, name: str = "axis") -> Any:
        """The axis that an attribute names, counted from the front."""
        axis = self.integer(name, default)
        if axis is None or rank is None:
            return None
        return axis + rank if axis < 0 else axis

    # sizes -------------------------------------------------------------------------------------------------------

    def bounds(self, size: Size) -> tuple[float, float]:
        return bounds(size, self.unifier.seen)

    def never_negative(self, size: Size) -> bool:
        return never_negative(size, self.unifier.seen)

    def is_made(self, size: Size) -> bool:
        """Whether a symbol that we made up is in it."""
        return isinstance(size, Expr) and not self.unifier.made.isdisjoint(size.symbols)

    def same(self, *dims: Dim) -> Dim:
        """The one size of dims that a run needs to be equal."""
        found: Dim = None
        for dim in dims:
            if dim is not None:
                found = dim if found is None or found == dim else self.unifier.must_equal(found, dim)
        return found

    def stretched(self, one: Dim, other: Dim) -> Dim:
        """The size of two dims that are broadcast against each other; None unless it is certain."""
        if one == other or other == 1:
            return one
        if one == 1:
            return other
        for part, whole in ((one, other), (other, one)):
            if part is not None and whole is not None and is_capped(part, whole):
                return whole  # both are the same, or one of them is 1: then the part is 1
        seen = self.unifier.seen
        fixed = [dim for dim in (one, other) if dim is not None and never_one(dim, seen)]
        if len(fixed) == 2:
            return self.same(*fixed)
        return fixed[0] if fixed else None

    def broadcast(self, *shapes: Dims | None) -> Dims | None:
        """The shape that all shapes are broadcast to."""
        known = [shape for shape in shapes if shape is not None]
        if len(known) < len(shapes) or not known:
            return None
        result = known[0]
        for shape in known[1:]:
            if shape == result:
                continue
            rank = max(len(result), len(shape))
            left = (1,) * (rank - len(result)) + result
            right = (1,) * (rank - len(shape)) + shape
            result = tuple(self.stretched(a, b) for a, b in zip(left, right, strict=True))
        return result


def product(dims: Sequence[Dim]) -> Dim:
    """The number of elements; None if a dim is unknown and none is zero."""
    if any(dim is None for dim in dims):
        return 0 if 0 in dims else None
    total: Size = prod(dim for dim in dims if isinstance(dim, int))
    for dim in dims:
        if isinstance(dim, Expr):
            total = total * dim
    return total


def total(*dims: Dim) -> Dim:
    """The sum; None if a term is unknown."""
    whole: Size = 0
    for dim in dims:
        if dim is None:
            return None
        whole = whole + dim
    return whole


def as_size(element: Element) -> Dim:
    """An element as a size; None for fractions."""
    return None if isinstance(element, float) else element
