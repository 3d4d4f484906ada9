"""Known failures are pointed at, by what the reproducer is, not by its names."""

import pytest
from onnx import parser

from onnxbench.reducers.catalogue import lookup
from onnxbench.reducers.releases import Release, summary

RELU_CLIP = "g (double[N] a) => (double[N] c) <double l = {0}, double h = {6}> { b = Relu (a) c = Clip (b, l, h) }"
APART = "g (double[N] a, double[N] d) => (double[N] b, double[N] c) { b = Relu (a) c = Clip (d) }"


def model(graph):
    return parser.parse_model(f'<ir_version: 8, opset_import: ["": 17]> {graph}')


def issues(graph, runtime="onnxruntime", version="1.32.0", kind="error"):
    return [known.issue for known in lookup(model(graph), runtime, version, kind)]


def test_a_reproducer_like_a_reported_one_is_recognised():
    assert issues(RELU_CLIP) == ["microsoft/onnxruntime#11836"]


@pytest.mark.parametrize(
    "graph, more",
    [
        (RELU_CLIP.replace("double", "float"), {}),
        (RELU_CLIP, {"kind": "crash"}),
        (RELU_CLIP, {"runtime": "reference"}),
        (RELU_CLIP, {"version": "1.1.0"}),
        (APART, {}),
        (RELU_CLIP.replace("c = Clip (b, l, h)", "x = Clip (b, l, h) c = Neg (x)"), {}),
    ],
)
def test_what_is_different_is_not(graph, more):
    assert issues(graph, **more) == []


def test_the_last_release_of_a_failure_has_patches():
    gemm = "g (float[3, 3] x, float[3, 3] b) => (float[3, 3] y) { t = Transpose (x) m = MatMul (t, b) y = Add (m, b) }"
    assert issues(gemm, version="1.27.3", kind="numbers") == ["microsoft/onnxruntime#32228"]
    assert issues(gemm, version="1.28.0", kind="numbers") == []


def test_the_first_change_between_releases_is_said():
    seen = [("1.20.1", "gone"), ("1.22.0", "absent"), ("1.23.2", "same"), ("1.27.0", "gone")]
    assert summary([Release("r", *pair) for pair in seen]) == "works in 1.20.1, fails in 1.23.2"
    assert summary([Release("r", "1", "same"), Release("r", "2", "other")]) == ""
