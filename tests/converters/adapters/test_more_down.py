"""What newer operators and types become below their opset."""

import numpy as np
import pytest

from tests.converters.adapters.same import assert_same, converted, refusals

RANDOM = np.random.default_rng(0)


def random(*shape):
    return RANDOM.standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("padded", [0, 1])
@pytest.mark.parametrize("ceil", [0, 1])
def test_averages_with_gaps(padded, ceil):
    text = f"""
    <ir_version: 8, opset_import: ["": 19]>
    g (float[2,3,9,10] x) => (float[A,B,C,D] y) {{
        y = AveragePool<kernel_shape = [2,3], dilations = [2,2], strides = [2,1], pads = [1,1,0,1], ceil_mode = {ceil},
            count_include_pad = {padded}>(x)
    }}
    """
    assert_same(text, 13, {"x": random(2, 3, 9, 10)})


@pytest.mark.parametrize("k", [-1, 0, 2])
@pytest.mark.parametrize("upper", [0, 1])
def test_triangles(k, upper):
    text = f"""
    <ir_version: 8, opset_import: ["": 14]>
    g (float[B,N,M] x, int64 k) => (float[B,N,M] y) {{ y = Trilu<upper = {upper}>(x, k) }}
    """
    assert_same(text, 9, {"x": random(2, 4, 3), "k": np.array(k)})
    assert_same(text, 13, {"x": random(1, 0, 3), "k": np.array(k)})


def test_infinity_by_comparison():
    text = """
    <ir_version: 8, opset_import: ["": 10]>
    g (float[N] x) => (bool[N] y, bool[N] z) { y = IsInf(x)  z = IsInf<detect_negative = 0>(x) }
    """
    assert_same(text, 9, {"x": np.array([1, np.inf, -np.inf, np.nan, 3e38], np.float32)})


@pytest.mark.parametrize("kind", ["int16", "uint16"])
def test_quantized_to_16_bits(kind):
    text = f"""
    <ir_version: 8, opset_import: ["": 21]>
    g (float[N,4] x, float[4] scale, {kind}[4] zero) => ({kind}[N,4] y, float[N,4] z) {{
        y = QuantizeLinear<axis = -1>(x, scale, zero)  z = DequantizeLinear<axis = 1>(y, scale, zero)
    }}
    """
    scale, zero = np.array([0.1, 0.5, 1, 1e-6], np.float32), np.array([0, 7, 100, 3], kind)
    assert_same(text, 13, {"x": 50 * random(6, 4), "scale": scale, "zero": zero})


def test_quantized_by_blocks():
    text = """
    <ir_version: 8, opset_import: ["": 21]>
    g (float[5,3] x, float[3,3] scale, int8[3,3] zero) => (int8[5,3] y, float[5,3] z) {
        y = QuantizeLinear<axis = 0, block_size = 2>(x, scale, zero)
        z = DequantizeLinear<axis = 0, block_size = 2>(y, scale, zero)
    }
    """
    scale, zero = np.abs(random(3, 3)), RANDOM.integers(-9, 9, (3, 3), np.int8)
    assert_same(text, 13, {"x": 50 * random(5, 3), "scale": scale, "zero": zero})


