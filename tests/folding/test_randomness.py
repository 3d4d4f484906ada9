"""What is drawn at random is never frozen nor merged."""

import numpy as np
import pytest

from .judging import all_ops, bare, judged, ops, random

X = {"x": random(2)}


@pytest.mark.parametrize(
    "drawn",
    [
        "r = RandomNormal<shape = [2]>()",
        "r = RandomUniform<shape = [2], seed = 1.0>()",
        "r = RandomNormalLike(w)",
        "r = RandomUniformLike(w)",
        "r = Bernoulli(p)",
        "t = Constant<value = bool {1}>() half = Constant<value = float {0.5}>() r = Dropout(w, half, t)",
        "i = Multinomial<sample_size = 2>(q) j = Squeeze(i, zero) r = Cast<to = 1>(j)",
    ],
)
def test_what_is_drawn_is_drawn_again_in_each_run(drawn):
    text = f"""g (float[2] x) => (float[2] y)
      <float[2] w = {{1, 2}}, float[2] p = {{0.5, 0.5}}, float[1, 2] q = {{0.5, 0.5}}, int64[1] zero = {{0}}> {{
      {drawn} y = Add(x, r) }}"""
    drawing = {"RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike", "Bernoulli", "Dropout"}
    folded = judged(text)
    assert set(ops(folded)) & (drawing | {"Multinomial"})


def test_two_draws_that_look_alike_stay_two():
    folded = judged(
        """g (float[2] x) => (float[2] y, float[2] z) {
        a = RandomNormal<shape = [2]>() b = RandomNormal<shape = [2]>() y = Add(x, a) z = Add(x, b) }"""
    )
    assert ops(folded).count("RandomNormal") == 2


def test_draws_hidden_in_a_function_stay():
    text = """g (float[2] x) => (float[2] y, float[2] z) <float[2] w = {1, 2}> {
        a = local.noise(w) b = local.noise(w) y = Add(x, a) z = Add(x, b) }
      <domain: "local", opset_import: ["": 21]> noise (a) => (b) { b = local.inner(a) }
      <domain: "local", opset_import: ["": 21]> inner (a) => (b) { n = RandomNormalLike(a) b = Add(a, n) }"""
    folded = judged(
        text.replace("noise (a) => (b) { b = local.inner(a) }", "noise (a) => (b) { b = local.inner(a) }").replace(
            '<domain: "local", opset_import: ["": 21]> noise',
            '<domain: "local", opset_import: ["": 21, "local": 1]> noise',
        )
    )
    assert ops(folded).count("noise") == 2
    assert "RandomNormalLike" in all_ops(folded)


def test_draws_hidden_in_a_branch_stay():
    folded = judged(
        """g (float[2] x, bool c) => (float[2] y) {
        r = If(c) <then_branch = a () => (float[2] t) { t = RandomNormal<shape = [2]>() },
                   else_branch = b () => (float[2] e) { e = Constant<value = float[2] {0, 0}>() }>
        y = Add(x, r) }"""
    )
    assert "RandomNormal" in all_ops(folded)


def test_draws_hidden_in_a_loop_over_constants_stay():
    folded = judged(
        """g (float[2] x) => (float[2] y) <int64 three = {3}, bool on = {1}, float[2] w = {1, 2}> {
        r = Loop(three, on, w) <body = b (int64 i, bool go, float[2] a) => (bool still, float[2] next)
          { still = Identity(go) n = RandomNormalLike(a) next = Add(a, n) }>
        y = Add(x, r) }"""
    )
    assert ops(folded) == ["Loop", "Add"]


def test_dropout_whose_training_is_an_input_stays():
    folded = judged(
        "g (float[2] x, bool t) => (float[2] y) <float half = {0.5}> { y = Dropout(x, half, t) }",
        {**X, "t": np.array(False)},
    )
    assert ops(folded) == ["Dropout"]


def test_dropout_whose_training_may_be_overridden_stays():
    folded = judged(
        "g (float[2] x, bool t = {0}) => (float[2] y) <float half = {0.5}> { d = Dropout(x, half, t) y = Neg(d) }", X
    )
    assert "Dropout" in ops(folded)


def test_dropout_that_trains_nobody_goes():
    folded = judged(
        "g (float[2] x) => (float[2] y) <float half = {0.5}, bool no = {0}> { d = Dropout(x, half, no) y = Neg(d) }", X
    )
    assert ops(folded) == ["Neg"]


def test_dropout_whose_mask_is_read_stays():
    folded = judged("g (float[2] x) => (float[2] y, bool[2] m) { d, m = Dropout(x) y = Neg(d) }", X)
    assert ops(folded) == ["Dropout", "Neg"]


def test_an_old_dropout_of_a_constant_trains_unless_it_says_test():
    text = """<ir_version: 3, opset_import: ["": 6]> g (float[2] x) => (float[2] y) {{
      w = Constant<value = float[2] {{1, 2}}>() d = Dropout{0}(w) y = Add(x, d) }}"""
    assert "Dropout" in ops(bare(text.format("")))
    assert "Dropout" not in ops(bare(text.format("<is_test = 1>")))
