"""Choose the size of every dim that an input leaves open."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from onnx import TensorShapeProto, TypeProto

from onnxbench.core.dims import runs
from onnxbench.core.graph import GraphView
from onnxbench.core.nearest import not_found
from onnxbench.core.size_text import parse
from onnxbench.core.symbolic import Expr, evaluate
from onnxbench.core.values import tensor_type
from onnxbench.core.wanted_sizes import wanted_sizes
from onnxbench.errors import UsageError, quote

Shape = tuple[int, ...]

#: What a symbol is if nobody says: not 1, which would hide a wrong broadcast, and small.
SYMBOL = 2
#: What a dim without a name is: one that the exporter did not care to name is a batch of one more often than not.
ANONYMOUS = 1


@dataclass(frozen=True, slots=True)
class Sizes:
    """The shape of each input, and the size of each symbol that was met on the way."""

    shapes: dict[str, Shape]
    symbols: dict[str, int]


def fed_inputs(view: GraphView) -> dict[str, TypeProto]:
    """The inputs that need a value, by name: those that no initializer stands behind."""
    behind = view.initializers.keys() | view.sparse.keys()
    return {name: info.type for name, info in view.inputs.items() if name not in behind}


def symbols(types: Iterable[TypeProto]) -> set[str]:
    """The symbols in the dims of types, those within expressions included."""
    return names_in(dim.dim_param for value_type in types for dim in dims_in(value_type) or () if dim.dim_param)


def choose_sizes(view: GraphView, shapes: Mapping[str, Sequence[int]], dims: Mapping[str, int]) -> Sizes:
    """A size for every dim of every input: the same symbol has the same size everywhere.

    In this order: what the user says, what the first operator needs (channels of a convolution, columns of a product,
    a picture of 32 pixels), sums and products of other symbols (`past + seq`), then `SYMBOL` or `ANONYMOUS`.

    Raises:
        NameNotFound: OB303 for an input or symbol that the model has not.
        UsageError: OB206 if an input has no rank, or the user's sizes contradict the model or each other.
    """
    inputs = fed_inputs(view)
    _refuse_unknown(inputs, shapes, dims)
    symbols = given_symbols(inputs, shapes, dims)
    wanted = {(name, axis): size for name in inputs for axis, size in wanted_sizes(view, name).items()}
    _fill_symbols(inputs, wanted, symbols)
    chosen = {
        name: tuple(shapes[name]) if name in shapes else _shape(name, value_type, wanted, symbols)
        for name, value_type in inputs.items()
    }
    return Sizes(chosen, symbols)


def given_symbols(
    inputs: Mapping[str, TypeProto], shapes: Mapping[str, Sequence[int]], dims: Mapping[str, int]
) -> dict[str, int]:
    """The size of each symbol that the user's sizes settle, by dim_param.

    Raises:
        UsageError: OB206 if a shape does not fit its input, or a symbol is given two sizes.
    """
    symbols = dict(dims)
    for name, shape in shapes.items():
        for axis, dim in enumerate(_fitting(name, inputs[name], shape)):
            if dim.dim_param and symbols.setdefault(dim.dim_param, shape[axis]) != shape[axis]:
                raise UsageError(
                    "OB206",
                    f"symbol {quote(dim.dim_param)} is {symbols[dim.dim_param]} and {shape[axis]} at once",
                    hint=f"give --dim {shlex.quote(dim.dim_param)}=... and --shape the same size",
                )
    for text in symbols:
        size = evaluate(_calculation(text) or 0, symbols)
        if _names(text) and isinstance(size, int) and size != symbols[text]:
            hint = f"leave out one of --dim {shlex.quote(text)}=... and --shape"
            raise UsageError("OB206", f"symbol {quote(text)} is {symbols[text]} and {size} at once", hint=hint)
    return symbols


def refuse_unfit(
    inputs: Mapping[str, TypeProto], shapes: Mapping[str, Sequence[int]], dims: Mapping[str, Sequence[int]]
) -> None:
    """Raise if inputs cannot have the sizes that the user gives, each size of a symbol in turn.

    Raises:
        NameNotFound: OB303 for an input or symbol that the model has not.
        UsageError: OB206 if a shape does not fit its input, or a symbol is given two sizes.
    """
    _refuse_unknown(inputs, shapes, dims)
    for sizes in runs(dims):
        given_symbols(inputs, shapes, sizes)


def names_in(texts: Iterable[str]) -> set[str]:
    """Symbols: each text whole, and those within expressions."""
    known = set(texts)
    return known | {name for text in known for name in _names(text)}


def dims_in(value_type: TypeProto) -> Sequence[TensorShapeProto.Dimension] | None:
    """The dims that a type declares, those of the elements for a sequence; None if it declares no rank."""
    tensor = tensor_type(value_type)
    return tensor.shape.dim if tensor is not None and tensor.HasField("shape") else None


def lone_shape(value_type: TypeProto) -> Shape:
    """The shape of a loop's round number or condition: a scalar, or the tensor of one element that some exporters declare.

    ONNX Runtime gives the body what it declares, whatever shapes the trip count and the first condition have.
    """
    return (1,) * len(dims_in(value_type) or ())


def _refuse_unknown(inputs: Mapping[str, TypeProto], shapes: Mapping[str, object], dims: Mapping[str, object]) -> None:
    for name in shapes:
        if name not in inputs:
            raise not_found("input", name, inputs)
    known = symbols(inputs.values())
    for name in dims:
        if name not in known:
            raise not_found("symbolic dim", name, known)


def _fitting(name: str, value_type: TypeProto, shape: Sequence[int]) -> Sequence[TensorShapeProto.Dimension]:
    declared = dims_in(value_type)
    if declared is None:
        return ()
    fits = len(declared) == len(shape) and all(
        not dim.HasField("dim_value") or dim.dim_value in (size, -1) for dim, size in zip(declared, shape, strict=True)
    )
    if not fits:
        text = "x".join(dim.dim_param or (str(dim.dim_value) if dim.HasField("dim_value") else "?") for dim in declared)
        given = "x".join(map(str, shape))
        raise UsageError("OB206", f"input {quote(name)} is declared {quote(text)}, which {quote(given)} does not fit")
    return declared


def _fill_symbols(
    inputs: Mapping[str, TypeProto], wanted: Mapping[tuple[str, int], int], symbols: dict[str, int]
) -> None:
    """Plain symbols first, then what is calculated from them."""
    open_symbols: dict[str, int | None] = {}
    for name, value_type in inputs.items():
        for axis, dim in enumerate(dims_in(value_type) or ()):
            if dim.dim_param and dim.dim_param not in symbols:
                open_symbols[dim.dim_param] = open_symbols.get(dim.dim_param) or wanted.get((name, axis))
    for symbol, size in open_symbols.items():
        if size is not None:
            symbols[symbol] = size
    parts = [part for symbol in open_symbols for part in _names(symbol)]
    for symbol in [*open_symbols, *parts]:
        if not _names(symbol):
            symbols.setdefault(symbol, SYMBOL)
    for symbol in open_symbols:
        if symbol not in symbols:
            symbols[symbol] = max(0, _calculated(symbol, symbols))


def _shape(
    name: str, value_type: TypeProto, wanted: Mapping[tuple[str, int], int], symbols: Mapping[str, int]
) -> Shape:
    declared = dims_in(value_type)
    if value_type.HasField("map_type"):
        raise UsageError(
            "OB206", f"input {quote(name)} is a map, which cannot be made up", hint="--check needs no inputs"
        )
    if declared is None:
        hint = f"--shape {shlex.quote(name)}=1x3x224x224 (its real sizes; nothing after = for a scalar)"
        raise UsageError("OB206", f"the model does not say the rank of input {quote(name)}", hint=hint)
    sizes: list[int] = []
    for axis, dim in enumerate(declared):
        if dim.HasField("dim_value") and dim.dim_value >= 0:
            sizes.append(dim.dim_value)
        elif dim.dim_param:
            sizes.append(symbols[dim.dim_param])
        else:
            sizes.append(wanted.get((name, axis), ANONYMOUS))
    return tuple(sizes)


def _calculation(symbol: str) -> Expr | None:
    """The calculation that exporters write as the name of a dim (`past_seq + seq`); None for a plain symbol."""
    size = parse(symbol) if any(sign in symbol for sign in "+-*/%(") else None
    return size if isinstance(size, Expr) else None


def _names(symbol: str) -> tuple[str, ...]:
    size = _calculation(symbol)
    return () if size is None else tuple(sorted(size.symbols))


def _calculated(symbol: str, symbols: Mapping[str, int]) -> int:
    size = _calculation(symbol)
    assert size is not None
    value = evaluate(size, symbols)
    return value if isinstance(value, int) else SYMBOL  # a division by zero