@pytest.mark.parametrize("shape", [(5, 6), (4, 4)])
def test_columns_to_an_image(shape):
    text = """
    <ir_version: 8, opset_import: ["": 18]>
    g (float[N,C,L] x, int64[2] image, int64[2] block) => (float[A,B,H,W] y) {
        y = Col2Im<strides = [2,1], pads = [1,0,1,1], dilations = [1,2]>(x, image, block)
    }
    """
    count = ((shape[0] + 2 - 2) // 2 + 1) * (shape[1] + 1 - 3 + 1)
    feeds = {"x": random(2, 12, count), "image": np.array(shape), "block": np.array([2, 2])}
    assert_same(text, 17, feeds)


@pytest.mark.parametrize("mode", ["linear", "circular"])
def test_a_cache_is_written(mode):
    text = f"""
    <ir_version: 8, opset_import: ["": 24]>
    g (float[B,H,S,D] past, float[B,H,T,D] new, int64[B] start) => (float[B,H,S,D] y) {{
        y = TensorScatter<mode = "{mode}">(past, new, start)
    }}
    """
    past, new, start = random(2, 2, 5, 3), random(2, 2, 2, 3), np.array([1, 3 if mode == "linear" else 4])
    want = past.copy()
    for sample in range(2):
        for step in range(2):
            want[sample, :, (start[sample] + step) % 5] = new[sample, :, step]
    assert_same(text, 13, {"past": past, "new": new, "start": start}, [want])


def test_the_greatest_of_booleans():
    text = """
    <ir_version: 8, opset_import: ["": 20]>
    g (bool[N,M] x) => (bool[N] y, bool[N] z) {
        axes = Constant<value_ints = [1]>()
        y = ReduceMax<keepdims = 0>(x, axes)  z = ReduceMin<keepdims = 0>(x, axes)
    }
    """
    x = np.array([[1, 0, 0], [0, 0, 0], [1, 1, 1]], bool)
    assert_same(text, 13, {"x": x}, [x.any(1), x.all(1)])


def test_attention_with_a_window():
    text = """
    <ir_version: 8, opset_import: ["": 25]>
    g (float[2,3,6,8] q, float[2,3,6,8] k, float[2,3,6,8] v) => (float[2,3,6,8] y) {
        y = Attention<left_window_size = 2, right_window_size = 1>(q, k, v)
    }
    """
    q, k, v = (random(2, 3, 6, 8) for _ in range(3))
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(8)
    away = np.arange(6)[:, None] - np.arange(6)
    scores[..., (away > 2) | (away < -1)] = -np.inf
    share = np.exp(scores - scores.max(-1, keepdims=True))
    want = ((share / share.sum(-1, keepdims=True)) @ v).astype(np.float32)
    assert_same(text, 17, {"q": q, "k": k, "v": v}, [want], rtol=1e-4, atol=1e-5)


def test_what_has_no_older_form():
    text = """
    <ir_version: 8, opset_import: ["": 20]>
    g (string[N] x, string[N] y) => (string[N] z) { z = StringConcat(x, y) }
    """
    assert refusals(text, 17) == ["StringConcat was introduced in opset 20, and no older operator works on text"]


@pytest.mark.parametrize("mode", ["linear", "nearest"])
@pytest.mark.parametrize("padding", ["zeros", "border"])
@pytest.mark.parametrize("corners", [0, 1])
def test_volumes_are_sampled(mode, padding, corners):
    text = f"""
    <ir_version: 8, opset_import: ["": 20]>
    g (float[N,C,D,H,W] x, float[N,E,F,G,3] grid) => (float[N,C,E,F,G] y) {{
        y = GridSample<mode = "{mode}", padding_mode = "{padding}", align_corners = {corners}>(x, grid)
    }}
    """
    grid = (RANDOM.random((2, 3, 4, 2, 3)) * 2.6 - 1.3).astype(np.float32)
    assert_same(text, 17, {"x": random(2, 3, 4, 5, 6), "grid": grid}, rtol=1e-4, atol=1e-5)


def test_half_floats_stay_where_they_may():
    text = """
    <ir_version: 8, opset_import: ["": 22]>
    g (float16[N] x) => (float16[N] y) { y = Selu(x) }
    """
    result, _ = converted(text, 17)
    assert [node.op_type for node in result.proto.graph.node] == ["Selu"]


def test_brain_floats_are_widened():
    text = """
    <ir_version: 10, opset_import: ["": 22]>
    g (bfloat16[N] x) => (bfloat16[N] y) { y = Selu(x) }
    """
    result, _ = converted(text, 17)
    assert [node.op_type for node in result.proto.graph.node] == ["Cast", "Selu", "Cast"]


def test_optional_values_that_are_there():
    text = """
    <ir_version: 8, opset_import: ["": 18]>
    g (float[N] x) => (bool a, bool b, float[N] y) {
        a = OptionalHasElement(x)  b = OptionalHasElement()  y = OptionalGetElement(x)
    }
    """
    x = random(3)
    assert_same(text, 17, {"x": x}, [np.array(True), np.array(False), x])


def test_blocks_column_by_column():
    text = """
    <ir_version: 8, opset_import: ["": 28]>
    g (float[N,C,H,W] x) => (float[A,B,D,E] y) { y = SpaceToDepth<mode = "CRD", blocksize = 2>(x) }
    """
    x = random(2, 3, 4, 6)
    want = x.reshape(2, 3, 2, 2, 3, 2).transpose(0, 1, 3, 5, 2, 4).reshape(2, 12, 2, 3)
    assert_same(text, 17, {"x": x}, [want])


@pytest.mark.parametrize("size", [5, 6, 7, 8])
@pytest.mark.parametrize("op", ["MaxPool", "AveragePool"])
def test_windows_that_would_start_behind(size, op):
    text = f"""
    <ir_version: 8, opset_import: ["": 22]>
    g (float[1,2,{size}] x) => (float[A,B,C] y) {{
        y = {op}<kernel_shape = [2], strides = [3], pads = [1,1], ceil_mode = 1>(x)
    }}
    """
    assert_same(text, 11, {"x": random(1, 2, size)})
