"""The reference evaluator as a runtime."""

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from onnx.parser import parse_model

from onnxbench.core.model import Model
from onnxbench.core.weights import slim
from onnxbench.errors import UsageError
from onnxbench.runtimes.find import find

HEADER = '<ir_version: 10, opset_import: ["": 21, "loc": 1]>'
X = np.array([1, -2], np.float32)


def run(text, feeds, fetch=None):
    model = parse_model(HEADER + text) if isinstance(text, str) else text
    return find("reference").run(Model(model), feeds, fetch)


def test_outputs_by_name_and_only_those_wanted():
    text = "g (float[2] x) => (float[2] a, float[2] b) { a = Neg(x) b = Abs(x) }"
    assert {n: v.tolist() for n, v in run(text, {"x": X}).outputs.items()} == {"a": [-1, 2], "b": [1, 2]}
    assert list(run(text, {"x": X}, ["b"]).outputs) == ["b"]


def test_feeds_that_the_model_does_not_want_are_left_out():
    assert run("g (float[2] x) => (float[2] y) { y = Neg(x) }", {"x": X, "z": X}).ok


def test_types_that_numpy_lacks():
    value = np.array([1, -2], ml_dtypes.bfloat16)
    result = run("g (bfloat16[2] x) => (bfloat16[2] y) { y = Identity(x) }", {"x": value})
    assert result.outputs["y"].dtype == ml_dtypes.bfloat16
    assert result.outputs["y"].tolist() == [1, -2]


def test_an_operator_that_it_lacks_is_unsupported():
    result = run("g (float[2] x) => (float[2] y) { y = loc.Nothing(x) }", {"x": X})
    assert result.kind == "unsupported"


def test_an_error_has_its_phase():
    result = run("g (float[N] x) => (float[M] y) <int64[1] s = {7}> { y = Reshape(x, s) }", {"x": X})
    assert (result.kind, result.phase, result.error) == ("error", "run", "ValueError")


def test_weights_that_lie_elsewhere_are_read():
    model = parse_model(HEADER + "g (float[N] x) => (float[N] y) { y = Add(x, w) }")
    weight = np.arange(2000, dtype=np.float32)
    model.graph.initializer.append(numpy_helper.from_array(weight, "w"))
    result = find("reference").run(slim(Model(model)), {"x": weight})
    assert result.outputs["y"].tolist() == (2 * weight).tolist()


def test_it_takes_no_options_and_no_environment():
    for text in ("reference:opt=all", "reference@venv"):
        with pytest.raises(UsageError) as caught:
            find(text)
        assert caught.value.code == "OB205"


def test_the_script_computes_the_same(tmp_path):
    onnx.save(parse_model(HEADER + "g (float[2] x) => (float[2] y) { y = Neg(x) }"), tmp_path / "m.onnx")
    names = {"phase": lambda name: None}
    exec(find("reference").script(), names)
    assert names["run"](str(tmp_path / "m.onnx"), {"x": X})["y"].tolist() == [-1, 2]
    assert onnx.__version__ in names["version"]()
