"""Arithmetic that changes nothing goes, and what only looks like it stays."""

import numpy as np
import pytest

from .judging import judged, ops

X = np.asarray([[-0.0, 1.5, -np.inf], [np.nan, 3e38, -1e-42]], np.float32)


@pytest.mark.parametrize("text", ["Mul(a, k)", "Mul(k, a)", "Div(a, k)", "Pow(a, k)", "Sub(a, z)"])
def test_the_neutral_operand(text):
    stored = "float[3] k = {1, 1, 1}, float z = {0}"
    source = f"g (float[N, 3] x) => (float[N, 3] y) <{stored}> {{ a = Neg(x) b = {text} y = Abs(b) }}"
    assert ops(judged(source, {"x": X})) == ["Neg", "Abs"]


@pytest.mark.parametrize(
    "text",
    [
        "Add(a, z)",  # -0.0 + 0.0 is 0.0
        "Sub(a, m)",  # and so is -0.0 - -0.0
        "Sub(z, a)",
        "Div(k, a)",
        "Pow(k, a)",
        "Mul(a, w)",
    ],
)
def test_what_is_not_neutral(text):
    stored = "float[1, 1, 1] w = {1}, float k = {1}, float z = {0}, float m = {-0.0}, int64[1] i = {0}"
    nodes = f"a = Neg(x) b = {text} c = Abs(b) y = Unsqueeze(c, i)"
    source = f"g (float[N, 3] x) => (float[M, N, 3] y) <{stored}> {{ {nodes} }}"
    if "w" in text:  # it makes the result larger
        source = source.replace("y = Unsqueeze(c, i)", "y = Neg(c)")
    assert len(ops(judged(source, {"x": X}))) == 4


def test_integers_may_be_added_to_nothing():
    source = "g (int64[N] x) => (int64[N] y) <int64 z = {0}> { a = Neg(x) b = Add(z, a) y = Abs(b) }"
    assert ops(judged(source, {"x": np.arange(3)})) == ["Neg", "Abs"]


@pytest.mark.parametrize("last", ["Identity(b)", "Cast<to = 1>(b)"])
def test_what_has_just_taken_the_name_of_an_output(last):
    folded = judged(
        f"g (float[2] x) => (float[2] y) <float one = {{1}}> {{ a = Neg(x) b = Mul(a, one) y = {last} }}",
        {"x": X[0, :2]},
    )
    assert ops(folded) == ["Neg"]
