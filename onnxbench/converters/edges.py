"""The inputs of certificates: made up, at what operators are known to part at, and around the constants of a form."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from onnx import AttributeProto, GraphProto, numpy_helper

from onnxbench.core.feeds import generate
from onnxbench.core.graph import GraphView
from onnxbench.core.model import Model
from onnxbench.core.values import Value, dtype_of, is_float
from onnxbench.errors import BenchError

#: What operators are known to part at, besides NaN: no end, ties of rounding, both zeros.
_EDGES = (np.inf, -np.inf, 0.5, -0.5, 1.5, 2.5, -2.5, 0.0, -0.0, 1.0, -1.0, 3.0, 1e4, -1e4)
#: A constant of so few elements may be a bound; so many numbers are tried.
_FEW = 4
#: How far what lies next to a bound is from it: every element type but those of 8 bits tells them apart.
_NEXT = 1 / 64


def edged(model: Model) -> Iterator[Mapping[str, Value]]:
    """Inputs of a form, set by set; none if none can be made up."""
    view = GraphView(model.proto, model.proto.graph)
    for seed in (0, 1):
        try:
            yield generate(view, seed=seed)
        except BenchError:
            return
    drawn = generate(view, seed=2)
    for values in (_EDGES, (np.nan, *_EDGES), _around(model.proto.graph)):
        edges = {name: _at(value, values, place) for place, (name, value) in enumerate(drawn.items())}
        if any(edges[name] is not value for name, value in drawn.items()):
            yield edges


def _around(graph: GraphProto) -> Sequence[float]:
    """The numbers that a form holds, each with what lies next to it."""
    held = [
        attribute.f for node in graph.node for attribute in node.attribute if attribute.type == AttributeProto.FLOAT
    ]
    for tensor in graph.initializer:
        dtype = dtype_of(tensor.data_type)
        if dtype is not None and is_float(dtype) and math.prod(tensor.dims) <= _FEW:
            held += [float(number) for number in numpy_helper.to_array(tensor).reshape(-1)]
    finite = [number for number in dict.fromkeys(held) if math.isfinite(number)]
    return [number + step * max(abs(number), 1.0) for number in finite[:_FEW] for step in (0.0, _NEXT, -_NEXT)]


def _at(value: Value, values: Sequence[float], shift: int) -> Value:
    """Some numbers in the type and shape of a value, if that is of floats."""
    if not values or not isinstance(value, np.ndarray) or not is_float(value.dtype) or not value.size:
        return value
    row = np.resize(np.roll(np.asarray(values), shift * 4), value.size).reshape(value.shape)
    with np.errstate(over="ignore", invalid="ignore"):
        return row.astype(value.dtype)
