"""Open what hides nodes: call functions inline, put the taken branch of an `If` in its place."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping

import numpy as np
from onnx import ModelProto, TensorProto, numpy_helper

from onnxbench import isolate
from onnxbench.core.counts import count_inlined
from onnxbench.core.hoist import hoist
from onnxbench.core.model import Model
from onnxbench.core.values import Value
from onnxbench.runtimes.base import Limits

#: Nodes up to which all functions are inlined at once: more than the largest networks have, and what halving still gets through.
_MOST_INLINED = 100_000


def flatten(model: Model, values: Mapping[str, Value], limits: Limits) -> Model | None:
    """The model one level flatter; None if nothing could be opened.

    Args:
        model: the model.
        values: recorded values, for the conditions of `If`.
        limits: of the worker that inlines: functions that call each other can make a huge graph.
    """
    proto = ModelProto()
    proto.CopyFrom(model.proto)
    opened = False
    if proto.functions and count_inlined(proto) <= _MOST_INLINED and (inlined := _inline(proto, limits)) is not None:
        proto, opened = inlined, True
    if hoist(proto.graph, _conditions(proto, values)):
        opened = True
    return Model(proto, model.folder, model.path, model.label) if opened else None


def openings(model: Model, values: Mapping[str, Value], limits: Limits, *, either: bool) -> Iterator[Model]:
    """The model with one thing opened, in every way: a function inlined, a branch in the place of its `If`.

    Args:
        model: the model.
        values: recorded values, for the conditions of `If`.
        limits: of the worker that inlines.
        either: whether to propose the branch that is not taken, too, after the one that is.
    """
    for function in model.proto.functions:
        inlined = _inline(model.proto, limits, (function.domain, function.name))
        if inlined is not None:
            yield dataclasses.replace(model, proto=inlined)
    known = _conditions(model.proto, values)
    asked = [node.input[0] for node in model.proto.graph.node if node.op_type == "If" and node.input]
    for name in dict.fromkeys(asked):
        taken = known.get(name, True)
        for truth in (taken, not taken) if either or name not in known else (taken,):
            proto = ModelProto()
            proto.CopyFrom(model.proto)
            if hoist(proto.graph, {name: truth}):
                yield dataclasses.replace(model, proto=proto)


def _inline(proto: ModelProto, limits: Limits, only: tuple[str, str] | None = None) -> ModelProto | None:
    """The model with all functions inlined, or only one; None if that cannot be done."""
    given = (proto.SerializeToString(), only)
    result = isolate.call_light(run_inliner, given, timeout=limits.timeout, memory=limits.memory)
    if not isinstance(result, isolate.Ok):
        return None
    inlined = ModelProto.FromString(result.value)
    return inlined if len(inlined.functions) < len(proto.functions) else None


def run_inliner(serialized: bytes, only: tuple[str, str] | None) -> bytes:
    """ONNX's function inliner on a serialized model, for all functions or one (domain, name); for a worker."""
    from onnx import inliner

    model = ModelProto.FromString(serialized)
    inlined: ModelProto = (
        inliner.inline_local_functions(model) if only is None else inliner.inline_selected_functions(model, [only])
    )
    return bytes(inlined.SerializeToString())


def _conditions(proto: ModelProto, values: Mapping[str, Value]) -> dict[str, bool]:
    """Truth by name of the values that could be conditions: what was fed and recorded goes before defaults."""
    stored = {t.name: t for t in proto.graph.initializer if t.data_type == TensorProto.BOOL and t.name not in values}
    known: dict[str, Value] = {name: numpy_helper.to_array(tensor) for name, tensor in stored.items()}
    return {
        name: bool(value.reshape(-1)[0])
        for name, value in {**known, **values}.items()
        if isinstance(value, np.ndarray) and value.dtype == np.bool_ and value.size == 1
    }
