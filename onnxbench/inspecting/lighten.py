"""Let go of the weights of a model in memory: what is asked from then on needs their sizes only."""

from __future__ import annotations

from onnx import ModelProto, TensorProto

from onnxbench.core.tensors import tensors

_KEPT = 1024  # bytes: what shape inference may want to read
_PLACE = "weights-let-go"


def lighten(proto: ModelProto) -> None:
    """Take the payload out of large embedded tensors, in place; they look external then.

    What is sent to workers is small after that: a model of gigabytes costs what its graph costs.
    """
    for tensor in tensors(proto):
        if len(tensor.raw_data) > _KEPT:
            tensor.ClearField("raw_data")
            tensor.data_location = TensorProto.EXTERNAL
            tensor.external_data.add(key="location", value=_PLACE)
