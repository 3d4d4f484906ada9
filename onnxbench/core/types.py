"""Types of values: what a value in memory is in ONNX's terms, and what shape inference says of a model's values."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from onnx import GraphProto, ModelProto, TypeProto, ValueInfoProto, helper

from onnxbench import isolate
from onnxbench.core import native
from onnxbench.core.attributes import subgraphs
from onnxbench.core.counts import is_endless
from onnxbench.core.model import Model
from onnxbench.core.values import Value, element_type


def type_of(value: Value, *, static: bool = True) -> TypeProto | None:
    """The ONNX type of a value in memory; with `static` false only its rank. None if it cannot be told: [] has none."""
    if isinstance(value, np.ndarray):
        code = element_type(value.dtype)
        shape = list(value.shape) if static else [None] * value.ndim
        return helper.make_tensor_type_proto(code, shape) if code is not None else None
    if isinstance(value, list):
        inner = _common([type_of(item, static=False) for item in value])
        return helper.make_sequence_type_proto(inner) if inner is not None else None
    return None


def _common(kinds: list[TypeProto | None]) -> TypeProto | None:
    """The type of the elements of a sequence: without a shape where their ranks differ."""
    known = [kind for kind in kinds if kind is not None]
    if not known or all(kind == known[0] for kind in known):
        return known[0] if known else None
    ranks = {len(kind.tensor_type.shape.dim) for kind in known}
    common = TypeProto()
    common.CopyFrom(known[0])
    if len(ranks) > 1 and common.HasField("tensor_type"):
        common.tensor_type.ClearField("shape")
    return common


def value_info(name: str, kind: TypeProto | None) -> ValueInfoProto:
    """A declaration; without a type it has only its name, which ONNX Runtime takes and the checker does not."""
    info = ValueInfoProto(name=name)
    if kind is not None:
        info.type.CopyFrom(kind)
    return info


def infer(model: Model, *, timeout: float | None = 20.0, memory: int | None = None) -> dict[str, TypeProto]:
    """Types by value name, from the file and from ONNX's shape inference, bodies included.

    Inference runs in a worker: some models hang it, some kill it. Where it gives no answer the declared types are
    returned. A name that bodies use for values of different types is left out, unless the main graph has it.
    """
    if is_endless(model.proto):  # each call would be inferred anew
        return _collect(model.proto.graph)
    serialized = model.proto.SerializeToString()
    result = isolate.call_light(run_inference, (serialized,), timeout=timeout, memory=memory)
    proto = ModelProto.FromString(result.value) if isinstance(result, isolate.Ok) else model.proto
    return _collect(proto.graph)


def infer_outputs(
    model: Model, *, strict: bool = False, timeout: float | None = 20.0, memory: int | None = None
) -> dict[str, TypeProto] | None:
    """What ONNX's inference says of the outputs, soon: in a worker that has nothing else. None if it gives no answer.

    Args:
        model: the model.
        strict: ask as ONNX's full check does, which refuses where a rule is broken.
        timeout: seconds.
        memory: cap of the worker in bytes.
    """
    arguments = (model.proto.SerializeToString(), strict)
    result = isolate.call(native.infer, arguments, timeout=timeout, memory=memory, interpreter=native.BARE)
    if not isinstance(result, isolate.Ok):
        return None
    outputs = ModelProto.FromString(result.value).graph.output
    return {value.name: value.type for value in outputs if value.HasField("type")}


def infer_strictly(
    model: Model, *, timeout: float | None = 20.0, memory: int | None = None
) -> dict[str, TypeProto] | None:
    """What `infer` says of a model; None if an operator's rule refuses its inputs, or inference gives no answer."""
    serialized = model.proto.SerializeToString()
    result = isolate.call_light(run_strict_inference, (serialized,), timeout=timeout, memory=memory)
    return _collect(ModelProto.FromString(result.value).graph) if isinstance(result, isolate.Ok) else None


def strict_refusal(model: Model, *, timeout: float | None = 20.0, memory: int | None = None) -> str | None:
    """What ONNX's inference says of a model that breaks the rule of an operator; None if it goes through."""
    serialized = model.proto.SerializeToString()
    match isolate.call_light(run_strict_inference, (serialized,), timeout=timeout, memory=memory):
        case isolate.Ok():
            return None
        case isolate.Error(message=message):
            return " ".join(message.split())
        case isolate.Crash(signal=signal):
            return f"it dies with {signal}"
        case _:
            return "it gives no answer"


def run_strict_inference(serialized: bytes) -> bytes:
    """ONNX's shape inference that raises where a rule is broken; for a worker."""
    from onnx import shape_inference

    model = ModelProto.FromString(serialized)
    return bytes(shape_inference.infer_shapes(model, strict_mode=True, data_prop=True).SerializeToString())


def run_inference(serialized: bytes) -> bytes:
    """ONNX's shape inference on a serialized model; for a worker."""
    from onnx import shape_inference

    return bytes(shape_inference.infer_shapes(ModelProto.FromString(serialized), data_prop=True).SerializeToString())


def _collect(graph: GraphProto) -> dict[str, TypeProto]:
    inner: dict[str, TypeProto] = {}
    unclear: set[str] = set()
    for body in _bodies(graph):
        for name, kind in _declared(body):
            if name in inner and inner[name] != kind:
                unclear.add(name)
            inner[name] = kind
    found = {name: kind for name, kind in inner.items() if name not in unclear}
    found.update(_declared(graph))
    return found


def _bodies(graph: GraphProto) -> Iterator[GraphProto]:
    for node in graph.node:
        for _, body in subgraphs(node):
            yield body
            yield from _bodies(body)


def _declared(graph: GraphProto) -> Iterator[tuple[str, TypeProto]]:
    for value in (*graph.value_info, *graph.output, *graph.input):
        if value.HasField("type"):
            yield value.name, value.type
    for tensor in graph.initializer:
        yield tensor.name, helper.make_tensor_type_proto(tensor.data_type, list(tensor.dims))
