"""A function that only training calls is called."""

from onnx import parser

from onnxbench.folding.sweep import drop_functions

MODEL = """<ir_version: 8, opset_import: ["": 17, "c": 1]>
g (float[2] x) => (float[2] y) { y = Relu (x) }
<domain: "c", opset_import: ["": 17]> f (a) => (b) { b = Neg (a) }"""


def test_a_function_that_training_still_calls_stays():
    model = parser.parse_model(MODEL)
    algorithm = parser.parse_graph("a (float[2] i) => (float[2] o) { o = c.f (i) }")
    model.training_info.add().algorithm.CopyFrom(algorithm)
    assert drop_functions(model, {("c", "f", "")}) == []
    assert [function.name for function in model.functions] == ["f"]
    del model.training_info[:]
    assert [removal.name for removal in drop_functions(model, {("c", "f", "")})] == ["f"]
