"""The inputs of certificates: what operators part at, as far as the operator takes it."""

import numpy as np
import pytest

from onnxbench import Model
from onnxbench.converters.edges import edged

from .judging import assert_same, convert, drawn, model_of, run


def values_of(body, opset, name):
    """All numbers that an input is fed with."""
    sets = list(edged(Model(model_of(body, opset), label="m")))
    assert len(sets) >= 2
    return np.concatenate([np.asarray(feeds[name], np.float64).reshape(-1) for feeds in sets])


def test_floats_are_fed_with_infinity_and_what_is_no_number():
    found = values_of("g (float[20] x) => (float[20] y) { y = Relu (x) }", 13, "x")
    assert np.isinf(found).any()
    assert np.isnan(found).any()


@pytest.mark.parametrize(
    ("body", "opset", "name"),
    [
        ("g (float s, float e, float d) => (float[N] y) { y = Range (s, e, d) }", 11, "e"),
        ("g (int64[2] i, float d, float[2] v) => (float[2,N] y) { y = OneHot (i, d, v) }", 11, "d"),
        ("g (float[1,1,4,4] x, float[4] s) => (float[A,B,C,D] y) { y = Resize (x, , s) }", 13, "s"),
        ("g (float[1,1,4,4] x, float[4] s) => (float[A,B,C,D] y) { y = Upsample (x, s) }", 9, "s"),
    ],
)
def test_what_sizes_are_made_of_is_finite(body, opset, name):
    assert np.isfinite(values_of(body, opset, name)).all()


def test_places_are_finite_and_lie_outside_too():
    body = "g (float[1,1,4,4] x, float[1,5,5,2] p) => (float[1,1,5,5] y) { y = GridSample (x, p) }"
    found = values_of(body, 16, "p")
    assert np.isfinite(found).all()
    assert (np.abs(found) > 1e3).any()
    assert np.isinf(values_of(body, 16, "x")).any()


DOWN = {
    "places of volumes": (
        'g (float[1,1,2,3,4] x, float[1,2,2,3,3] p) => (float[1,1,2,2,3] y) { y = GridSample <mode = "%s"> (x, p) }', 20, 17,
    ),
    "depth": ("g (int64[2] i, float d, bfloat16[2] v) => (bfloat16[2,N] y) { y = OneHot (i, d, v) }", 28, 17),
    "limits": ("g (float16 s, float16 e, float16 d) => (float16[N] y) { y = Range (s, e, d) }", 28, 17),
    "whole numbers": ("g (float[6] x, float s, uint8 z) => (uint8[6] y) { y = QuantizeLinear (x, s, z) }", 28, 17),
    "filters": (
        'g (float[1,1,4,4] x, int64[4] s) => (float[A,B,C,D] y) { y = Resize <antialias = 1, mode = "%s"> (x, , , s) }', 19, 17
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "mode"),
    [
        ("places of volumes", "linear"),
        ("places of volumes", "nearest"),
        ("depth", ""),
        ("limits", ""),
        ("whole numbers", ""),
        ("filters", "linear"),
        ("filters", "cubic"),
    ],
)
def test_right_results_are_not_refused(name, mode):
    body, opset, to = DOWN[name]
    _, report = convert(model_of(body % mode if mode else body, opset, ir=10), to)
    assert (report.state, report.reason) == ("verified", "")
    assert [certificate.state for certificate in report.certificates] == ["same"]


def test_places_without_end_lie_outside():
    """ONNX Runtime turns them into whole numbers, of which nothing says what they are; outside there are zeros."""
    source = model_of(DOWN["places of volumes"][0] % "linear", 20)
    result, _ = convert(source, 17)
    x, places = drawn(1, 1, 2, 3, 4), drawn(1, 2, 2, 3, 3) / 2
    assert_same(source, result, {"x": x, "p": places})
    places[0, 0, :, :, 1] = [[np.inf, -np.inf, 1e30], [1e4, -1e4, -3]]
    assert not run(result, {"x": x, "p": places})[0][0, 0, 0].any()


@pytest.mark.parametrize("mode", ["linear", "cubic"])
def test_infinity_stays_where_a_filter_reaches(mode):
    source = model_of((DOWN["filters"][0] % mode).replace("1,1,4,4", "1,1,8,8"), 19)
    result, _ = convert(source, 17)
    x = drawn(1, 1, 8, 8)
    x[0, 0, 4, 3] = np.inf
    assert_same(source, result, {"x": x, "s": np.int64([1, 1, 4, 3])}, {"x": x, "s": np.int64([1, 1, 8, 8])})
