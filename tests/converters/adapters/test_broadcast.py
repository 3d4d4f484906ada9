"""Operators that broadcast more since opset 7 or 8 than before."""

import pytest

from tests.converters.judging import assert_same, convert, drawn, model_of, ops

THREE = {"a": drawn(2, 3), "b": drawn(3, seed=1), "c": drawn(2, 1, seed=2)}


@pytest.mark.parametrize("op", ["Sum", "Mean"])
@pytest.mark.parametrize(("sizes", "to"), [(("2,3", "2,1"), 6), (("N,3", "N,1"), 7)])
def test_sums_that_broadcast_become_additions(op, sizes, to):
    wide, narrow = sizes
    source = model_of(
        f"g (float[{wide}] a, float[3] b, float[{narrow}] c) => (float[{wide}] y) {{ y = {op} (a, b, c) }}", 13
    )
    result, report = convert(source, to, verify=to > 6)  # ONNX Runtime has no Add-6 to verify with
    assert report.state in ("verified", "unverified")
    assert op not in ops(result)
    if to > 6:
        assert_same(source, result, THREE)


@pytest.mark.parametrize("op", ["Sum", "Mean", "Max", "Min"])
def test_inputs_of_one_shape_stay(op):
    source = model_of(f"g (float[N,3] a, float[N,3] b) => (float[N,3] y) {{ y = {op} (a, b) }}", 13)
    result, _ = convert(source, 6)
    assert ops(result) == [op]
    assert_same(source, result, {"a": drawn(2, 3), "b": drawn(2, 3, seed=1)})


def test_a_maximum_that_broadcasts_is_refused():
    source = model_of("g (float[2,3] a, float[3] b) => (float[2,3] y) { y = Max (a, b) }", 13)
    result, report = convert(source, 7)
    assert result is None
    assert "one shape" in report.refusals[0].reason


@pytest.mark.parametrize(("c", "inputs"), [("4", 3), ("2,4", 3), ("1,4", 3), ("1", 3), ("2,1", None), ("?", None)])
def test_only_what_stands_at_the_end_is_a_c_of_gemm_6(c, inputs):
    text = f"g (float[2,3] a, float[3,4] b, float[{c}] c) => (float[2,4] y) {{ y = Gemm (a, b, c) }}"
    source = model_of(text.replace("float[?]", "float[M,K]"), 13)
    result, report = convert(source, 6, verify=False)
    assert (result is None) == (inputs is None)
    assert result is None or (len(result.graph.node[-1].input), report.state) == (inputs, "unverified")
