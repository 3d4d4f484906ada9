"""What ONNX's checker says of a model, asked in a worker: some models kill it."""

from __future__ import annotations

from onnx import GraphProto, ModelProto, TensorProto, helper

from onnxbench import isolate
from onnxbench.core.attributes import subgraphs
from onnxbench.core.model import Model


def fault(model: Model, *, timeout: float | None = 20.0, memory: int | None = None) -> str | None:
    """The checker's first complaint; None if it has none.

    External tensors are declared as graph inputs for it, so that no weights are read; whether their files are right is
    `core.weights`' concern.
    """
    hollow = ModelProto()
    hollow.CopyFrom(model.proto)
    _hollow(hollow.graph, hollow.graph)
    result = isolate.call(run_checker, (hollow.SerializeToString(),), timeout=timeout, memory=memory)
    match result:
        case isolate.Ok():
            return None
        case isolate.Error():
            return result.message
        case isolate.Crash():
            return f"the checker dies with {result.signal}"
        case _:
            return "the checker gives no answer"


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


def _hollow(graph: GraphProto, top: GraphProto) -> None:
    for node in graph.node:
        for _, body in subgraphs(node):
            _hollow(body, top)
    kept: list[TensorProto] = []
    declared = {value.name for value in top.input}
    for tensor in graph.initializer:
        if tensor.data_location != TensorProto.EXTERNAL:
            kept.append(TensorProto.FromString(tensor.SerializeToString()))
        elif tensor.name not in declared:
            top.input.append(helper.make_tensor_value_info(tensor.name, tensor.data_type, list(tensor.dims)))
    if len(kept) != len(graph.initializer):
        del graph.initializer[:]
        graph.initializer.extend(kept)
