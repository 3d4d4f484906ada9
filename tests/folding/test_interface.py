"""Inputs, outputs and overridable initializers stay what they are."""

import numpy as np
import pytest

from onnxbench import ModelError, extract

from .judging import fold, judged, model_of, ops, outputs, random

X = {"x": random(2)}


def test_overridable_initializers_are_not_baked():
    text = """g (float[2] x, float[2] w = {1, 2}) => (float[2] y) <float[2] c = {3, 4}> {
        a = Mul(w, c) b = Add(a, a) y = Add(x, b) }"""
    folded = judged(text, X, {**X, "w": random(2, seed=3)})
    assert ops(folded) == ["Mul", "Add", "Add"]
    frozen = judged(text, X, freeze_initializers=True)
    assert ops(frozen) == ["Add"]
    assert [value.name for value in frozen.graph.input] == ["x"]


def test_sizes_that_may_be_overridden_are_not_baked():
    text = """g (float[N, 4] x, int64[2] s = {-1, 2}) => (float[A, B] y) { y = Reshape(x, s) }"""
    judged(
        text,
        {"x": random(2, 4)},
        {"x": random(2, 4), "s": np.array([4, 2])},
        {"x": random(2, 4), "s": np.array([1, 8])},
    )


def test_a_condition_that_may_be_overridden_keeps_both_branches():
    text = """g (float[2] x, bool c = {1}) => (float[2] y) {
        y = If(c) <then_branch = a () => (float[2] t) { t = Neg(x) }, else_branch = b () => (float[2] e) { e = Abs(x) }> }"""
    assert ops(judged(text, X, {**X, "c": np.array(False)})) == ["If"]


def test_identity_from_an_input_to_an_output_stays():
    assert ops(judged("g (float[N] x) => (float[N] y) { y = Identity(x) }", X)) == ["Identity"]


def test_identity_of_an_initializer_to_an_output_gives_it():
    folded = judged(
        "g (float[2] x) => (float[2] y, float[2] z) <float[2] w = {1, 2}> { y = Identity(w) z = Add(x, w) }", X
    )
    assert outputs(folded) == ["y", "z"]


def test_identity_of_an_overridable_initializer_to_an_output_stays():
    folded = judged("g (float[2] w = {1, 2}) => (float[2] y) { y = Identity(w) }", {}, {"w": random(2)})
    assert ops(folded) == ["Identity"]


def test_several_identities_to_outputs_keep_all_names():
    folded = judged(
        "g (float[N] x) => (float[N] y, float[N] z, float[N] a) { a = Neg(x) y = Identity(a) z = Identity(a) }", X
    )
    assert outputs(folded) == ["y", "z", "a"]


def test_the_producer_takes_the_name_of_the_output():
    folded = judged("g (float[N] x) => (float[N] y) { a = Neg(x) b = Identity(a) y = Identity(b) }", X)
    assert ops(folded) == ["Neg"]


def test_duplicates_that_are_both_outputs_keep_both_names():
    folded = judged("g (float[N] x) => (float[N] y, float[N] z) { y = Neg(x) z = Neg(x) }", X)
    assert outputs(folded) == ["y", "z"]


def test_an_output_that_is_constant_is_made_by_a_node():
    folded = judged("g (float[2] x) => (float[2] y, float[2] z) <float[2] w = {1, 2}> { z = Add(w, w) y = Neg(x) }", X)
    assert sorted(ops(folded)) == ["Constant", "Neg"]


def test_an_unused_input_and_an_input_that_is_an_output_stay():
    folded = judged(
        "g (float[2] x, float[2] unused) => (float[2] y) { t = Neg(unused) y = Neg(x) }", {**X, "unused": random(2)}
    )
    assert [value.name for value in folded.graph.input] == ["x", "unused"]
    assert ops(folded) == ["Neg"]


def test_a_value_that_two_nodes_make_is_refused():
    source = "g (float[2] x) => (float[2] y) { a = Neg(x) a = Abs(x) i = Identity(a) y = Add(i, i) }"
    with pytest.raises(ModelError, match="'a' is made by Neg that makes 'a' and by Abs that makes 'a'") as caught:
        fold(source)
    assert caught.value.code == "OB305"
    with pytest.raises(ModelError, match="'a' is made by"):
        extract(model_of(source), to=["y"])
