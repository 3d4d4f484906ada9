"""If below opset 11: refused where no run can give both branches one shape, and nowhere else."""

import numpy as np
import pytest

from tests.converters.judging import assert_same, convert, drawn, model_of


def branching(one, other, inputs):
    return model_of(
        f"""g (bool c, {inputs}) => (float[] y) {{
          y = If (c) <
            then_branch = then () => (float[{one}] p) {{ p = Relu (a) }},
            else_branch = other () => (float[{other}] q) {{ q = Neg (b) }}>
        }}""".replace("float[] y", f"float[{one if one == other else 'Y'}] y"),
        11,
    )


@pytest.mark.parametrize(
    ("one", "other", "sizes"), [("N", "128", (128, 128)), ("N", "M", (3, 3)), ("200", "N", (200, 200))]
)
def test_shapes_that_may_agree(one, other, sizes):
    source = branching(one, other, f"float[{one}] a, float[{other}] b")
    result, report = convert(source, 10)
    assert report.state != "refused", report.refusals
    feeds = {"a": drawn(sizes[0]), "b": drawn(sizes[1], seed=1)}
    assert_same(source, result, {**feeds, "c": np.array(True)}, {**feeds, "c": np.array(False)})


def test_sizes_that_are_computed_may_agree():
    body = """g (bool c, float[N] a, float[M] b) => (float[Y] y) {
      b2 = Concat <axis = 0> (b, b)
      y = If (c) <
        then_branch = then () => (float[N] p) { p = Relu (a) },
        else_branch = other () => (float[K] q) { q = Neg (b2) }>
    }"""
    source = model_of(body, 11)
    result, report = convert(source, 10)
    assert report.state != "refused", report.refusals
    feeds = {"a": drawn(4), "b": drawn(2, seed=1)}
    assert_same(source, result, {**feeds, "c": np.array(True)}, {**feeds, "c": np.array(False)})


@pytest.mark.parametrize(("one", "other"), [("3", "4"), ("N", "N,1"), ("N,3", "M,4")])
def test_shapes_that_cannot_agree_are_refused(one, other):
    result, report = convert(branching(one, other, f"float[{one}] a, float[{other}] b"), 10)
    assert result is None
    assert "they have to be the same" in report.refusals[0].reason


def test_sizes_that_are_always_one_apart_are_refused():
    body = """g (bool c, float[N] a, float[1] b) => (float[Y] y) {
      b2 = Concat <axis = 0> (a, b)
      y = If (c) <
        then_branch = then () => (float[N] p) { p = Relu (a) },
        else_branch = other () => (float[K] q) { q = Neg (b2) }>
    }"""
    result, report = convert(model_of(body, 11), 10)
    assert result is None
    assert "[N] and [N + 1]" in report.refusals[0].reason
