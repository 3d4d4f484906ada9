"""Let go of the weights of a model in memory: what is asked from then on needs their sizes only."""

from __future__ import annotations

from onnx import ModelProto, TensorProto

from onnxbench.core.tensors import tensors

_KEPT = 1024  # bytes: what shape inference may want to read
_PLACE = "weights-let-go"


def lighten(proto: ModelProto) -> ModelProto:
    """A copy without the payload of large tensors, which look external then; the model given is emptied of it too."""
    for tensor in tensors(proto):
        if len(tensor.raw_data) > _KEPT:
            tensor.ClearField("raw_data")
            tensor.data_location = TensorProto.EXTERNAL
            tensor.external_data.add(key="location", value=_PLACE)
    light = ModelProto()  # a message keeps the memory of the fields it once had; a copy does not
    light.CopyFrom(proto)
    return light
