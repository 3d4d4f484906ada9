"""The checker's complaint, without weights and without danger."""

import numpy as np
import pytest
from onnx import TensorProto, numpy_helper
from onnx.parser import parse_model

from onnxbench.core.check import fault
from onnxbench.core.counts import count_nodes
from onnxbench.core.model import Model
from onnxbench.core.weights import slim

HEADER = '<ir_version: 10, opset_import: ["": 21, "loc": 1]>'
IF = """
g (float[2] x, bool c) => (float[2] y) {
    y = If(c) <then_branch = t () => (float[2] p) <float[2] w = {1, 2}> { p = Add(x, w) },
               else_branch = e () => (float[2] q) <float[2] w = {3, 4}> { q = Mul(x, w) }>
}"""


def test_a_valid_model_has_no_fault():
    assert fault(Model(parse_model(HEADER + IF))) is None


@pytest.mark.parametrize(
    "text, complaint",
    [
        ("g (float[2] x) => (float[2] y) { y = Nonsense(x) }", "Nonsense"),
        ("g (float[2] x) => (float[2] y) { y = Add(x, z) }", "z"),
        ("g (float[2] x) => (float[2] y) { y = Neg(x) y = Abs(x) }", "SSA"),
    ],
)
def test_a_fault_is_told_in_the_checker_s_words(text, complaint):
    assert complaint in fault(Model(parse_model(HEADER + text)))


@pytest.mark.parametrize("ir", [3, 10])
def test_weights_that_lie_elsewhere_are_not_looked_for(ir):
    model = parse_model(
        f'<ir_version: {ir}, opset_import: ["": 8]>'
        "g (float[2] x, float[2] w) => (float[2] y) <float[2] w = {1, 2}> { y = Add(x, w) }"
    )
    tensor = model.graph.initializer[0]
    tensor.ClearField("float_data")
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="nowhere.bin")
    before = model.SerializeToString()
    assert fault(Model(model)) is None
    assert model.SerializeToString() == before


def test_slim_models_with_heavy_constants_and_bodies_have_no_fault():
    model = parse_model(HEADER + IF.replace("p = Add(x, w)", "k = Constant<value = float[1] {1}>() p = Add(x, k)"))
    then, other = (a.g for a in model.graph.node[0].attribute)
    heavy = numpy_helper.from_array(np.zeros((2000, 1), np.float32), "k")
    then.node[0].attribute[0].t.CopyFrom(heavy)
    other.initializer[0].CopyFrom(heavy)
    other.initializer[0].name = "w"
    assert fault(slim(Model(model))) is None


def test_a_checker_that_is_stopped_gives_no_answer():
    steps = " ".join(f"v{i + 1} = Neg(v{i})" for i in range(20_000))
    model = parse_model(HEADER + f"g (float[2] v0) => (float[2] v20000) {{ {steps} }}")
    assert fault(Model(model), timeout=0.0) == "the checker gives no answer"


def test_nodes_are_counted_at_the_top_and_in_all():
    text = IF.replace("q = Mul(x, w)", "r = loc.F(x) q = Mul(r, w)")
    model = parse_model(
        HEADER + text + '<domain: "loc", opset_import: ["": 21]> F (a) => (b) { c = Neg(a) b = Neg(c) }'
    )
    assert count_nodes(model) == (1, 6)
