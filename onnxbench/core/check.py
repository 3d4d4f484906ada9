"""What ONNX's checker says of a model, asked in a worker: some models kill it."""

from __future__ import annotations

from onnx import ModelProto, TensorProto

from onnxbench import isolate
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
    match result:
        case isolate.Ok():
            return None
        case isolate.Error():
            return result.message
        case isolate.Crash():
            return f"the checker dies with {result.signal}"
        case _:
            return NO_ANSWER


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
