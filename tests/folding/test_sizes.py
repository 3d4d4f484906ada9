"""Integers and sizes, also those that are only partly known."""

import numpy as np
import pytest
from onnx import TensorProto, helper

from .judging import SIZES, assert_same, bare, judged, model_of, ops, random, runs


@pytest.mark.parametrize("chain", ["Cast<to = 6>", "Cast<to = 7>", "Cast<to = 2>", "Cast<to = 9>"])
def test_casts_that_lose_something_stay(chain):
    folded = judged(
        f"g (int64[4] x) => (int64[4] y) {{ a = {chain}(x) y = Cast<to = 7>(a) }}",
        {"x": np.array([2**40 + 3, -5, 2**31, 300])},
    )
    assert "Cast" in ops(folded) or chain == "Cast<to = 7>"


def test_floats_cast_to_integers_and_back_are_rounded():
    folded = judged(
        "g (float[2] x) => (float[2] y) { a = Cast<to = 6>(x) y = Cast<to = 1>(a) }",
        {"x": np.array([1.5, -2.5], np.float32)},
    )
    assert ops(folded) == ["Cast", "Cast"]


def test_sizes_that_overflow_int32_wrap_as_they_do_at_run_time():
    judged(
        """g (float[N, 4] x) => (int64[1] y) <int64[1] one = {1}, int64[1] big = {1073741824}> {
        s = Shape(x) d = Gather(s, one) m = Mul(d, big) i = Cast<to = 6>(m) y = Cast<to = 7>(i) }""",
        {"x": random(2, 4)},
    )


def test_sizes_in_float_lose_what_float_loses():
    text = """g (float[N, 16777217] x) => (int64[1] y) <int64[1] one = {1}, float[1] f = {1}> {
        s = Shape<start = 1, end = 2>(x) d = Cast<to = 1>(s) m = Add(d, f) y = Cast<to = 7>(m) }"""
    assert_same(model_of(text), bare(text), {"x": np.zeros((0, 16777217), np.float32)})


def test_sizes_multiplied_in_float_lose_what_float_loses():
    judged(
        """g (float[N, 4097] x) => (int64[1] y) {
        s = Shape<start = 1, end = 2>(x) d = Cast<to = 1>(s) m = Mul(d, d) y = Cast<to = 7>(m) }""",
        {"x": np.zeros((1, 4097), np.float32)},
    )


def test_unsigned_sizes_wrap():
    judged(
        """g (float[N, 4] x) => (uint8[1] y, int64[1] z) <uint8[1] five = {5}> {
        s = Shape<start = 1>(x) d = Cast<to = 2>(s) y = Sub(d, five) z = Cast<to = 7>(y) }""",
        {"x": random(2, 4)},
    )


def test_zero_times_what_nobody_knows_is_not_zero_in_float():
    judged(
        """g (float[1] x) => (int64[1] y, bool[1] b) {
        z = Constant<value = float[1] {0}>() c = Concat<axis = 0>(x, z) s = Slice(c, first, second) m = Mul(s, z) b = Equal(m, z)
        y = Cast<to = 7>(b) }""".replace("b) {", "b) <int64[1] first = {0}, int64[1] second = {1}> {", 1),
        {"x": np.array([1], np.float32)},
        {"x": np.array([np.inf], np.float32)},
        {"x": np.array([np.nan], np.float32)},
    )


def test_negative_division_truncates():
    judged(
        """g (float[N, 7] x) => (int64[1] y, int64[1] m) <int64[1] minus = {-2}> {
        s = Shape<start = 1>(x) y = Div(s, minus) m = Mod(s, minus) }""",
        {"x": random(2, 7)},
    )


@pytest.mark.parametrize(
    "steps",
    [
        "k = Concat<axis = 0>(n, two, two) y = Reshape(x, k)",
        "k = Concat<axis = 0>(two, n, two) y = Reshape(x, k)",
        "k = Concat<axis = 0>(n, minus) y = Reshape(x, k)",
        "k = Concat<axis = 0>(four, n) y = Reshape(x, k)",
        "m = Mul(n, two) k = Concat<axis = 0>(m, two) y = Reshape(x, k)",
        "m = Mul(n, four) y = Reshape(x, m)",
        "k = Concat<axis = 0>(two, n, four) y = Expand(x, k)",
        "k = Concat<axis = 0>(n, one) y = Expand(x, k)",
        "k = Concat<axis = 0>(n, four) e = Expand(row, k) y = Add(e, x)",
        "k = Concat<axis = 0>(n, four) e = ConstantOfShape(k) y = Add(x, e)",
        "t = Tile(x, tt) y = Slice(t, zero, n)",
        "y = Slice(x, zero, n)",
        "y = Slice(x, zero, four, one)",
        "b = Equal(n, zero) c = Cast<to = 1>(b) y = Add(x, c)",
        "b = Equal(n, one) w = Where(b, one, two) k = Concat<axis = 0>(w, minus) z = Tile(x, tt) y = Reshape(z, k)",
        "q = Div(n, two) r = Mul(q, two) y = Slice(x, zero, r)",
        "q = Sub(n, one) m = Max(q, zero) y = Slice(x, m, n)",
        "s2 = Size(x) u = Unsqueeze(s2, zero) y = Reshape(x, u)",
        "f = Cast<to = 1>(n) h = Mul(f, half) g = Floor(h) i = Cast<to = 7>(g) y = Slice(x, zero, i)",
    ],
)
def test_shape_arithmetic_holds_for_every_size(steps):
    text = f"""g (float[N, 4] x) => (float[P, Q] y)
      <int64[1] zero = {{0}}, int64[1] one = {{1}}, int64[1] two = {{2}}, int64[1] four = {{4}}, int64[1] minus = {{-1}},
       int64[2] tt = {{2, 1}}, float[1, 4] row = {{1, 2, 3, 4}}, float[1] half = {{0.5}}> {{
      s = Shape(x) n = Gather(s, zero) {steps} }}"""
    source = model_of(text)
    source.graph.output[0].type.tensor_type.ClearField("shape")
    runnable = [feeds for feeds in SIZES if runs(source, feeds)]
    assert len(runnable) >= 2
    judged(source, *runnable)


