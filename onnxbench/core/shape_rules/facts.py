"""What is known of one value: its type, its dims, and its elements where it is a small tensor of sizes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, TypeAlias

import numpy as np
from onnx import TensorProto, TypeProto

from onnxbench.core.symbolic import Size, lone
from onnxbench.core.values import dtype_of

Dim: TypeAlias = "Size | None"
Dims: TypeAlias = "tuple[Dim, ...]"
#: An element of a tensor: a size, a number that is none (0.5), or unknown. Booleans are 0 and 1.
Element: TypeAlias = "Size | float | None"
Elements: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"

#: Tensors with more elements are no shapes; their values are not followed.
MOST = 512

INT64, INT32, BOOL, FLOAT = TensorProto.INT64, TensorProto.INT32, TensorProto.BOOL, TensorProto.FLOAT
_REAL = {TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.BFLOAT16}
_WHOLE = {
    getattr(TensorProto, name) for name in ("INT8", "INT16", "INT32", "INT64", "UINT8", "UINT16", "UINT32", "UINT64")
}


@dataclass(frozen=True, slots=True)
class Fact:
    """What is known of a value.

    Attributes:
        element: element type; None if unknown, or if this is no tensor.
        dims: None if not even the rank is known.
        data: the elements in row-major order, None if there is nothing to say.
        kind: "tensor", "sparse", "sequence", "optional" or "other".
        inner: what a sequence or optional holds.
        items: the members of a sequence one by one, if they are known.
        other: the serialized type where none of this says it (maps, opaque types).
    """

    element: int | None = None
    dims: Dims | None = None
    data: tuple[Element, ...] | None = None
    kind: str = "tensor"
    inner: Fact | None = None
    items: tuple[Fact, ...] | None = None
    other: bytes | None = None

    @property
    def rank(self) -> int | None:
        return None if self.dims is None else len(self.dims)

    def elements(self) -> Elements | None:
        """The elements as an array of objects, shaped."""
        if self.data is None or self.dims is None:
            return None
        sizes = [dim for dim in self.dims if isinstance(dim, int)]
        if len(sizes) != len(self.dims) or prod(sizes) != len(self.data):
            return None
        array = np.empty(len(self.data), dtype=object)
        array[:] = self.data
        return array.reshape(sizes)


NOTHING = Fact()


def tensor(element: int | None, dims: Iterable[Dim] | None = None) -> Fact:
    """A tensor without known elements."""
    return Fact(element, None if dims is None else tuple(dims))


def of_elements(element: int | None, array: Elements) -> Fact:
    """A tensor of which elements are known; the elements are left out if they are many."""
    data = tuple(array.reshape(-1).tolist()) if array.size <= MOST else None
    return Fact(element, tuple(int(size) for size in array.shape), data)


def vector(sizes: Sequence[Element], element: int = INT64) -> Fact:
    """A one-dimensional tensor of sizes."""
    return Fact(element, (len(sizes),), tuple(sizes) if len(sizes) <= MOST else None)


def scalar(size: Element, element: int = INT64) -> Fact:
    """A tensor of rank 0 with one size."""
    return Fact(element, (), (size,))


def sequence(inner: Fact | None, items: tuple[Fact, ...] | None = None) -> Fact:
    """A sequence of what `inner` says."""
    return Fact(kind="sequence", inner=inner, items=items)


def optional(inner: Fact | None) -> Fact:
    """An optional of what `inner` says."""
    return Fact(kind="optional", inner=inner)


def is_real(element: int | None) -> bool:
    """Whether elements of the type may be fractions."""
    return element in _REAL


def is_whole(element: int | None) -> bool:
    """Whether elements of the type are integers."""
    return element in _WHOLE


def followed(element: int | None) -> bool:
    """Whether the values of small tensors of this type are followed."""
    return element in _REAL or element in _WHOLE or element == BOOL


def element_of(value: Any) -> Element:
    """One element of an array as we keep it: whole numbers as int."""
    number = value.item() if hasattr(value, "item") else value
    if isinstance(number, (bool, int)):
        return int(number)
    number = float(number)
    if number != number or number in (float("inf"), float("-inf")):
        return None
    return int(number) if number.is_integer() else number


def rounded(number: float, element: int | None) -> Element:
    """A number as a tensor of the type would hold it."""
    dtype = dtype_of(element) if element is not None else None
    return element_of(number if dtype is None else np.asarray(number).astype(dtype))


def join(one: Fact, other: Fact) -> Fact:
    """What holds for either of two values."""
    if one == other:
        return one
    if one.kind != other.kind:
        return NOTHING
    if one.kind == "sequence" and () in (one.items, other.items):  # nothing in it yet
        return Fact(kind="sequence", inner=other.inner if one.items == () else one.inner)
    if one.kind in ("sequence", "optional"):
        inner = join(one.inner, other.inner) if one.inner is not None and other.inner is not None else None
        return Fact(kind=one.kind, inner=inner)
    element = one.element if one.element == other.element else None
    dims, data = None, None
    if one.dims is not None and other.dims is not None and len(one.dims) == len(other.dims):
        dims = tuple(a if a == b else None for a, b in zip(one.dims, other.dims, strict=True))
        if one.data is not None and other.data is not None and one.dims == other.dims:
            data = tuple(a if a == b else None for a, b in zip(one.data, other.data, strict=True))
    return Fact(element, dims, data, kind=one.kind, other=one.other if one.other == other.other else None)


def dim_text(size: Size) -> str:
    """A size as a file says it: a symbol by itself as it is, within expressions as `str` writes it."""
    return lone(size) or str(size)


def to_type(fact: Fact) -> TypeProto | None:
    """The fact as ONNX says it, expressions as text; None if not even the kind is known."""
    if fact.other is not None:
        given: TypeProto = TypeProto.FromString(fact.other)
        return given
    made = TypeProto()
    if fact.kind in ("sequence", "optional"):
        inner = to_type(fact.inner) if fact.inner is not None else None
        if inner is None:
            return None
        holder = made.sequence_type if fact.kind == "sequence" else made.optional_type
        holder.elem_type.CopyFrom(inner)
        return made
    if fact.element is None:
        return None
    target = made.sparse_tensor_type if fact.kind == "sparse" else made.tensor_type
    target.elem_type = fact.element
    if fact.dims is not None:
        target.shape.SetInParent()
        for dim in fact.dims:
            entry = target.shape.dim.add()
            if isinstance(dim, int):
                entry.dim_value = dim
            elif dim is not None:
                entry.dim_param = dim_text(dim)
    return made
