"""Sizes that the user gives: what they are verified with, and what `--pin` writes into the model."""

import json
import subprocess
import sys

import numpy as np
import onnx
import pytest

from .judging import model_of

FOLDABLE = "g (float[N, 3] x) => (float[N, 3] y) <float[3] w = {1, 2, 3}> { a = Add(w, w) y = Add(x, a) }"
LEAN = "g (float[N, 3] x) => (float[N, 3] y) { y = Neg(x) }"
#: Fits for equal sizes alone.
JOINED = """g (float[1, H] x, float[1, W] z) => (float[2, H] y) <float[1] w = {1}> {
  a = Add(w, w) b = Mul(x, a) y = Concat<axis = 0>(b, z) }"""


@pytest.fixture
def bench(tmp_path):
    """Run `onnxbench fold ...` of a model in a temporary folder."""

    def run(text, *arguments):
        onnx.save(model_of(text), tmp_path / "m.onnx")
        command = [sys.executable, "-m", "onnxbench", "fold", "m.onnx", *arguments]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)

    return run


@pytest.mark.parametrize("text", [FOLDABLE, LEAN])
@pytest.mark.parametrize(
    ("said", "code"),
    [
        (("--dim", "M=3"), "OB303"),
        (("--shape", "z=1x3"), "OB303"),
        (("--range", "z=0:1"), "OB303"),
        (("--shape", "x=2x4"), "OB206"),
        (("--dim", "N=1,2", "--shape", "x=2x3"), "OB206"),
    ],
)
def test_sizes_that_the_model_cannot_have_are_not_taken_for_no_run(bench, text, said, code):
    result = bench(text, "-n", *said)
    assert result.returncode in (2, 3)
    assert code in result.stderr


@pytest.mark.parametrize("said", [("--dim", "N=4"), ("--shape", "x=4x3")])
def test_a_pinned_model_is_verified_too(bench, tmp_path, said):
    result = bench(FOLDABLE, "--pin", "--json", "-o", "o.onnx", *said)
    assert result.returncode == 0
    assert json.loads(result.stdout)["verification"]["state"] == "verified"
    assert onnx.load(tmp_path / "o.onnx").graph.input[0].type.tensor_type.shape.dim[0].dim_value == 4


def test_a_pinned_model_is_verified_with_values_of_a_file(bench, tmp_path):
    np.savez(tmp_path / "f.npz", x=np.ones((4, 3), np.float32))
    result = bench(FOLDABLE, "--pin", "--dim", "N=4", "--inputs", "f.npz", "--json", "-n")
    assert result.returncode == 0
    assert json.loads(result.stdout)["verification"]["state"] == "verified"


def test_sizes_that_contradict_the_nodes_are_not_pinned(bench, tmp_path):
    result = bench(JOINED, "--pin", "--dim", "H=2", "--dim", "W=1", "-o", "o.onnx")
    assert result.returncode == 2
    assert "OB206" in result.stderr
    assert not (tmp_path / "o.onnx").exists()
    assert bench(JOINED, "--pin", "--dim", "H=2", "--dim", "W=2", "-o", "o.onnx").returncode == 0
