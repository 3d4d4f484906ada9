"""Operators that do nothing, and some that only look so."""

import pytest

from .judging import SIZES, judged, model_of, ops, runs


@pytest.mark.parametrize(
    ("node", "goes"),
    [
        ("Cast<to = 1>(x)", True),
        ("Cast<to = 10>(x)", False),
        ("Transpose<perm = [0, 1]>(x)", True),
        ("Transpose<perm = [1, 0]>(x)", False),
        ("Transpose(x)", False),
        ("Reshape(x, keep)", True),
        ("Reshape(x, flat)", False),
        ("Pad(x, nothing)", True),
        ("Pad(x, some)", False),
        ("Slice(x, zero2, far)", True),
        ("Slice(x, zero, far1, zero)", True),
        ("Slice(x, last, far1, zero)", False),
        ("Slice(x, last, back, one, minus)", False),
        ("Slice(x, zero, three, one)", False),
        ("Slice(x, zero, four, one)", True),
        ("Slice(x, zero, ten, one)", True),
        ("Expand(x, ones)", True),
        ("Tile(x, ones)", True),
        ("Concat<axis = 0>(x)", True),
        ("Dropout(x)", True),
        ("Squeeze(x)", False),
        ("Flatten(x)", True),
        ("Sum(x)", True),
    ],
)
def test_operators_that_do_nothing_go(node, goes):
    text = f"""g (float[N, 4] x) => (float[P, Q] y)
      <int64[2] keep = {{0, -1}}, int64[1] flat = {{-1}}, int64[4] nothing = {{0, 0, 0, 0}}, int64[4] some = {{0, 1, 0, -1}},
       int64[2] zero2 = {{0, 0}}, int64[2] far = {{9223372036854775807, 9223372036854775807}}, int64[1] zero = {{0}},
       int64[1] far1 = {{9223372036854775807}}, int64[1] last = {{-1}}, int64[1] back = {{-100}}, int64[1] minus = {{-1}},
       int64[1] one = {{1}}, int64[1] three = {{3}}, int64[1] four = {{4}}, int64[1] ten = {{10}}, int64[2] ones = {{1, 1}}> {{
      t = {node} y = Neg(t) }}"""
    source = model_of(text)
    source.graph.output[0].type.tensor_type.Clear()
    source.graph.output[0].type.tensor_type.elem_type = 10 if "to = 10" in node else 1
    folded = judged(source, *(feeds for feeds in SIZES if runs(source, feeds)))
    assert (ops(folded) == ["Neg"]) == goes