@pytest.mark.parametrize(
    "steps",
    [
        "y = Reshape(x, z1)",
        "y = Reshape<allowzero = 1>(x, za)",
        "k = Concat<axis = 0>(n, z1) y = Reshape(x, k)",
        "k = Concat<axis = 0>(n, z1) y = Reshape<allowzero = 1>(x, k)",
        "k = Concat<axis = 0>(z1, n) y = Reshape(x, k)",
    ],
)
def test_zeros_in_targets_mean_what_they_mean(steps):
    text = f"""g (float[N, M] x) => (float[P, Q] y) <int64[1] z1 = {{0}}, int64[2] za = {{0, 5}}, int64[1] zero = {{0}}> {{
      s = Shape(x) n = Gather(s, zero) {steps} }}"""
    source = model_of(text)
    source.graph.output[0].type.tensor_type.ClearField("shape")
    feeds = [{"x": random(n, m)} for n in (0, 1, 3) for m in (0, 1, 3)]
    judged(source, *(given for given in feeds if runs(source, given)))


def test_dims_without_a_name_may_be_broadcast():
    source = model_of("""g (float[a] x, float[5] w) => (float[5] y, int64[1] s) { y = Add(x, w) s = Shape(x) }""")
    source.graph.input[0].type.tensor_type.shape.dim[0].Clear()
    judged(source, {"x": random(5), "w": random(5)}, {"x": random(1), "w": random(5)})


def test_two_names_that_are_broadcast_may_differ():
    judged(
        "g (float[A] x, float[B] w) => (float[C] y, int64[1] s, int64[1] t) { y = Add(x, w) s = Shape(x) t = Shape(y) }",
        {"x": random(5), "w": random(1)},
        {"x": random(1), "w": random(5)},
        {"x": random(5), "w": random(5)},
    )


def test_a_stale_declaration_is_not_believed():
    proto = model_of("g (float[N, 4] x) => (int64[2] s, float[A, B] y) { r = Neg(x) y = Exp(r) s = Shape(r) }")
    proto.graph.value_info.append(helper.make_tensor_value_info("r", TensorProto.FLOAT, [1, 4]))
    judged(proto, {"x": random(1, 4)}, {"x": random(3, 4)})


def test_static_sizes_are_folded_and_dynamic_ones_are_not_frozen():
    folded = judged("g (float[N, 4] x) => (float[N, 4] y) { s = Shape(x) y = Reshape(x, s) }", *SIZES)
    assert ops(folded) in ([], ["Identity"], ["Reshape"])
    fixed = judged("g (float[3, 4] x) => (int64[2] s) { n = Neg(x) s = Shape(n) }", {"x": random(3, 4)})
    assert ops(fixed) == ["Constant"]


@pytest.mark.parametrize("first", ["zero", "n"])
def test_of_no_elements_a_size_may_be_anything(first):
    folded = judged(
        f"""g (float[N, ?] x, float[K] z) => (float[A, B] y, int64[2] s, int64[2] v)
        <int64[1] zero = {{0}}, int64[1] much = {{1000}}> {{
        n = Shape<start = 0, end = 1>(x) q = Shape(z) k = Mod<fmod = 1>(q, much) t = Concat<axis = 0>({first}, k)
        r = Reshape(x, t) s = Shape(r) y = Neg(r) v = Shape(x) }}""",
        {"x": random(2, 3), "z": random(3)},
        {"x": random(0, 3), "z": random(5)},
    )
    assert "Reshape" in ops(folded)


def test_a_reshape_tells_nothing_of_an_input_without_elements():
    judged(
        """g (float[N, 4] x, bool[4] which) => (float[A, B] y, int64[1] s) <int64[1] three = {3}> {
        e = Compress<axis = 1>(x, which) n = Shape<start = 0, end = 1>(x) t = Concat<axis = 0>(n, three)
        y = Reshape(e, t) s = Shape<start = 1>(e) }""",
        {"x": random(2, 4), "which": np.array([True, False, True, True])},
        {"x": random(0, 4), "which": np.array([True, False, False, True])},
    )
