"""What adapters do where the rank of a value is not known, or a branch tells it."""

import numpy as np
import pytest

from tests.converters.judging import assert_same, convert, drawn, model_of, ops

UNKNOWN = "g (float[2,3,4] x, int64[K] s) => (float[A,B,C] y) {{ a = Reshape (x, s)  y = {op} <axis = {axis}> (a) }}"
BRANCHES = """g (float[2,3] x, bool c) => (float[{n},3] y) {{
  y = If (c) <
    then_branch = then () => (float[{first}] p) {{ p = Relu (x) }},
    else_branch = other () => (float[{second}] q) {{ q = {op} }}>
}}"""


@pytest.mark.parametrize("axis", [-1, 0, 1])
@pytest.mark.parametrize("op", ["Softmax", "LogSoftmax"])
def test_an_axis_needs_no_rank(op, axis):
    source = model_of(UNKNOWN.format(op=op, axis=axis), 13)
    result, report = convert(source, 11)
    assert report.state == ("certified" if axis == 0 else "verified")  # over one element the result is always the same
    extreme = np.float32(np.resize([np.inf, -np.inf, 1e4, -1e4, 0.0, 3.0, -2.5], (2, 3, 4)))
    feeds = [{"x": x, "s": np.array(s)} for x in (drawn(2, 3, 4), extreme) for s in ([2, 3, 4], [4, 1, 6])]
    assert_same(source, result, *feeds)
    assert (ops(result)[1:] == [op]) == (axis == -1)


def test_a_rank_that_is_needed_is_named():
    source = model_of(UNKNOWN.format(op="Hardmax", axis=1), 13)
    result, report = convert(source, 11)
    assert (result, report.refusals[0].reason) == (None, "the rank of a is not known")


@pytest.mark.parametrize("opset", [7, 10])
@pytest.mark.parametrize("declared", ["4,3", "N,3"])
def test_branches_of_two_shapes_stay_above_opset_10(opset, declared):
    text = BRANCHES.format(n="A", first="2,3", second=declared, op="Concat <axis = 0> (x, x)")
    result, report = convert(model_of(text, 13), opset)
    assert result is None
    reason = "its branches give y of shapes [2, 3] and [4, 3], and before opset 11 they have to be the same"
    assert [entry.reason for entry in report.refusals] == [reason]
    assert report.furthest == {"ai.onnx": 11}


@pytest.mark.parametrize("shapes", [("2,3", "2,3"), ("A1,B1", "A2,B2")])
def test_branches_of_one_shape_go_down(shapes):
    source = model_of(BRANCHES.format(n="A", first=shapes[0], second=shapes[1], op="Neg (x)"), 13)
    result, report = convert(source, 7)
    assert report.state == "verified"
    assert_same(source, result, *({"x": drawn(2, 3), "c": np.array(c)} for c in (True, False)))


def test_branches_whose_sizes_never_meet_stay_above_opset_10():
    text = BRANCHES.format(n="A", first="A1,3", second="A2,3", op="Concat <axis = 0> (x, x)").replace(
        "[2,3] x", "[N,3] x"
    )
    result, report = convert(model_of(text, 13), 10)
    assert (result, "shapes [N, 3] and [2*N, 3]" in report.refusals[0].reason) == (None, True)


def test_branches_whose_sizes_only_a_run_tells_go_down():
    text = BRANCHES.format(n="A", first="A1,3", second="A2,3", op="Compress <axis = 0> (x, k)")
    source = model_of(text.replace("bool c)", "bool c, bool[2] k)"), 13)
    result, report = convert(source, 9)
    assert report.state == "verified"
    k = np.array([True, False])
    assert_same(source, result, *({"x": drawn(2, 3), "c": np.array(c), "k": k} for c in (True, False)))


def test_the_rank_of_what_branches_give_is_known():
    branch = "{0} = {1} () => (float[2,3] {0}) {{ {0} = mine.Foo (x) }}"
    text = f"""g (float[2,3] x, bool c) => (float[A,3] y) {{
      z = If (c) < then_branch = {branch.format("p", "t").removeprefix("p = ")},
                   else_branch = {branch.format("q", "e").removeprefix("q = ")} >
      y = Softmax <axis = 0> (z)
    }}"""
    result, _ = convert(model_of(text, 13, more=', "mine": 1'), 10)
    assert ops(result) == ["If", "Transpose", "Softmax", "Transpose"]
