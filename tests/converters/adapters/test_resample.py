"""Resize by Gathers."""

import numpy as np
import pytest

from tests.converters.adapters.same import assert_same, refusals

X = np.random.default_rng(0).random((1, 2, 5, 8), np.float32)
EMPTY = "empty = Constant<value = float[0] {}>()"


def resize(attributes, inputs="x, empty, empty, sizes", more="int64[4] sizes", dims="N,C,H,W", opset=11, front=EMPTY):
    return f"""
    <ir_version: 8, opset_import: ["": {opset}]>
    g (float[{dims}] x, {more}) => (float[A,B,D,E] y) {{ {front} y = Resize<{attributes}>({inputs}) }}
    """


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("where", ["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"])
@pytest.mark.parametrize("sizes", [(1, 2, 3, 13), (1, 2, 11, 1), (1, 2, 5, 4)])
def test_sizes_known_at_run_time(mode, where, sizes):
    text = resize(f'mode = "{mode}", coordinate_transformation_mode = "{where}"')
    assert_same(text, 10, {"x": X, "sizes": np.array(sizes)}, atol=1e-5)


@pytest.mark.parametrize("nearest", ["floor", "ceil", "round_prefer_floor", "round_prefer_ceil"])
@pytest.mark.parametrize("scales", [(1, 1, 0.5, 2), (1, 1, 1.7, 0.3)])
def test_scales_known_at_run_time(nearest, scales):
    text = resize(f'mode = "nearest", nearest_mode = "{nearest}"', "x, empty, scales", "float[4] scales")
    assert_same(text, 9, {"x": X, "scales": np.array(scales, np.float32)})


@pytest.mark.parametrize("exclude", [0, 1])
def test_cubic_at_the_border(exclude):
    text = resize(f'mode = "cubic", cubic_coeff_a = -0.5, exclude_outside = {exclude}')
    assert_same(text, 9, {"x": X, "sizes": np.array([1, 2, 9, 3])}, atol=1e-5)


@pytest.mark.parametrize("mode", ["linear", "cubic"])
@pytest.mark.parametrize("exclude", [0, 1])
@pytest.mark.parametrize("dims", ["N,C,H,W", "1,2,5,8"])
def test_antialias(mode, exclude, dims):
    text = resize(
        f'mode = "{mode}", antialias = 1, exclude_outside = {exclude}',
        'x, "", "", sizes',
        dims=dims,
        opset=18,
        front="",
    )
    assert_same(text, 13, {"x": X, "sizes": np.array([1, 2, 3, 3])}, atol=1e-5)


@pytest.mark.parametrize("policy", ["not_larger", "not_smaller"])
def test_ratios_that_are_kept(policy):
    text = resize(
        f'mode = "linear", keep_aspect_ratio_policy = "{policy}", axes = [2, 3]', 'x, "", "", sizes', "int64[2] sizes",
        opset=18, front="",
    )  # fmt: skip
    assert_same(text, 13, {"x": X, "sizes": np.array([7, 9])}, atol=1e-5)


def test_half_pixel_symmetric_in_float64():
    text = resize(
        'mode = "nearest", nearest_mode = "floor", coordinate_transformation_mode = "half_pixel_symmetric"',
        'x, "", scales', "float[4] scales", opset=19, front="",
    )  # fmt: skip
    assert_same(text, 18, {"x": X, "scales": np.array([1, 1, 0.6, 1.625], np.float32)})


def test_a_crop():
    text = resize(
        'mode = "linear", coordinate_transformation_mode = "tf_crop_and_resize", extrapolation_value = 9.0',
        "x, roi, empty, sizes", "float[8] roi, int64[4] sizes",
    )  # fmt: skip
    roi = np.array([0, 0, 0.2, -0.13, 1, 1, 0.7, 1.1], np.float32)
    assert_same(text, 10, {"x": X, "roi": roi, "sizes": np.array([1, 2, 3, 13])}, atol=1e-5)


def test_parts_of_elements_are_refused():
    text = resize('coordinate_transformation_mode = "align_corners"', "x, empty, scales", "float[4] scales")
    assert "whole sizes" in refusals(text, 10)[0]


def test_whole_numbers_are_not_weighted():
    text = resize('mode = "cubic"').replace("float[N", "uint8[N").replace("float[A", "uint8[A")
    assert "rounded" in refusals(text, 10)[0]


def test_upsample_shrinks():
    text = """
    <ir_version: 8, opset_import: ["": 10]>
    g (float[N,C,H,W] x, float[4] scales) => (float[A,B,D,E] y) { y = Resize<mode = "nearest">(x, scales) }
    """
    assert_same(text, 9, {"x": X, "scales": np.array([1, 1, 0.5, 2], np.float32)})
