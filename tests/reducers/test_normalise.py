import pytest

from onnxbench.reducers.normalise import normalise

NAMES = ["mid", "/layer1/Conv_output_0", "odd name (x)", "a"]


@pytest.mark.parametrize(
    "one, other",
    [
        ("Node input 'mid' is not an output", "Node input 'a' is not an output"),
        ("shape mismatch: 12 vs 7.5e-3", "shape mismatch: 3 vs 1.0"),
        ("at 0x7f00aa in worker", "at 0x1234 in worker"),
        ("File /usr/lib/python3/site/x.py:12 failed", "File /home/me/venv/lib/y.cc:9 failed"),
        ("Name:'/layer1/Conv_output_0' Status", "Name:'mid' Status"),
        ("Node (mid) Op (Add) fails", "Node (/layer1/Conv_output_0) Op (Add) fails"),
        ("cannot read odd name (x), sorry", "cannot read mid, sorry"),
        ("kernel of mid.", "kernel of a."),
        ("Operation name: ReduceSum_898545", "Operation name: ReduceSum_17"),
        ("for op: Convert y (opset1::Abs mid[0]:f32[3])", "for op: Convert y (opset1::Parameter a[0]:f32[3])"),
    ],
)
def test_what_differs_between_candidates_is_no_difference(one, other):
    assert normalise(one, NAMES) == normalise(other, NAMES)


@pytest.mark.parametrize(
    "one, other",
    [
        ("Op (Add) fails", "Op (Mul) fails"),
        ("INVALID_ARGUMENT : mid", "NOT_IMPLEMENTED : mid"),
        ("mid is not an input", "mid is not an output"),
        ("a tensor", "tensor"),
    ],
)
def test_what_tells_failures_apart_stays(one, other):
    assert normalise(one, NAMES) != normalise(other, NAMES)


def test_a_short_name_does_not_eat_words():
    assert normalise("a format that a node cannot have", ["a"]) == "<name> format that <name> node cannot have"
    assert "format" in normalise("format", ["a", "f"])
