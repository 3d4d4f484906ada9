"""The inputs of certificates: made up, at what operators are known to part at, and around the constants of a form."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence

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


def _is_scale(number: float) -> bool:
    return 0.0 < number < 100.0  # more would fill the memory


def _is_index(number: float) -> bool:
    return -1.0 < number < math.inf  # is cut off; runtimes do not agree on negative ones below opset 11


def _is_count(number: float) -> bool:
    return 1.0 <= number < math.inf and number == int(number)


def _is_step(number: float) -> bool:
    return math.isfinite(number) and number != 0.0


#: Which floats an input takes, by operator and place, where that is not all of them: sizes are made of the others.
_TAKEN: Mapping[tuple[str, int], Callable[[float], bool]] = {
    ("GridSample", 1): math.isfinite,
    ("OneHot", 0): _is_index,
    ("OneHot", 1): _is_count,
    ("Range", 0): math.isfinite,
    ("Range", 1): math.isfinite,
    ("Range", 2): _is_step,
    ("Resize", 1): math.isfinite,
    ("Resize", 2): _is_scale,
    ("RoiAlign", 1): math.isfinite,
    ("Upsample", 1): _is_scale,
}


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
        edges = {
            name: _at(value, [number for number in values if _takes(model.proto.graph, name, number)], place)
            for place, (name, value) in enumerate(drawn.items())
        }
        if any(edges[name] is not value for name, value in drawn.items()):
            yield edges


def _takes(graph: GraphProto, name: str, number: float) -> bool:
    """Whether every reader of an input takes a number."""
    places = [(node.op_type, place) for node in graph.node for place, read in enumerate(node.input) if read == name]
    return all(_TAKEN[place](number) for place in places if place in _TAKEN)


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
