"""What a value in memory is in ONNX's terms, and what inference says of a model."""

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto
from onnx.parser import parse_model

from onnxbench.core.model import Model
from onnxbench.core.types import infer, infer_strictly, type_of, value_info

HEADER = '<ir_version: 10, opset_import: ["": 21, "loc": 1]>'


def shape_of(kind):
    tensor = kind.tensor_type
    return [d.dim_value if d.HasField("dim_value") else d.dim_param or None for d in tensor.shape.dim]


@pytest.mark.parametrize(
    "dtype, code",
    [
        (np.float32, TensorProto.FLOAT),
        (ml_dtypes.bfloat16, TensorProto.BFLOAT16),
        (ml_dtypes.float8_e5m2, TensorProto.FLOAT8E5M2),
        (ml_dtypes.int4, TensorProto.INT4),
        (np.bool_, TensorProto.BOOL),
        (object, TensorProto.STRING),
        ("U3", TensorProto.STRING),
    ],
)
def test_a_tensor_has_an_element_type_and_a_shape(dtype, code):
    kind = type_of(np.zeros((2, 0, 3), dtype))
    assert kind.tensor_type.elem_type == code
    assert shape_of(kind) == [2, 0, 3]
    assert shape_of(type_of(np.zeros((2, 0), dtype), static=False)) == [None, None]
    assert shape_of(type_of(np.zeros((), dtype))) == []
    assert type_of(np.zeros((), dtype)).tensor_type.HasField("shape")


def test_a_sequence_has_the_type_of_its_elements():
    inner = type_of([np.zeros((2, 3), np.int8), np.zeros((1, 1), np.int8)]).sequence_type.elem_type
    assert inner.tensor_type.elem_type == TensorProto.INT8
    assert shape_of(inner) == [None, None]


def test_elements_of_different_ranks_have_no_shape():
    inner = type_of([np.zeros(2, np.int8), np.zeros((1, 1), np.int8)]).sequence_type.elem_type
    assert inner.tensor_type.elem_type == TensorProto.INT8
    assert not inner.tensor_type.HasField("shape")


def test_nested_sequences_have_a_type_if_any_element_tells_it():
    kind = type_of([[], [np.zeros(2, np.float32)]])
    assert kind.sequence_type.elem_type.sequence_type.elem_type.tensor_type.elem_type == TensorProto.FLOAT


@pytest.mark.parametrize("value", [[], None, np.zeros(1, "M8[s]")])
def test_what_cannot_be_told_has_no_type(value):
    assert type_of(value) is None
    assert not value_info("x", type_of(value)).HasField("type")


def test_inference_names_values_of_bodies_too():
    model = parse_model(
        HEADER
        + """
    g (float[N, 3] x, bool c) => (float[N, 3] y) <float[3] w = {1, 2, 3}> {
        a = Add(x, w)
        y = If(c) <then_branch = t () => (float[N, 3] p) { inner = Cast<to = 7>(a) p = Cast<to = 1>(inner) },
                   else_branch = e () => (float[N, 3] q) { q = Neg(a) }>
    }"""
    )
    types = infer(Model(model))
    assert shape_of(types["a"]) == ["N", 3]
    assert types["inner"].tensor_type.elem_type == TensorProto.INT64
    assert shape_of(types["w"]) == [3]


def test_a_name_with_two_types_in_two_bodies_is_left_out():
    model = parse_model(
        HEADER
        + """
    g (float[2] x, bool c) => (float[2] y) {
        y = If(c) <then_branch = t () => (float[2] p) { v = Cast<to = 7>(x) p = Cast<to = 1>(v) },
                   else_branch = e () => (float[2] p) { v = Cast<to = 10>(x) p = Cast<to = 1>(v) }>
    }"""
    )
    types = infer(Model(model))
    assert "v" not in types
    assert types["p"].tensor_type.elem_type == TensorProto.FLOAT


def test_where_inference_fails_the_declared_types_stay():
    model = parse_model(HEADER + "g (float[2] x, float[3] z) => (float[2] y) { a = Nonsense(x) y = Concat(a, z) }")
    assert set(infer(Model(model))) == {"x", "z", "y"}


def test_inference_that_is_stopped_leaves_the_declared_types():
    steps = " ".join(f"v{i + 1} = Neg(v{i})" for i in range(20_000))
    model = parse_model(HEADER + f"g (float[2] v0) => (float[2] v20000) {{ {steps} }}")
    assert set(infer(Model(model), timeout=0.0)) == {"v0", "v20000"}


def test_strict_inference_refuses_what_a_rule_refuses():
    text = "agraph (float[2, 3] x, float[{}, 4] w) => (float[2, 4] y) {{ y = MatMul(x, w) }}"
    right, wrong = (Model(parse_model(f"{HEADER} {text.format(size)}")) for size in (3, 5))
    found = infer_strictly(right)
    assert found is not None
    assert shape_of(found["y"]) == [2, 4]
    assert infer_strictly(wrong) is None
