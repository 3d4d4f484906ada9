"""The quick answer is the answer of the comparison that measures."""

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from onnxbench.core.compare import Tolerance, differ_all
from onnxbench.core.kinds import _CHUNK, kinds_of_difference

DEFAULT = Tolerance()


def measured(want, got, tolerance=DEFAULT):
    return {difference.kind for difference in differ_all(want, got, tolerance)}


def odd(width):
    return st.floats(width=width, allow_subnormal=True)


@pytest.mark.parametrize("width", [32, 64])
@given(data=st.data())
def test_kinds_are_those_of_the_measured_differences(width, data):
    dtype = np.dtype(f"float{width}")
    want = data.draw(npst.arrays(dtype, st.integers(0, 5), elements=odd(width)))
    step = data.draw(st.sampled_from([0.0, 1e-12, 1e-6, 4e-5, 9e-5, 1.1e-4, 1e-3, 1.0, float("nan"), float("inf")]))
    noise = data.draw(npst.arrays(dtype, want.shape, elements=st.floats(-1, 1, width=width)))
    with np.errstate(all="ignore"):
        got = (want + np.abs(want).max(initial=0) * noise * step).astype(dtype)
    tolerance = data.draw(st.sampled_from([DEFAULT, Tolerance(0.0, 0.0), Tolerance(2.0, 0.0), Tolerance(None, 1e30)]))
    assert kinds_of_difference({"y": want}, {"y": got}, tolerance) == measured({"y": want}, {"y": got}, tolerance)


@given(
    want=npst.arrays(np.float32, 4, elements=st.floats(-1e3, 1e3, width=32)),
    got=npst.arrays(np.float32, 4, elements=st.floats(-1e3, 1e3, width=32)),
)
def test_unlike_numbers_too(want, got):
    assert kinds_of_difference({"y": want}, {"y": got}, DEFAULT) == measured({"y": want}, {"y": got})


@pytest.mark.parametrize(
    ("want", "got"),
    [
        ({"y": np.zeros(2, np.float32)}, {}),
        ({}, {"y": np.zeros(2, np.float32)}),
        ({"y": np.zeros(2, np.float32)}, {"y": np.zeros(3, np.float32)}),
        ({"y": np.zeros(2, np.float32)}, {"y": np.zeros(2, np.float64)}),
        ({"y": np.arange(3)}, {"y": np.arange(3) + 1}),
        ({"y": np.ones(2, ml_dtypes.bfloat16)}, {"y": 2 * np.ones(2, ml_dtypes.bfloat16)}),
        ({"y": [np.ones(2, np.float32)]}, {"y": [np.zeros(2, np.float32)]}),
        ({"y": np.ones(2, np.float32), "z": np.ones(2, np.float32)}, {"y": np.zeros(2, np.float32), "z": np.ones(3)}),
    ],
)
def test_every_kind_is_told(want, got):
    assert kinds_of_difference(want, got, DEFAULT) == measured(want, got) != set()


@pytest.mark.parametrize("late", [np.nan, np.inf, -np.inf])
def test_a_number_far_behind_a_wrong_one_may_be_none_at_all(late):
    want = np.ones(3 * _CHUNK, np.float32)
    got = want.copy()
    got[0], got[-1] = 9.0, late
    assert kinds_of_difference({"y": want}, {"y": got}, DEFAULT) == measured({"y": want}, {"y": got}) == {"nonfinite"}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("tolerance", [Tolerance(0.0, 1e308), Tolerance(1e308, 0.0), Tolerance(1e308, 1e308)])
def test_infinity_is_within_no_tolerance_however_large(dtype, tolerance):
    want, got = np.asarray([9.0, 1.0], dtype), np.asarray([9.0, np.inf], dtype)
    assert measured({"y": want}, {"y": got}, tolerance) == {"nonfinite"}
    assert kinds_of_difference({"y": want}, {"y": got}, tolerance) == {"nonfinite"}
