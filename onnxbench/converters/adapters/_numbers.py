"""Arithmetic that is done now where all operands are known, and by nodes where one is only known at run time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from onnx import helper

from onnxbench.converters.adapters._masks import counting, reduced
from onnxbench.converters.site import Site
from onnxbench.core.values import Array

#: An array that is known now, or the name of a value.
Number: TypeAlias = "Array | str"


def _divided(a: Array, b: Array) -> Array:
    """Div of whole numbers cuts off."""
    if a.dtype.kind == "f":
        return np.asarray(np.divide(a, b))
    return np.asarray(np.sign(a) * np.sign(b) * (np.abs(a) // np.abs(b)), a.dtype)


_NOW: dict[str, Callable[..., Any]] = {
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "Div": _divided,
    "Floor": np.floor,
    "Ceil": np.ceil,
    "Abs": np.abs,
    "Log": np.log,
    "Exp": np.exp,
    "Less": np.less,
    "Greater": np.greater,
    "Equal": np.equal,
    "And": np.logical_and,
    "Or": np.logical_or,
    "Not": np.logical_not,
    "Where": np.where,
}


@dataclass(frozen=True, slots=True)
class Numbers:
    """Arithmetic of one site; operands have one element type, as for the operators."""

    site: Site

    def of(self, name: str) -> Number:
        """A value of the graph; as an array if it is the same in every run."""
        known = self.site.value(name)
        return name if known is None else known

    def name(self, number: Number, wish: str) -> str:
        """The name of a number; a known one is stored."""
        return number if isinstance(number, str) else self.site.const(number, wish, number.dtype)

    def do(self, op: str, *operands: Number, wish: str = "") -> Number:
        """Apply an operator of opset 9."""
        arrays = [operand for operand in operands if not isinstance(operand, str)]
        if len(arrays) == len(operands):
            with np.errstate(all="ignore"):
                made = np.asarray(_NOW[op](*arrays))
            return made if made.dtype == bool else made.astype(arrays[-1].dtype)
        names = [self.name(operand, f"{wish or op.lower()}_by") for operand in operands]
        return self.site.add(op, *names, wish=wish)

    def add(self, a: Number, b: Number, wish: str = "") -> Number:
        return self.do("Add", a, b, wish=wish)

    def sub(self, a: Number, b: Number, wish: str = "") -> Number:
        return self.do("Sub", a, b, wish=wish)

    def mul(self, a: Number, b: Number, wish: str = "") -> Number:
        return self.do("Mul", a, b, wish=wish)

    def div(self, a: Number, b: Number, wish: str = "") -> Number:
        return self.do("Div", a, b, wish=wish)

    def less(self, a: Number, b: Number) -> Number:
        return self.do("Less", a, b)

    def where(self, condition: Number, a: Number, b: Number, wish: str = "") -> Number:
        return self.do("Where", condition, a, b, wish=wish)

    def lower(self, a: Number, b: Number) -> Number:
        """The lower of two."""
        return self.where(self.less(a, b), a, b)

    def higher(self, a: Number, b: Number) -> Number:
        """The higher of two."""
        return self.where(self.less(a, b), b, a)

    def cast(self, number: Number, dtype: Any, wish: str = "") -> Number:
        if isinstance(number, str):
            return self.site.add("Cast", number, to=helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), wish=wish)
        return number.astype(dtype)

    def shaped(self, number: Number, shape: list[int], wish: str = "") -> Number:
        """Reshape."""
        if isinstance(number, str):
            return self.site.add("Reshape", number, self.site.const(shape, "shape"), wish=wish)
        return number.reshape(shape)

    def into(self, number: Number, sizes: list[Number], wish: str = "") -> Number:
        """Reshape to sizes that are lists of one."""
        known = [size for size in sizes if not isinstance(size, str)]
        if len(known) == len(sizes):
            return self.shaped(number, [int(size[0]) for size in known], wish)
        shape = self.site.add("Concat", *(self.name(size, "size") for size in sizes), axis=0, wish="shape")
        return self.site.add("Reshape", self.name(number, wish or "value"), shape, wish=wish)

    def columns(self, number: Number) -> Number:
        """The second size, as a list of one."""
        if isinstance(number, str):
            return self.pick(self.site.add("Shape", number), 1, wish="columns")
        return np.asarray([number.shape[1]], np.int64)

    def total(self, number: Number, axis: int) -> Number:
        """The sum along an axis, which is kept."""
        if isinstance(number, str):
            return reduced(self.site, "ReduceSum", number, [axis], keepdims=1)
        return np.asarray(number.sum(axis=axis, keepdims=True, dtype=number.dtype))

    def range(self, count: Number) -> Number:
        """0, 1, 2, … as int64, as many as one int64 says."""
        if isinstance(count, str):
            return counting(self.site, count)
        return np.arange(int(count.reshape(-1)[0]), dtype=np.int64)

    def pick(self, number: Number, place: int, wish: str = "") -> Number:
        """One element of a list, as a list of one."""
        if isinstance(number, str):
            return self.site.add("Gather", number, self.site.const([place], f"place_{place}"), axis=0, wish=wish)
        return number.reshape(-1)[place : place + 1]

    def taken(self, number: Number, places: Number) -> Number:
        """The elements of a list at some places."""
        if isinstance(number, str) or isinstance(places, str):
            return self.site.add("Gather", self.name(number, "list"), self.name(places, "places"), axis=0)
        return np.asarray(number[places])

    def size(self, name: str, axis: int) -> Number:
        """The size of an axis, as a list of one int64."""
        dims = self.site.dims(name)
        known = dims[axis] if dims is not None else None
        if known is not None:
            return np.asarray([known], np.int64)
        return self.pick(self.site.add("Shape", name, wish="shape"), axis, wish="size")


def fits_float32(numbers: Array) -> bool:
    """Whether float32, in which attributes hold floats, holds each of some numbers."""
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.array_equal(numbers.astype(np.float32).astype(numbers.dtype), numbers, equal_nan=True))
