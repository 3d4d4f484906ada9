"""Numbers that float32, in which attributes hold floats, does not hold: they must not be rounded on the way."""

import numpy as np
import pytest
from onnx import parser

from onnxbench.converters.certify import compare
from onnxbench.runtimes.base import Limits
from tests.converters.adapters.same import converted, outputs, refusals
from tests.converters.judging import model_of

BOUNDS = np.array([-1e9, 0.05, 0.1, 16777216.0, 16777217.0, 1e9])


def clip(low, high):
    return f"""
    <ir_version: 8, opset_import: ["": 13]>
    g (double[N] x) => (double[N] y) <double low = {{{low}}}, double high = {{{high}}}> {{ y = Clip(x, low, high) }}
    """


def pad(mode, value):
    return f"""
    <ir_version: 8, opset_import: ["": 13]>
    g (double[3] x) => (double[6] y) <int64[2] pads = {{1, 2}}, double value = {{{value}}}>
    {{ y = Pad<mode = "{mode}">(x, pads, value) }}
    """


def power(base, exponent, known=""):
    return f"""
    <ir_version: 8, opset_import: ["": 13]>
    g ({base}[2] x{"" if known else f", {exponent}[2] n"}) => ({base}[2] y)
    <{f"{exponent}[2] n = {known}" if known else ""}> {{ y = Pow(x, n) }}
    """


def assert_equal(text, to, feeds):
    result, report = converted(text, to)
    assert report.state != "refused", [refusal.reason for refusal in report.refusals]
    want = outputs(parser.parse_model(text), feeds)
    for one, other in zip(want, outputs(result.proto, feeds), strict=True):
        np.testing.assert_array_equal(one, other)
    return [node.op_type for node in result.proto.graph.node]


@pytest.mark.parametrize(("low", "high"), [(0.1, 1e6), (-1.0, 16777217.0), (-1.0, 1e300)])
def test_bounds_are_not_rounded(low, high):
    assert assert_equal(clip(low, high), 10, {"x": BOUNDS}) == ["Max", "Min"]
    assert "hold float32" in refusals(clip(low, high), 7)[0]


def test_bounds_that_fit_stay_bounds():
    result, _ = converted(clip(0.5, 16777216.0), 10)
    assert [node.op_type for node in result.proto.graph.node] == ["Clip"]


def test_what_is_padded_with_is_not_rounded():
    x = {"x": np.array([0.0, 1.0, 2.0])}
    assert "Pad" not in assert_equal(pad("constant", 0.1), 10, x)
    assert "Pad" not in assert_equal(pad("constant", 1e300), 9, x)
    assert assert_equal(pad("constant", 0.5), 8, x) == ["Pad"]
    assert assert_equal(pad("reflect", 0.1), 8, x) == ["Pad"]
    assert "of wider types" in refusals(pad("constant", 0.1), 8)[0]


@pytest.mark.parametrize("base", ["float", "float16"])
def test_odd_exponents_stay_odd(base):
    dtype = {"float": np.float32, "float16": np.float16}[base]
    feeds = {"x": np.array([-1, 2], dtype), "n": np.array([16777217, 3], np.int32)}
    assert_equal(power(base, "int32"), 10, feeds)
    assert_equal(power(base, "int32", "{16777217, 3}"), 10, {"x": feeds["x"]})
    ops = assert_equal(power("float", "int32", "{2, 3}"), 10, {"x": np.array([-1.5, 2], np.float32)})
    assert ops == ["Cast", "Pow"]


def test_exponents_that_only_a_float64_holds():
    feeds = {"x": np.array([3, 1e30], np.float32), "n": np.array([0.1, 0.3])}
    assert_equal(power("float", "double"), 10, feeds)


def test_whole_powers_of_exponents_that_no_float64_holds():
    assert "do not all fit" in refusals(power("int32", "uint64"), 10)[0]


OLD = "g (double[4] x) => (double[4] y) <double low = {0}, double high = {16777217}> { y = Clip (x, low, high) }"
NEW = "g (double[4] x) => (double[4] y) <double low = {0}, double high = {16777216}> { y = Clip (x, low, high) }"


def test_a_certificate_of_what_only_chooses_is_exact():
    old, new = model_of(OLD, 13), model_of(NEW, 12)
    assert compare(old, new, Limits(20.0), by_body=False).state == "differs"
    assert compare(old, old, Limits(20.0), by_body=False).state == "same"


def test_a_certificate_feeds_what_lies_around_constants():
    old = model_of("g (float[2] x) => (float[2] y) { y = ThresholdedRelu <alpha = 7777.0> (x) }", 10)
    new = model_of("g (float[2] x) => (float[2] y) { y = ThresholdedRelu <alpha = 7776.0> (x) }", 22)
    assert compare(old, new, Limits(20.0), by_body=False).state == "differs"
