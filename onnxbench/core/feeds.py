"""Make inputs for a model: seeded, of the declared types, with indices that stay in range."""

from __future__ import annotations

import hashlib
import math
import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np
from onnx import TypeProto

from onnxbench.core.graph import GraphView
from onnxbench.core.index_ranges import index_ranges, within
from onnxbench.core.index_roles import Bound
from onnxbench.core.nearest import not_found
from onnxbench.core.sizes import Shape, choose_sizes, fed_inputs, refuse_unfit
from onnxbench.core.values import Array, Dtype, Value, dtype_in, dtype_name, integer_limits, is_float, is_integer
from onnxbench.errors import UsageError, quote

__all__ = ["fed_inputs", "generate", "refuse_misfits"]

_LARGEST = 2 << 30  # bytes of one input: a test data set, which is protobuf, holds no more
_ELEMENTS = 2  # of a sequence
_WORDS = ("alpha", "beta", "gamma", "delta", "epsilon", "zeta")


def generate(
    view: GraphView,
    *,
    seed: int = 0,
    shapes: Mapping[str, Sequence[int]] | None = None,
    dims: Mapping[str, int | Sequence[int]] | None = None,
    ranges: Mapping[str, tuple[float, float]] | None = None,
) -> dict[str, Value]:
    """A value for each input that no initializer stands behind, in graph order.

    Each input is drawn from its own stream (seed, name), so another input changes nothing for it. Floats are standard
    normal, 8-bit and smaller integers use their whole range, larger ones lie in [0, 10), unless the graph tells more
    (`index_ranges`). Of several sizes for a symbol the first one is used; `dims.runs` makes one mapping for each.

    Raises:
        NameNotFound: OB303 for an input or symbol that the model has not.
        UsageError: OB206 if the model does not say enough of an input, or it would be enormous.
    """
    ranges = ranges or {}
    first = {name: size if isinstance(size, int) else size[0] for name, size in (dims or {}).items()}
    sizes = choose_sizes(view, shapes or {}, first)
    _refuse_unknown(ranges, sizes.shapes)
    bounds = index_ranges(view, sizes)
    made: dict[str, Value] = {}
    for name, value_type in fed_inputs(view).items():
        dtype = _drawable(name, value_type, sizes.shapes[name])
        bound = within(bounds, name, ranges)
        rng = np.random.default_rng(
            [seed & (2**64 - 1), *hashlib.sha256(name.encode("utf-8", "surrogatepass")).digest()]
        )
        if dtype_name(dtype) == "string" and _is_cast(view, name):
            bound = Bound(0, 10)
        made[name] = _value(rng, value_type, dtype, sizes.shapes[name], bound)
    return made


def refuse_misfits(
    view: GraphView,
    shapes: Mapping[str, Sequence[int]],
    dims: Mapping[str, Sequence[int]],
    ranges: Mapping[str, tuple[float, float]],
) -> None:
    """Raise if what the user says of inputs cannot be meant for this model; nothing is generated.

    Raises:
        NameNotFound: OB303 for an input or symbol that the model has not.
        UsageError: OB206 if a shape does not fit its input, or a symbol is given two sizes.
    """
    inputs = fed_inputs(view)
    refuse_unfit(inputs, shapes, dims)
    _refuse_unknown(ranges, inputs)


def _refuse_unknown(ranges: Iterable[str], inputs: Collection[str]) -> None:
    for name in ranges:
        if name not in inputs:
            raise not_found("input", name, inputs)


def _drawable(name: str, value_type: TypeProto, shape: Shape) -> Dtype:
    dtype = dtype_in(value_type)
    if dtype is None:
        hint = "give it by --inputs"
        raise UsageError("OB206", f"input {quote(name)} has a type that cannot be generated", hint=hint)
    size = math.prod(shape) * dtype.itemsize
    if size > _LARGEST:
        text = f"input {quote(name)} of shape {list(shape)} would take {size / 2**30:.1f} GiB"
        raise UsageError("OB206", text, hint=f"--shape {shlex.quote(name)}=... with smaller sizes, or --inputs")
    return dtype


def _value(rng: np.random.Generator, value_type: TypeProto, dtype: Dtype, shape: Shape, bound: Bound | None) -> Value:
    kind = value_type.WhichOneof("value")
    if kind == "sequence_type":
        inner = value_type.sequence_type.elem_type
        return [_value(rng, inner, dtype, shape, bound) for _ in range(_ELEMENTS)]
    if kind == "optional_type":
        return _value(rng, value_type.optional_type.elem_type, dtype, shape, bound)
    return _tensor(rng, dtype, shape, bound)


def _tensor(rng: np.random.Generator, dtype: Dtype, shape: Shape, bound: Bound | None) -> Array:
    if dtype_name(dtype) == "string":
        return _strings(rng, shape, bound)
    if dtype.kind == "b":
        return np.asarray(rng.integers(0, 2, shape), dtype=bool)
    if bound is not None and bound.exact is not None and len(bound.exact) == math.prod(shape):
        return np.asarray(bound.exact).reshape(shape).astype(dtype)
    if is_integer(dtype):
        return _integers(rng, dtype, shape, bound)
    return _floats(rng, dtype, shape, bound)


def _integers(rng: np.random.Generator, dtype: Dtype, shape: Shape, bound: Bound | None) -> Array:
    least, most = integer_limits(dtype)
    if bound is None:
        bound = Bound(least, most + 1) if most < 256 else Bound(0, 10)
    low = min(max(least, math.ceil(bound.low)), most)
    high = max(min(most, math.ceil(bound.high) - 1), low)
    wide = np.uint64 if high >= 2**63 else np.int64
    return np.asarray(rng.integers(low, high, shape, dtype=wide, endpoint=True)).astype(dtype)


def _floats(rng: np.random.Generator, dtype: Dtype, shape: Shape, bound: Bound | None) -> Array:
    if bound is not None:
        drawn = np.asarray(rng.uniform(bound.low, bound.high, shape))
        return np.asarray(np.floor(drawn) if bound.whole else drawn).astype(dtype)
    if dtype.kind == "c":
        parts = np.asarray(rng.standard_normal((*shape, 2)))
        return np.asarray(parts[..., 0] + 1j * parts[..., 1]).astype(dtype)
    assert is_float(dtype)
    if dtype == np.float64:
        return np.asarray(rng.standard_normal(shape))
    drawn = np.asarray(rng.standard_normal(shape, dtype=np.float32))
    return np.asarray(np.abs(drawn) if dtype.name.startswith("float8_e8m0") else drawn).astype(dtype)  # has no sign


def _strings(rng: np.random.Generator, shape: Shape, bound: Bound | None) -> Array:
    words = _WORDS if bound is None else tuple(str(i) for i in range(math.ceil(bound.low), math.ceil(bound.high)))
    made = np.empty(shape, dtype=object)
    made.reshape(-1)[:] = [words[i] for i in rng.integers(0, len(words), made.size)]
    return made


def _is_cast(view: GraphView, name: str) -> bool:
    """Whether strings must read as numbers."""
    return any(node.proto.op_type == "Cast" for node in view.consumers.get(name, []))
