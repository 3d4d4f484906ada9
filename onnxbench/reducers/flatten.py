"""Open what hides nodes: call functions inline, put the taken branch of an `If` in its place."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from onnx import ModelProto, TensorProto, numpy_helper

from onnxbench import isolate
from onnxbench.core.hoist import hoist
from onnxbench.core.model import Model
from onnxbench.core.values import Value
from onnxbench.runtimes.base import Limits


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
    if proto.functions and (inlined := _inline(proto, limits)) is not None:
        proto, opened = inlined, True
    if hoist(proto.graph, _conditions(proto, values)):
        opened = True
    return Model(proto, model.folder, model.path, model.label) if opened else None


def _inline(proto: ModelProto, limits: Limits) -> ModelProto | None:
    result = isolate.call_light(run_inliner, (proto.SerializeToString(),), timeout=limits.timeout, memory=limits.memory)
    if not isinstance(result, isolate.Ok):
        return None
    inlined = ModelProto.FromString(result.value)
    return inlined if len(inlined.functions) < len(proto.functions) else None


def run_inliner(serialized: bytes) -> bytes:
    """ONNX's function inliner on a serialized model; for a worker."""
    from onnx import inliner

    inlined: ModelProto = inliner.inline_local_functions(ModelProto.FromString(serialized))
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
