"""Check that values fit the inputs that a model declares."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

import numpy as np
from onnx import TypeProto

from onnxbench.core.graph import GraphView
from onnxbench.core.nearest import not_found
from onnxbench.core.sizes import fed_inputs
from onnxbench.core.values import Array, Value, dtype_in, dtype_name, is_narrow, with_str
from onnxbench.errors import UsageError, quote


def check(feeds: Mapping[str, Value], view: GraphView) -> dict[str, Value]:
    """The feeds in graph order, raw bytes of an npz file viewed as the declared type.

    A dtype must be the declared one: a silent cast would feed other numbers than the user recorded.

    Raises:
        NameNotFound: OB303 for a name that is no input.
        UsageError: OB206 for an input without value, or a value of another dtype, rank or fixed size.
    """
    for name in feeds:
        if name not in view.inputs:
            raise not_found("input", name, view.inputs)
    missing = [name for name in fed_inputs(view) if name not in feeds]
    if missing:
        names = ", ".join(quote(name) for name in missing)
        raise UsageError("OB206", f"no value is given for {names}", hint="leave out --inputs to have inputs generated")
    return {name: _fitted(name, feeds[name], info.type) for name, info in view.inputs.items() if name in feeds}


def _fitted(name: str, value: Value, declared: TypeProto) -> Value:
    kind = declared.WhichOneof("value")
    if kind == "optional_type":
        return None if value is None else _fitted(name, value, declared.optional_type.elem_type)
    if kind == "sequence_type":
        if not isinstance(value, list):
            raise UsageError("OB206", f"input {quote(name)} is a sequence, and gets {_kind(value)}")
        inner = declared.sequence_type.elem_type
        return [_fitted(f"{name}[{i}]", item, inner) for i, item in enumerate(value)]
    if not isinstance(value, np.ndarray):
        raise UsageError("OB206", f"input {quote(name)} is a tensor, and gets {_kind(value)}")
    return _fitted_tensor(name, value, declared)


def _fitted_tensor(name: str, value: Array, declared: TypeProto) -> Array:
    wanted = dtype_in(declared)
    value = with_str(value)
    if wanted is not None:
        if value.dtype.kind == "V" and not is_narrow(value.dtype) and value.dtype.itemsize == wanted.itemsize:
            value = value.view(wanted)
        if dtype_name(value.dtype) != dtype_name(wanted):
            text = f"input {quote(name)} is declared {dtype_name(wanted)}, and gets {dtype_name(value.dtype)}"
            raise UsageError("OB206", text, hint=f"save it as {dtype_name(wanted)}")
        if value.dtype != wanted:  # the other byte order
            value = value.astype(wanted)
    if declared.tensor_type.HasField("shape"):
        dims = declared.tensor_type.shape.dim
        fits = len(dims) == value.ndim and all(
            not dim.HasField("dim_value") or dim.dim_value in (size, -1)
            for dim, size in zip(dims, value.shape, strict=True)
        )
        if not fits:
            text = "x".join(dim.dim_param or (str(dim.dim_value) if dim.HasField("dim_value") else "?") for dim in dims)
            got = "x".join(map(str, value.shape))
            hint = f"give a value of the declared shape, or generate one: --shape {shlex.quote(name)}={text}"
            raise UsageError(
                "OB206", f"input {quote(name)} is declared {quote(text)}, and gets {quote(got)}", hint=hint
            )
    return value


def _kind(value: Value) -> str:
    return "nothing" if value is None else "a sequence" if isinstance(value, list) else "a tensor"
