"""What ONNX's checker says of a model, asked in a worker: some models kill it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from onnx import ModelProto, TensorProto

from onnxbench import isolate
from onnxbench.core import native
from onnxbench.core.model import Model
from onnxbench.core.tensors import is_external, tensors

#: What `fault` says where time or memory ran out: nothing is known of the model then.
NO_ANSWER = "the checker gives no answer"


def fault(model: Model, *, timeout: float | None = 20.0, memory: int | None = None) -> str | None:
    """The checker's first complaint; None if it has none.

    It gets external tensors as empty ones, so that no weights are read; whether their files are right is the concern of
    `core.weights`.
    """
    hollow = ModelProto()
    hollow.CopyFrom(model.proto)
    _hollow(hollow)
    result = isolate.call_light(run_checker, (hollow.SerializeToString(),), timeout=timeout, memory=memory)
    return _complaint(result)


def _complaint(result: isolate.Result) -> str | None:
    match result:
        case isolate.Ok():
            return None
        case isolate.Error():
            return result.message
        case isolate.Crash():
            return f"the checker dies with {result.signal}"
        case _:
            return NO_ANSWER


def full_fault(
    model: Model, *, typed: bool = False, timeout: float | None = 20.0, memory: int | None = None
) -> str | None:
    """The first complaint of the checker, or of strict type inference after it (`full_check`); None if there is none.

    Neither gets weights that lie in other files, but for small ones, which may be shapes.

    Args:
        model: the model.
        typed: whether strict inference has passed it already.
        timeout: seconds for each.
        memory: cap of the worker in bytes.

    Raises:
        ModelError: OB304 if such a small one is not to be had.
    """
    light = lightened(model)
    if light is model:
        return _complaint(_bare(native.check, model.proto, not typed, timeout, memory))
    hollow = ModelProto()
    hollow.CopyFrom(model.proto)
    _hollow(hollow)
    complaint = _complaint(_bare(native.check, hollow, False, timeout, memory))
    if complaint is not None or typed:
        return complaint
    return _complaint(_bare(native.infer, light.proto, True, timeout, memory))


def lightened(model: Model) -> Model:
    """The model for inference: a copy without its weights if some lie in other files, else itself.

    Raises:
        ModelError: OB304 if a small one, which may be a shape, is not to be had.
    """
    if not any(is_external(tensor) for tensor in tensors(model.proto)):
        return model
    from onnxbench.core.shape_rules.light import lighten

    return Model(lighten(model), model.folder, model.path, model.label)


def _bare(
    function: Callable[..., Any], proto: ModelProto, flag: bool, timeout: float | None, memory: int | None
) -> isolate.Result:
    arguments = (proto.SerializeToString(), flag)
    return isolate.call(function, arguments, timeout=timeout, memory=memory, interpreter=native.BARE)


def declared(model: Model) -> Model:
    """A copy whose inputs and outputs all declare a type and a shape, unknown ones as scalars.

    The checker asks for them before it looks at the nodes; a value of unknown rank has none to declare.
    """
    proto = ModelProto()
    proto.CopyFrom(model.proto)
    for value in (*proto.graph.input, *proto.graph.output):
        if value.type.WhichOneof("value") is None:
            value.type.tensor_type.elem_type = TensorProto.FLOAT
        if value.type.HasField("tensor_type") and not value.type.tensor_type.HasField("shape"):
            value.type.tensor_type.shape.SetInParent()
    return Model(proto, model.folder, model.path, model.label)


def run_checker(serialized: bytes) -> None:
    """ONNX's checker on a serialized model; for a worker."""
    from onnx import checker

    checker.check_model(serialized)


def _hollow(model: ModelProto) -> None:
    for tensor in tensors(model):
        if is_external(tensor):
            del tensor.external_data[:]
            tensor.ClearField("data_location")
            tensor.dims[:] = [0]
