"""Initializers that hold the same go, and those that only look alike stay."""

import numpy as np
import onnx
from onnx import numpy_helper

from onnxbench import load
from onnxbench.folding.run import fold_model

from .judging import judged, model_of

X = {"x": np.asarray([0.5, -2.0], np.float32)}


def names(model):
    return [tensor.name for tensor in model.graph.initializer]


def test_equal_bytes_of_one_type_and_shape_are_stored_once():
    stored = (
        "float[2] a = {1, 2}, float[2] b = {1, 2}, float[2] c = {1, 3}, float[1, 2] d = {1, 2}, int64[2] e = {1, 2}"
    )
    nodes = (
        "p = Mul(x, a) q = Mul(p, b) r = Mul(q, c) s = Mul(r, d) h = Cast<to = 7>(x) i = Add(h, e) j = Cast<to = 1>(i)"
    )
    source = f"g (float[2] x) => (float[1, 2] y) <{stored}> {{ {nodes} y = Add(s, j) }}"
    assert names(judged(source, X)) == ["a", "c", "d", "e"]


def test_zeros_of_either_sign_are_not_the_same():
    source = "g (float[2] x) => (float[2] y) <float[1] a = {0.0}, float[1] b = {-0.0}> { p = Max(x, a) q = Max(x, b) y = Div(p, q) }"
    assert names(judged(source, X)) == ["a", "b"]


def test_external_weights_are_read_as_far_as_they_agree(tmp_path):
    proto = model_of(
        "g (float[2] x) => (float[N] y) { p = Gather(a, i) q = Gather(b, i) r = Gather(c, i) y = Sum(p, q, r) }"
    )
    big = np.arange(5000, dtype=np.float32)
    other = big.copy()
    other[-1] += 1
    for name, value in (("a", big), ("b", big), ("c", other), ("i", np.asarray([4999]))):
        proto.graph.initializer.append(numpy_helper.from_array(value, name))
    onnx.save(proto, tmp_path / "m.onnx", save_as_external_data=True, location="m.data", size_threshold=1000)
    folded, _ = fold_model(load(tmp_path / "m.onnx"))
    assert "b" not in names(folded.proto)
