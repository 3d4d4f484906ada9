"""What each step means: source and result on ONNX Runtime, on inputs at which the two forms would part if it were forgotten."""

import numpy as np
import pytest
from onnx import TensorProto, numpy_helper, parser
from onnx.reference import ReferenceEvaluator

from .judging import EDGES, assert_same, convert, drawn, model_of, ops, opset_of, run

X = {"x": drawn(2, 3, 4)}
IMAGE = {"x": drawn(1, 2, 5, 4)}
UP = {
    "softmax flattens": ("g (float[2,3,4] x) => (float[2,3,4] y) { y = Softmax <axis=1> (x) }", 11, 13, X),
    "softmax by default": ("g (float[2,3,4] x) => (float[2,3,4] y) { y = LogSoftmax (x) }", 9, 21, X),
    "hardmax": ("g (float[2,3,4] x) => (float[2,3,4] y) { y = Hardmax <axis=0> (x) }", 9, 13, X),
    "softmax of no rank": ("g (float[] x) => (float[] y) { y = Softmax <axis=1> (x) }", 11, 13, X),
    "clip clips infinity": (
        "g (float[13] x) => (float[13] y) { y = Clip <min=-1.0> (x) }", 10, 11, {"x": EDGES}
    ),
    "clip of halves": ("g (float16[13] x) => (float16[13] y) { y = Clip <max=2.0> (x) }", 6, 13, {"x": EDGES.astype(np.float16)}),
    "upsample": (
        "g (float[1,2,5,4] x) => (float[1,2,10,8] y) <float[4] s = {1.0, 1.0, 2.0, 2.0}> { y = Upsample <mode=\"linear\"> (x, s) }",
        9, 13, IMAGE,
    ),
    "resize grows and shrinks": (
        "g (float[1,2,5,4] x) => (float[1,2,7,3] y) <float[4] s = {1.0, 1.0, 1.5, 0.8}> { y = Resize <mode=\"nearest\"> (x, s) }",
        10, 11, IMAGE,
    ),
    "resize of run-time scales": (
        "g (float[1,2,5,4] x, float[4] s) => (float[N,C,H,W] y) { y = Resize <mode=\"nearest\"> (x, s) }",
        10, 21, {**IMAGE, "s": np.float32([1, 1, 1.7, 0.6])},
    ),
    "slice": ("g (float[2,3,4] x) => (float[2,1,2] y) { y = Slice <axes=[1,2], starts=[-2,1], ends=[-1,3]> (x) }", 9, 13, X),
    "top k": ("g (float[2,3,4] x) => (float[2,3,2] v, int64[2,3,2] i) { v, i = TopK <k=2> (x) }", 9, 11, X),
    "pad": ("g (float[2,3,4] x) => (float[2,4,6] y) { y = Pad <pads=[0,0,1,0,1,1], value=2.5> (x) }", 9, 13, X),
    "sum of axes": ("g (float[2,3,4] x) => (float[2,4] y) { y = ReduceSum <axes=[1], keepdims=0> (x) }", 11, 13, X),
    "mean of axes": ("g (float[2,3,4] x) => (float[2,1,1] y) { y = ReduceMean <axes=[-1,1]> (x) }", 13, 18, X),
    "split": ("g (float[2,3,4] x) => (float[2,3,1] y, float[2,3,3] z) { y, z = Split <axis=2, split=[1,3]> (x) }", 11, 18, X),
    "split in equal parts": ("g (float[2,3,4] x) => (float[2,3,2] y, float[2,3,2] z) { y, z = Split <axis=2> (x) }", 11, 18, X),
    "dropout with its mask": (
        "g (float[2,3,4] x) => (float[2,3,4] y) { y, m = Dropout <ratio=0.3> (x) }", 9, 13, X
    ),
    "statistics of activations": (
        "g (float[2,3,4] x) => (float[2,3,4] y) <float[3,4] s = {1,2,3,4,5,6,7,8,9,1,2,3}, float[3,4] b = {0,1,0,1,0,1,0,1,0,1,0,1}, "
        "float[3,4] m = {1,0,1,0,1,0,1,0,1,0,1,0}, float[3,4] v = {1,2,1,2,1,2,1,2,1,2,1,2}> "
        "{ y = BatchNormalization <spatial=0> (x, s, b, m, v) }",
        7, 15, X,
    ),
    "one-hot of what is negative": (
        "g (int64[3] i) => (float[3,4] y) <int64 d = {4}, float[2] v = {0.0, 1.0}> { y = OneHot (i, d, v) }",
        9, 11, {"i": np.int64([0, 3, 1])},
    ),
    "scatter": (
        "g (float[3] x, int64[2] i, float[2] u) => (float[3] y) { y = Scatter <axis=0> (x, i, u) }",
        9, 13, {"x": drawn(3), "i": np.int64([2, 0]), "u": drawn(2)},
    ),
    "grid of another mode": (
        "g (float[1,2,5,4] x, float[1,2,2,2] g2) => (float[1,2,2,2] y) { y = GridSample <mode=\"bicubic\"> (x, g2) }",
        16, 20, {**IMAGE, "g2": drawn(1, 2, 2, 2) / 2},
    ),
    "groups become channels": (
        "g (float[2,4,3] x, float[2] s, float[2] b) => (float[2,4,3] y) { y = GroupNormalization <num_groups=2> (x, s, b) }",
        18, 21, {"x": drawn(2, 4, 3), "s": drawn(2), "b": drawn(2)},
    ),
    "roi": (
        "g (float[1,1,6,6] x, float[1,4] r, int64[1] b) => (float[1,1,2,2] y) "
        "{ y = RoiAlign <output_height=2, output_width=2> (x, r, b) }",
        10, 16, {"x": drawn(1, 1, 6, 6), "r": np.float32([[1, 1, 4, 4]]), "b": np.int64([0])},
    ),
    "an experiment": ("g (float[2,3,4] x) => (float[2,3,4] y) { y = ThresholdedRelu <alpha=0.3> (x) }", 9, 13, X),
}  # fmt: skip
DOWN = {
    "zeros that are meant": (
        "g (float[a,b] x, int64[3] s) => (float[c,d,e] y) { y = Reshape <allowzero=1> (x, s) }", 14, 13,
        {"x": drawn(4, 3), "s": np.int64([2, -1, 3])},
    ),
    "a shape that repeats its input": (
        "g (float[a,b] x) => (float[c,d,e] y) <int64[2] f = {2, 4}> "
        "{ n = Shape <start=0, end=1> (x) s = Concat <axis=0> (n, f) y = Reshape <allowzero=1> (x, s) }", 15, 9,
        {"x": drawn(3, 8)},
    ),
    "floats that are equal": (
        "g (float[13] x, float[13] z) => (bool[13] y) { y = Equal (x, z) }", 13, 9, {"x": EDGES, "z": EDGES[::-1].copy()}
    ),
    "layers normalized": (
        "g (float[a,b,8] x, float[8] s, float[8] b) => (float[a,b,8] y, float[a,b,1] m, float[a,b,1] i) "
        "{ y, m, i = LayerNormalization (x, s, b) }", 17, 9, {"x": drawn(2, 3, 8), "s": drawn(8), "b": drawn(8)},
    ),
    "softmax in the middle": ("g (float[2,3,4] x) => (float[2,3,4] y) { y = Softmax <axis=1> (x) }", 13, 11, X),
    "axes of a run": (
        "g (float[2,1,4] x, int64[a] axes) => (float[] y) { y = Squeeze (x, axes) }", 13, 9,
        {"x": drawn(2, 1, 4), "axes": np.int64([-2])},
    ),
    "new axes of a run": (
        "g (float[2,3] x, int64[2] axes) => (float[a,b,c,d] y) { y = Unsqueeze (x, axes) }", 13, 9,
        {"x": drawn(2, 3), "axes": np.int64([-1, 1])},
    ),
    "sums of a run": (
        "g (float[2,3,4] x, int64[a] axes) => (float[] y) { y = ReduceSum <keepdims=0> (x, axes) }", 13, 9,
        {**X, "axes": np.int64([2, -3])},
    ),
    "slices of a run": (
        "g (float[a,b,c] x, int64[2] s, int64[2] e, int64[2] n, int64[2] t) => (float[u,v,w] y) { y = Slice (x, s, e, n, t) }",
        13, 9, {**X, "s": np.int64([-1, 1]), "e": np.int64([-99, 99]), "n": np.int64([1, -1]), "t": np.int64([-2, 2])},
    ),
    "pads of a run": (
        "g (float[a,b] x, int64[4] p, float v) => (float[c,d] y) { y = Pad (x, p, v) }", 13, 9,
        {"x": drawn(3, 4), "p": np.int64([1, -1, 0, 2]), "v": np.array(7, np.float32)},
    ),
    "mirrored pads": (
        "g (float[a,b] x, int64[4] p) => (float[c,d] y) { y = Pad <mode=\"reflect\"> (x, p) }", 13, 9,
        {"x": drawn(3, 4), "p": np.int64([2, 3, 1, 2])},
    ),
    "bounds of a run": (
        "g (float[13] x, float lo, float hi) => (float[13] y) { y = Clip (x, lo, hi) }", 13, 9,
        {"x": np.nan_to_num(EDGES), "lo": np.array(-1, np.float32), "hi": np.array(2, np.float32)},
    ),
    "whole numbers": ("g (int32[3] a, int32[3] b) => (int32[3] y) { y = Max (a, b) }", 13, 9,
                      {"a": np.int32([1, -5, 7]), "b": np.int32([2, -6, 7])}),
    "remainders": ("g (int64[4] a, int64[4] b) => (int64[4] y) { y = Mod (a, b) }", 13, 9,
                   {"a": np.int64([7, -7, 7, -7]), "b": np.int64([3, 3, -3, -3])}),
    "elements": (
        "g (float[2,3,4] x, int64[2,1,2] i) => (float[2,1,2] y) { y = GatherElements <axis=-1> (x, i) }", 13, 9,
        {**X, "i": np.int64([[[0, -1]], [[2, 1]]])},
    ),
    "running sums": ("g (float[2,3,4] x, int64 a) => (float[2,3,4] y) { y = CumSum <exclusive=1, reverse=1> (x, a) }", 13, 9,
                     {**X, "a": np.array(-1)}),
    "half to even": ("g (float[13] x) => (float[13] y) { y = Round (x) }", 13, 9, {"x": EDGES}),
    "the last of equals": (
        "g (float[4] x) => (int64[1] y) { y = ArgMax <select_last_index=1> (x) }", 13, 9, {"x": np.float32([1, 3, 3, 0])}
    ),
    "channels quantized": (
        "g (float[2,3] x, float[3] s, int8[3] z) => (int8[2,3] y) { y = QuantizeLinear <axis=1> (x, s, z) }", 13, 9,
        {"x": drawn(2, 3) * 50, "s": np.float32([0.5, 1, 2]), "z": np.int8([0, 3, -3])},
    ),
    "a negative index": (
        "g (float[2,3,4] x) => (float[2,2,4] y) <int64[2] i = {-1, 0}> { y = Gather <axis=1> (x, i) }", 11, 10, X
    ),
    "parts of unequal size": (
        "g (float[a,7] x) => (float[a,b] y, float[a,c] z) { y, z = Split <axis=1, num_outputs=2> (x) }", 18, 11,
        {"x": drawn(2, 7)},
    ),
    "channels of groups": (
        "g (float[2,4,3] x, float[4] s, float[4] b) => (float[2,4,3] y) { y = GroupNormalization <num_groups=2> (x, s, b) }",
        21, 17, {"x": drawn(2, 4, 3), "s": drawn(4), "b": drawn(4)},
    ),
    "a function of the specification": ("g (float[2,3,4] x) => (float[2,3,4] y) { y = Celu <alpha=0.7> (x) }", 12, 9, X),
    "training": (
        "g (float[2,3,4] x, float[3] s, float[3] b, float[3] m, float[3] v) => (float[2,3,4] y, float[3] rm, float[3] rv) "
        "{ y, rm, rv = BatchNormalization <training_mode=1> (x, s, b, m, v) }", 14, 9,
        {**X, "s": drawn(3), "b": drawn(3), "m": drawn(3), "v": np.abs(drawn(3))},
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    "body, start, end, feeds", [pytest.param(*case, id=name) for name, case in {**UP, **DOWN}.items()]
)
def test_both_forms_compute_the_same(body, start, end, feeds):
    source = model_of(body, start)
    result, report = convert(source, end)
    assert result is not None, report.refusals or report.reason
    assert opset_of(result) == end
    assert_same(source, result, feeds)


def test_constants_take_the_type_of_the_node():
    source = model_of("g (double[3] x) => (double[5] y) { y = Pad <pads=[1,1], value=0.1> (x) }", 10)
    result, _ = convert(source, 13)
    assert {tensor.data_type for tensor in result.graph.initializer} == {TensorProto.DOUBLE, TensorProto.INT64}
    assert_same(source, result, {"x": np.float64([-1, 0.05, 1])})


def test_one_constant_serves_many_nodes():
    body = "g (float[2,1,4] x) => (float[2,1,4] y) { a = Squeeze <axes=[1]> (x) b = Relu (a) y = Unsqueeze <axes=[1]> (b) }"
    result, _ = convert(model_of(body, 11), 13)
    assert len(result.graph.initializer) == 1


def test_a_default_that_overriding_changes_is_no_constant():
    source = model_of("g (float[a,b,4] x, int64[1] axes) => (float[] y) { y = Squeeze (x, axes) }", 13)
    source.graph.initializer.append(numpy_helper.from_array(np.int64([1]), "axes"))
    result, report = convert(source, 11)
    assert report.state == "verified"
    assert "Reshape" in ops(result)
    assert_same(source, result, {"x": drawn(2, 1, 4)}, {"x": drawn(1, 1, 4), "axes": np.int64([0])})


@pytest.mark.parametrize(
    ("body", "start", "end", "step", "reason"),
    [
        ("g (float[2] x) => (float[2] y) { y = Dropout (x) }", 6, 9, "Dropout 6 to 7", "draws at random"),
        (
            "g (float[2,3] x, float[3] s, float[3] b, float[3] m, float[3] v) => (float[2,3] y) "
            "{ y = BatchNormalization (x, s, b, m, v) }",
            6, 9, "BatchNormalization 6 to 7", "is_test is 0",
        ),
        ("g (float[2] x) => (float[2] y) { y = Identity (x) s = SequenceConstruct (x) }", 13, 9, "SequenceConstruct", ""),
        ("g (float[2] x) => (float[2] y) { y = Nonsense (x) }", 11, 13, "Nonsense", "no operator"),
    ],
)  # fmt: skip
def test_what_cannot_be_said_is_refused_by_name(body, start, end, step, reason):
    result, report = convert(model_of(body, start), end, verify=False)
    assert result is None
    assert report.state == "refused"
    assert report.exit_code == 1
    (refusal,) = report.refusals
    assert step in refusal.step
    assert reason in refusal.reason
    assert refusal.op == step.split()[0]


def test_it_takes_more_than_the_version_to_go_up():
    """A stamp alone would change the numbers: the planted fault is real."""
    source = model_of(UP["softmax flattens"][0], 11)
    stamped = model_of(UP["softmax flattens"][0], 13)
    want, got = run(source, X), run(stamped, X)
    assert not np.allclose(want[0], got[0], atol=1e-3)


def test_batch_first_is_turned():
    """ONNX Runtime has no LSTM with the batch first: the reference runs it."""
    body = (
        "g (float[2,3,4] x, float[1,12,4] w, float[1,12,3] r) => (float[2,3,1,3] y, float[2,1,3] h) "
        "{ y, h = LSTM <hidden_size=3, layout=1> (x, w, r) }"
    )
    source = model_of(body, 14)
    result, report = convert(source, 13)
    assert report.state == "verified"
    feeds = {"x": drawn(2, 3, 4), "w": drawn(1, 12, 4), "r": drawn(1, 12, 3)}
    for want, got in zip(ReferenceEvaluator(source).run(None, feeds), run(result, feeds), strict=True):
        np.testing.assert_allclose(want, got, rtol=1e-4, atol=1e-6)


def test_empty_tensors_keep_their_shape():
    """The body that the specification gives for LayerNormalization reshapes, and loses a size beside a 0."""
    source = model_of(DOWN["layers normalized"][0], 17)
    result, report = convert(source, 13)
    assert report.state == "verified"
    empty = {"x": np.zeros((2, 0, 8), np.float32), "s": drawn(8), "b": drawn(8)}
    assert [value.shape for value in run(result, empty)] == [(2, 0, 8), (2, 0, 1), (2, 0, 1)]
    meant = model_of(DOWN["zeros that are meant"][0], 14)
    down, _ = convert(meant, 13)
    feeds = {"x": np.zeros((4, 0), np.float32), "s": np.int64([0, 2, 3])}
    assert run(meant, feeds)[0].shape == run(down, feeds)[0].shape == (0, 2, 3)


def test_sparse_axes_become_an_attribute():
    source = model_of("g (float[2,3,4] x) => (float[A,B,C] y) { y = ReduceSum (x, axes) }", 13)
    held = source.graph.sparse_initializer.add()
    held.dims.append(1)
    held.values.CopyFrom(numpy_helper.from_array(np.int64([1]), "axes"))
    held.indices.CopyFrom(numpy_helper.from_array(np.int64([0])))
    result, _ = convert(source, 11)
    assert_same(source, result, X)
    assert ops(result) == ["ReduceSum"]


def test_an_element_type_that_there_is_not_is_refused():
    source = model_of("g (float[2] x) => (float[2] y) <float[2] w = {1.0, 2.0}> { y = Add (x, w) }", 17)
    source.graph.initializer[0].data_type = 200
    result, report = convert(source, 13)
    assert (result, report.state) == (None, "refused")


@pytest.mark.parametrize("opset", [7, 9])
@pytest.mark.parametrize("bounds", ["x", "x, low", "x, , high", "x, low, high"])
def test_bounds_that_are_left_out_are_the_last_finite_numbers(bounds, opset):
    source = model_of(
        f"g (float[8] x) => (float[8] y) <float low = {{-0.5}}, float high = {{0.5}}> {{ y = Clip ({bounds}) }}", 13
    )
    result, report = convert(source, opset)
    assert report.state == "verified"
    assert_same(source, result, {"x": np.float32([np.inf, -np.inf, 1, -1, 0.2, 3e38, -3e38, 0])})


def test_bounds_that_only_a_run_tells_leave_the_other_end_finite():
    source = model_of("g (double[4] x, double low) => (double[4] y) { y = Clip (x, low) }", 13)
    result, report = convert(source, 9)
    assert report.state == "verified"
    x = np.array([np.inf, -np.inf, 1.0, -1.0])
    assert_same(source, result, {"x": x, "low": np.array(0.5)}, {"x": x, "low": np.array(-2.0)})


@pytest.mark.parametrize("opset", [11, 9, 7])
def test_the_mask_of_a_dropout_that_drops_nothing(opset):
    source = model_of("g (float[2,3] x) => (float[2,3] y, bool[2,3] m) { y, m = Dropout (x) }", 13)
    result, report = convert(source, opset)
    assert report.state == "verified"
    assert_same(source, result, {"x": drawn(2, 3)}, {"x": np.zeros((2, 3), np.float32)})


def test_nodes_may_stand_in_any_order():
    text = "g (float[2,3] x, int64[2] p) => (float[A,B] y) {{ {0} }}"
    nodes = ["y = Pad (x, q)", "q = Concat <axis = 0> (p, p)"]
    source = model_of(text.format("  ".join(nodes)), 13)
    result, report = convert(source, 9)
    assert report.state == "verified"
    feeds = {"x": drawn(2, 3), "p": np.array([1, 2])}
    np.testing.assert_array_equal(run(source, feeds)[0], run(result, feeds)[0])


def test_constants_of_whole_numbers_become_initializers_below_9():
    nodes = "s = Constant <value_ints = [2, 4]> ()  a, b = Split <axis = 0> (x, s)"
    nodes += "  i = Constant <value_int = 1> ()  c = Gather (x, i)"
    source = model_of(f"g (float[6,3] x) => (float[2,3] a, float[4,3] b, float[3] c) {{ {nodes} }}", 13)
    result, report = convert(source, 7)
    assert report.state == "verified"
    assert_same(source, result, {"x": drawn(6, 3)})


def test_whole_numbers_below_9_have_no_constant_node_in_old_models():
    source = model_of("g (float[2,3] x) => (float[6] y) { y = Reshape <shape = [6]> (x) }", 1, ir=3)
    result, report = convert(source, 7)
    assert (report.state, result.ir_version, ops(result)) == ("verified", 4, ["Reshape"])
    assert_same(source, result, {"x": drawn(2, 3)})


def test_functions_below_9_cast_their_whole_numbers():
    source = parser.parse_model("""<ir_version: 8, opset_import: ["": 13, "c": 1]>
    g (float[4,3] x) => (float[2,6] y) { y = c.f (x) }
    <domain: "c", opset_import: ["": 13]> f (a) => (b) { s = Constant <value_ints = [2, 6]> ()  b = Reshape (a, s) }""")
    result, report = convert(source, 7)
    assert report.state == "verified"
    assert [node.op_type for node in result.functions[0].node] == ["Constant", "Cast", "Identity", "Reshape"]
    assert_same(source, result, {"x": drawn(4, 3)})
    source.functions[0].node[0].attribute[0].ints[0] = -(2**60)
    assert "no constant of such numbers" in convert(source, 7)[1].refusals[0].reason


@pytest.mark.parametrize("opset", [11, 9])
@pytest.mark.parametrize("bounds", ["x", "x, low", "x, , low"])
def test_halves_are_clipped_to_their_own_ends(bounds, opset):
    # 14336 is 0.5 as the bits of a half.
    source = model_of(f"g (float16[13] x) => (float16[13] y) <float16 low = {{14336}}> {{ y = Clip ({bounds}) }}", 13)
    result, report = convert(source, opset)
    assert report.state in ("verified", "certified")
    assert_same(source, result, {"x": EDGES[1:].astype(np.float16).repeat(2)[:13]})


def test_indices_far_below_zero_are_off():
    text = "g (int64[6] i) => (float[6,5] y) <int64 d = {5}, float[2] v = {1, 3}> { y = OneHot (i, d, v) }"
    source = model_of(text, 11)
    result, report = convert(source, 9)
    assert report.state == "verified"
    assert_same(source, result, {"i": np.array([5, -6, -1, -5, 0, -100])})


def test_what_infinity_leaves_of_a_half_is_all_of_it():
    source = model_of("g (float16[8] x, float16[8] z) => (float16[8] y) { y = Mod <fmod = 1> (x, z) }", 13)
    result, _ = convert(source, 9)
    x = np.float16([3, -3, np.inf, np.nan, 5, -5, 2, 0])
    z = np.float16([np.inf, -np.inf, np.inf, np.inf, 3, 3, 0, -np.inf])
    assert_same(source, result, {"x": x, "z": z})
