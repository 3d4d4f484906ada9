"""Pieces of bodies, which have names of their own."""

from onnx.parser import parse_model

import onnxbench
from onnxbench.core.sizes import dims_in

GROWING = """<ir_version: 10, opset_import: ["": 21]>
g (float[N, M] x) => (float[A, M] y, int64[3, 2] more) <int64 n = {3}, bool on = {1}> {
  y, more = Loop(n, on, x) <body = b (int64 i, bool c, float[N, K] s) => (bool d, float[P, K] r, int64[2] t) {
    d = Identity(c) q = Shape(s) p = Shape(x) t = Sub(q, p) r = Concat<axis = 0>(s, s) }> }"""


def test_a_captured_value_has_no_size_that_is_called_like_one_of_the_body():
    piece = onnxbench.extract(parse_model(GROWING), to=["t"])
    declared = {value.name: [dim.dim_param for dim in dims_in(value.type)] for value in piece.graph.input}
    assert declared == {"s": ["N", "K"], "x": ["", "M"]}
