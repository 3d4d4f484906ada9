"""Transforms by products with cosines and sines."""

import numpy as np
import pytest

from tests.converters.adapters.same import assert_same, refusals

RANDOM = np.random.default_rng(0)


@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize("inverse", [0, 1])
@pytest.mark.parametrize("axis", [1, -2, 0])
def test_any_axis(parts, inverse, axis):
    text = f"""
    <ir_version: 8, opset_import: ["": 17]>
    g (float[N,L,M,{parts}] x) => (float[A,B,C,D] y) {{ y = DFT<axis = {axis}, inverse = {inverse}>(x) }}
    """
    assert_same(text, 11, {"x": RANDOM.random((3, 6, 5, parts), np.float32)}, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("length", [3, 6, 9])
def test_length_known_at_run_time(length):
    text = """
    <ir_version: 8, opset_import: ["": 17]>
    g (float[N,L,1] x, int64 n) => (float[A,B,C] y) { y = DFT<onesided = 1>(x, n) }
    """
    assert_same(text, 9, {"x": RANDOM.random((2, 6, 1), np.float32), "n": np.array(length)}, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("axis", [0, 1, -2, -3])
def test_axis_known_at_run_time(axis):
    text = """
    <ir_version: 8, opset_import: ["": 20]>
    g (float[2,3,4,2] x, int64 axis) => (float[A,B,C,D] y) { y = DFT(x, "", axis) }
    """
    assert_same(text, 17, {"x": RANDOM.random((2, 3, 4, 2), np.float32), "axis": np.array(axis)}, rtol=1e-4, atol=1e-5)


def test_the_inverse_of_one_side_is_refused():
    text = """
    <ir_version: 8, opset_import: ["": 17]>
    g (float[2,3,2] x) => (float[A,B,C] y) { y = DFT<inverse = 1, onesided = 1>(x) }
    """
    assert "onesided" in refusals(text, 11)[0]


@pytest.mark.parametrize("onesided", [0, 1])
def test_frames(onesided):
    text = f"""
    <ir_version: 8, opset_import: ["": 17]>
    g (float[N,L,1] x, int64 step, float[W] window) => (float[A,B,C,D] y) {{
        y = STFT<onesided = {onesided}>(x, step, window)
    }}
    """
    feeds = {
        "x": RANDOM.random((2, 37, 1), np.float32),
        "step": np.array(5),
        "window": np.hanning(8).astype(np.float32),
    }
    assert_same(text, 11, feeds, rtol=1e-4, atol=1e-5)


def test_mel_weights():
    text = """
    <ir_version: 8, opset_import: ["": 17]>
    g (int64 bins, int64 length, int64 rate, float low, float high) => (float[A,B] y) {
        y = MelWeightMatrix(bins, length, rate, low, high)
    }
    """
    feeds = {"bins": np.array(8), "length": np.array(64), "rate": np.array(8192)}
    feeds |= {"low": np.array(10, np.float32), "high": np.array(4000, np.float32)}
    assert_same(text, 11, feeds)
