"""Loops that run exactly once are opened; others are left alone."""

import numpy as np
import pytest

from .judging import all_ops, fold, judged, ops

X = {"x": np.asarray([0.5, -2.0], np.float32)}

LOOP = """g (float[2] x) => (float[2] y, float[M, 2] z)
    <int64 n = {TRIPS}, float[2] c = {1, 2}> {
    BEFORE y, z = Loop(n, ON, x) <body = b (int64 i, bool go, float[2] a)
        => (bool still, float[2] next, float[2] s) {
        k = Cast<to = 1>(i) t = Add(a, k) next = Add(t, c) s = Mul(next, x) still = Identity(go) }> }"""


def looped(trips=1, on="", before=""):
    return LOOP.replace("TRIPS", str(trips)).replace("ON", on).replace("BEFORE", before)


@pytest.mark.parametrize("on", ["", "on"])
def test_a_loop_of_one_round_is_opened(on):
    source = looped(on=on, before="on = Constant<value = bool {1}>()" if on else "")
    folded = judged(source, X)
    assert "Loop" not in all_ops(folded)
    assert "If" not in all_ops(folded)
    assert "loops" in fold(source)[1].by_rule()


@pytest.mark.parametrize("trips", [0, 2])
def test_a_loop_of_other_counts_stays(trips):
    folded = judged(looped(trips=trips), X)
    assert "Loop" in ops(folded)


def test_a_condition_that_only_a_run_tells_keeps_the_loop():
    before = "m = ReduceMax<keepdims = 0>(x) zero = Constant<value = float {0}>() on = Greater(m, zero)"
    folded = judged(looped(on="on", before=before), X, {"x": -X["x"] - 9})
    assert "Loop" in ops(folded)


def test_a_value_that_is_returned_twice_or_handed_on_as_it_is():
    folded = judged(
        """g (float[2] x) => (float[2] y, float[2] w, float[M, 2] z) <int64 n = {1}> {
        y, w, z = Loop(n, , x, x) <body = b (int64 i, bool go, float[2] a, float[2] d)
            => (bool go2, float[2] e, float[2] f, float[2] h) {
            go2 = Identity(go) e = Neg(a) f = Identity(e) h = Identity(d) }> }""",
        X,
    )
    assert "Loop" not in all_ops(folded)


@pytest.mark.parametrize("trips", [1, 2])
@pytest.mark.parametrize(
    ("outer", "inner", "stacked"), [("", "", "T"), ("[1]", "", "T"), ("", "[1]", "T, 1"), ("[1]", "[1]", "T, 1")]
)
def test_round_and_condition_have_the_shape_that_the_body_declares(trips, outer, inner, stacked):
    folded = judged(
        f"""g (float[2] x) => (float[2] y, int64[{stacked}] k, bool[T] q) <int64{outer} n = {{{trips}}}, bool{inner} on = {{1}}> {{
          y, k, q = Loop(n, on, x) <body = b (int64{inner} i, bool{inner} c, float[2] s) =>
            (bool{inner} d, float[2] r, int64{inner} j, bool p) {{
            d = Identity(c) r = Neg(s) j = Identity(i) p = Squeeze(c) }}> }}""",
        X,
    )
    assert ("Loop" in ops(folded)) == (trips > 1)
