"""`reduce -r checker` and `-r inference`: models that ONNX itself refuses, or that kill it."""

import json

import onnx
import pytest
from onnx import helper

from .conftest import write

#: A rank that Transpose's permutation does not have, in the middle of a chain.
BAD = """<ir_version: 8, opset_import: ["": 17]>
g (float[2, 3] x) => (float[3, 2] y) {
  [a] v0 = Sin (x) [b] v1 = Cos (v0) [bad] v2 = Transpose <perm = [0, 0]> (v1) [c] v3 = Sin (v2) [d] y = Neg (v3) }"""


@pytest.mark.parametrize("runtime", ["checker", "inference"])
def test_the_node_that_onnx_refuses_is_left_alone(bench, tmp_path, runtime):
    path = write(tmp_path / "bad.onnx", BAD)
    done = bench("reduce", path, "-r", runtime, "--bundle", "out", "--json", "--passes", "")
    said = json.loads(done.stdout)
    assert (done.returncode, said["status"], said["confirmed"]) == (0, "minimal", True)
    assert [node.name for node in onnx.load(tmp_path / "out" / "model.onnx").graph.node] == ["bad"]


def test_an_operator_that_does_not_exist(bench, tmp_path):
    value = helper.make_tensor_value_info
    nodes = [
        helper.make_node(op, [a], [b], name=op)
        for op, a, b in [("Sin", "x", "a"), ("Foo", "a", "b"), ("Neg", "b", "y")]
    ]
    graph = helper.make_graph(nodes, "g", [value("x", 1, [2])], [value("y", 1, [2])])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "m.onnx")
    said = json.loads(bench("reduce", "m.onnx", "-r", "checker", "--bundle", "out", "--json").stdout)
    assert [culprit["name"] for culprit in said["culprits"]] == ["Foo"]


@pytest.mark.parametrize("runtime", ["checker", "inference"])
def test_a_valid_model_does_not_fail(bench, healthy, runtime):
    done = bench("reduce", healthy, "-r", runtime)
    assert (done.returncode, "OB101" in done.stderr) == (1, True)
