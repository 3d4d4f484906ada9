"""Opsets in `onnxbench reduce`: newer forms in what is handed back, and a way around by another opset."""

import json
import shlex

import onnx

from .conftest import write

SUM = """<ir_version: 8, opset_import: ["": 17]>
g (float[N, 4] x) => (float[N] y) <int64[1] axes = {1}> {
  [a] h = Sin (x) [b] k = ReduceSum <keepdims = 0> (h, axes) [c] y = Tanh (k) }"""
CLIP = """<ir_version: 8, opset_import: ["": 6]>
g (float[N, 4] x) => (float[N, 4] y) { [a] h = Sin (x) [b] y = Clip <max = 0.5> (h) }"""
#: Fails only where the axes are an input.
SUSPECT = "misbehaving:ops=ReduceSum,constant=1"


def test_the_command_that_is_told_gives_a_model_that_works(bench, tmp_path):
    write(tmp_path / "model.onnx", SUM)
    said = json.loads(bench("reduce", "model.onnx", "-r", SUSPECT, "--passes", "", "--json").stdout)
    (way,) = said["workarounds"]
    name, _, command = way["how"].partition(": ")
    assert (name, way["kind"], way["verified"]) == ("another opset", "model", True)
    assert (said["workaround"], [path.name for path in tmp_path.glob("*.onnx")]) == (None, ["model.onnx"])
    assert bench(*shlex.split(command)[1:]).returncode == 0
    assert onnx.load(tmp_path / "fixed.onnx").opset_import[0].version == 12
    assert bench("reduce", "fixed.onnx", "-r", SUSPECT, "--prove").returncode == 1
    assert command in (tmp_path / "model.repro" / "REPORT.md").read_text()


def test_a_reproducer_of_an_old_opset_has_the_newest_form_that_fails(bench, tmp_path):
    write(tmp_path / "model.onnx", CLIP)
    said = json.loads(
        bench("reduce", "model.onnx", "-r", "misbehaving:ops=Clip,do=raise", "--passes", "opset", "--json").stdout
    )
    left = onnx.load(tmp_path / "model.repro" / "model.onnx")
    assert (left.opset_import[0].version, [node.op_type for node in left.graph.node]) == (11, ["Clip"])
    assert (said["status"], said["confirmed"]) == ("minimal", True)
