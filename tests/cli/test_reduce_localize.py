"""`--localize-only`, and the other environments of `--versions`."""

import json
import sys

import pytest

from .conftest import write

#: The noise of a narrow type grows along the chain; only one node adds an error of its own.
DRIFT = f"""<ir_version: 8, opset_import: ["": 17]>
g (float[8, 8] t0) => (float[8, 8] t30) {{
  {" ".join(f"[n{i}] t{i + 1} = {'Softsign' if i == 11 else 'Cos'} (t{i})" for i in range(30))} }}"""
PAIR = """<ir_version: 8, opset_import: ["": 17]>
g (float[N, 4] x) => (float[N, 4] y) { [a] v0 = Sin (x) [b] v1 = Cos (v0) [c] v2 = Tanh (v1) [d] y = Neg (v2) }"""


@pytest.fixture
def drift(tmp_path):
    return write(tmp_path / "drift.onnx", DRIFT)


def test_suspects_come_with_both_errors_and_nothing_is_written(bench, drift, tmp_path):
    done = bench("reduce", drift, "-r", "misbehaving:ops=Softsign", "--localize-only", "--json")
    said = json.loads(done.stdout)
    assert (done.returncode, said["status"]) == (0, "localized")
    (suspect,) = said["suspects"]
    assert [node["name"] for node in suspect["nodes"]] == ["n11"]
    assert suspect["isolated"]["norm_rel"] > 0.001
    assert suspect["cumulative"]["norm_rel"] > 0.001
    assert [path.name for path in tmp_path.iterdir()] == ["drift.onnx"]
    text = bench("reduce", drift, "-r", "misbehaving:ops=Softsign", "--localize-only").stdout
    assert "Softsign n11" in text


def test_a_fusion_is_found_as_two_nodes(bench, tmp_path):
    path = write(tmp_path / "pair.onnx", PAIR)
    said = json.loads(bench("reduce", path, "-r", "misbehaving:fused=Cos+Tanh", "--localize-only", "--json").stdout)
    assert [[node["name"] for node in s["nodes"]] for s in said["suspects"]] == [["b", "c"]]


def test_other_environments_are_asked_too(bench, drift):
    """The interpreter that runs the tests stands for another environment."""
    text = '<ir_version: 8, opset_import: ["": 17]> g (double[3] x) => (double[3] y) <double l = {0}, double h = {6}> {'
    path = write(drift.with_name("clip.onnx"), f"{text} r = Relu (x) y = Clip (r, l, h) }}")
    said = json.loads(bench("reduce", path, "--versions", sys.executable, "--json").stdout)
    assert [release["verdict"] for release in said["releases"]] == ["same"]
    assert said["known"][0]["issue"] == "microsoft/onnxruntime#11836"
    absent = bench("reduce", path, "--versions", "/no/such/venv")
    assert (absent.returncode, "OB401" in absent.stderr) == (4, True)


def test_only_wrong_numbers_are_told_node_by_node(bench, drift):
    suspect = "misbehaving:ops=Softsign,do=raise"
    done = bench("reduce", drift, "-r", suspect, "--localize-only")
    assert "only wrong numbers" in done.stdout
    assert "no node, and" not in done.stdout
    said = json.loads(bench("reduce", drift, "-r", suspect, "--localize-only", "--json").stdout)
    assert (said["suspects"], any("only wrong numbers" in note for note in said["notes"])) == ([], True)
