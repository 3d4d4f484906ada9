"""Small models that several tests build."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto


@pytest.fixture
def external():
    """Make a tensor that refers to a file; entries that are None are left out."""

    def make(name, location, offset=None, length=None, dims=(2,), data_type=TensorProto.FLOAT):
        tensor = TensorProto(name=name, data_type=data_type, dims=dims, data_location=TensorProto.EXTERNAL)
        for key, value in (("location", location), ("offset", offset), ("length", length)):
            if value is not None:
                tensor.external_data.add(key=key, value=str(value))
        return tensor

    return make


@pytest.fixture
def adding():
    """Make a model that adds each of the tensors to its input."""

    def make(*tensors):
        names = ["x", *(tensor.name for tensor in tensors)]
        steps = " ".join(f"s{i + 1} = Add({'x' if i == 0 else f's{i}'}, {n})" for i, n in enumerate(names[1:]))
        header = '<ir_version: 10, opset_import: ["": 21]>'
        proto = onnx.parser.parse_model(f"{header} g (float[N] x) => (float[N] s{len(tensors)}) {{ {steps} }}")
        proto.graph.initializer.extend(tensors)
        return proto

    return make


@pytest.fixture
def floats():
    """Numbers that differ from each other, so that a wrong offset shows."""
    return lambda count, start=0: np.arange(start, start + count, dtype=np.float32)
