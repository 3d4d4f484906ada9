import json
import math

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from onnx import TensorProto

from onnxbench.core.compare import Tolerance, differ, differ_all
from onnxbench.core.values import dtype_of

NUMERIC = [
    d for c in TensorProto.DataType.values() if c not in (0, TensorProto.STRING) and (d := dtype_of(c)) is not None
]


@pytest.mark.parametrize("dtype", NUMERIC, ids=str)
def test_a_value_never_differs_from_itself(dtype):
    bits = (
        np.arange(256, dtype=np.uint8) if dtype.itemsize == 1 else np.random.default_rng(0).bytes(64 * dtype.itemsize)
    )
    value = np.frombuffer(bytes(bits), dtype) if dtype.kind != "b" else np.array([True, False])
    if dtype.name in ("int4", "uint4", "int2", "uint2", "float4_e2m1fn", "float6_e2m3fn", "float6_e3m2fn"):
        value = np.arange(4).astype(dtype)
    assert differ(value, value.copy()) is None


@given(
    npst.arrays(
        st.sampled_from([np.float32, np.float64, np.complex64, np.int64]), npst.array_shapes(min_dims=0, min_side=0)
    )
)
def test_any_array_with_nan_and_inf_equals_itself_in_any_layout(value):
    assert differ(value, value.copy(order="F")) is None


@given(npst.arrays(np.float64, 4), npst.arrays(np.float64, 4))
def test_reports_are_json_without_nan_tokens(want, got):
    difference = differ(want, got, name="y")
    if difference is not None:
        json.dumps(difference.to_dict(), allow_nan=False)
        assert "\n" not in difference.sentence()


@given(st.sampled_from([None, np.zeros(2), [np.zeros(2)], []]), st.sampled_from([None, np.zeros(2), [np.zeros(2)], []]))
def test_an_empty_optional_differs_from_everything_but_itself_both_ways(a, b):
    assert (differ(a, b) is None) == (differ(b, a) is None)
    if (a is None) != (b is None):
        assert differ(a, b).kind == "presence"


@pytest.mark.parametrize(
    "dtype, inside, beyond",
    [
        (np.float64, 1 + 1e-7, 1 + 1.02e-7),
        (np.float32, 1.0001, 1.0002),
        (np.float16, 1.01, 1.013),
        (ml_dtypes.bfloat16, 1.0078125, 1.015625),
        (ml_dtypes.float8_e4m3fn, 1.125, 1.25),
        (ml_dtypes.float8_e5m2, 1.25, 1.5),
    ],
)
def test_default_tolerances(dtype, inside, beyond):
    one = np.array([1], dtype)
    assert differ(one, np.array([inside], dtype)) is None
    assert differ(one, np.array([beyond], dtype)).kind == "values"


def test_atol_is_a_share_of_the_largest_finite_element():
    want = np.array([1000, 0, np.inf], np.float32)
    assert differ(want, np.array([1000, 0.009, np.inf], np.float32)) is None
    assert differ(want, np.array([1000, 0.011, np.inf], np.float32)).where == (1,)


def test_integers_are_exact_beyond_float64_and_whatever_the_tolerance():
    difference = differ(np.array(2**60), np.array(2**60 + 1), Tolerance(rtol=1.0, atol=1.0))
    assert (difference.max_abs, difference.where, difference.want_at) == (1.0, (), 2**60)
    assert differ(np.array([2**64 - 1], np.uint64), np.array([2**64 - 2], np.uint64)).max_abs == 1.0
    assert differ(np.array([-8], ml_dtypes.int4), np.array([7], ml_dtypes.int4)).max_abs == 15.0


@pytest.mark.parametrize("got", [[np.inf, 1], [0, 1], [-np.inf, np.nan], [np.nan, 1]])
def test_patterns_of_nan_and_inf_are_exact(got):
    difference = differ(np.array([-np.inf, 1.0]), np.array(got, float), Tolerance(rtol=1e9))
    assert difference.kind == "nonfinite"


def test_what_a_difference_tells():
    difference = differ(np.array([[3.0, 4.0], [0.0, 0.0]]), np.array([[3.0, 4.0], [0.0, 5.0]]), name="y")
    assert (difference.where, difference.first, difference.share) == ((1, 1), (1, 1), 0.25)
    assert (difference.max_abs, difference.norm_rel) == (5.0, 1.0)
    assert difference.cosine == pytest.approx(1 / math.sqrt(2))
    assert difference.sentence().startswith("'y': 25 % of elements beyond tolerance, largest error 5 at [1, 1]")


def test_large_arrays_are_told_apart_in_their_last_chunk():
    want = np.zeros(3_000_000, np.float32)
    want[0] = 1
    got = want.copy()
    got[2_999_999] = 1
    difference = differ(want, got)
    assert (difference.where, difference.share) == ((2_999_999,), 1 / 3_000_000)


def test_huge_numbers_warn_of_nothing(recwarn):
    assert differ(np.array([1e308]), np.array([-1e308])).max_abs == math.inf
    assert differ(np.array([1e300, 1e300]), np.array([1e300, 2e300])).norm_rel == pytest.approx(1 / math.sqrt(2))
    assert not recwarn.list


@pytest.mark.parametrize(
    "want, got, kind",
    [
        (np.zeros(2, np.float32), np.zeros(2, np.float64), "dtype"),
        (np.zeros((1, 2)), np.zeros(2), "shape"),
        (np.zeros((0, 2)), np.zeros((0, 3)), "shape"),
        ([np.zeros(1)], [], "shape"),
        ([np.zeros(1)], np.zeros(1), "dtype"),
        ([np.zeros(1), np.zeros(1)], [np.zeros(1), np.ones(1)], "values"),
        (np.array(["a", "b"], object), np.array(["a", "c"], object), "values"),
        (np.array([1 + 1j]), np.array([1 + 1.1j]), "values"),
    ],
)
def test_kinds(want, got, kind):
    assert differ(want, got).kind == kind


def test_missing_and_unwanted_outputs():
    found = differ_all({"a": np.zeros(1), "b": np.zeros(1)}, {"b": np.zeros(1), "c": np.zeros(1)}, Tolerance())
    assert [(d.name, d.kind) for d in found] == [("a", "presence"), ("c", "presence")]


@pytest.mark.parametrize("factor, tolerances", [(1.01, 0.01 / (1e-4 + 1e-5)), (1.0002, 0.0002 / (1e-4 + 1e-5))])
def test_a_difference_is_measured_in_tolerances(factor, tolerances):
    want = np.full(5, 2, np.float32)
    difference = differ(want, (want * factor).astype(np.float32))
    assert difference is not None
    assert difference.tolerances == pytest.approx(tolerances, rel=1e-2)


def test_where_nothing_is_allowed_a_difference_is_infinitely_many_tolerances():
    difference = differ(np.zeros(3, np.float32), np.array([0, 1e-9, 0], np.float32))
    assert difference is not None
    assert math.isinf(difference.tolerances)
    assert json.loads(json.dumps(difference.to_dict()))["tolerances"] == "Infinity"
