"""OneHot between 9 and 11, where indices are floats that are cut off, or of a type that the depth does not fit into."""

import numpy as np
import pytest
from onnx.reference import ReferenceEvaluator
from onnxruntime.capi.onnxruntime_pybind11_state import NotImplemented as NotImplemented_

from tests.converters.judging import convert, model_of, run


def one_hot(element, opset):
    text = f"g ({element}[N] i, float d, float[2] v) => (float[N,M] y) {{ y = OneHot (i, d, v) }}"
    if element in ("int8", "float16"):
        text = text.replace("float d", "int64 d")
    return model_of(text, opset)


@pytest.mark.parametrize(("opset", "to"), [(9, 13), (13, 9)])
@pytest.mark.parametrize("element", ["float", "double", "int64", "int32"])
def test_floats_are_cut_off_before_they_are_counted(opset, to, element):
    """ONNX Runtime counts negative ones from the end at every opset, and OneHot-9 has "off" for them."""
    result, report = convert(one_hot(element, opset), to)
    assert report.state in ("verified", "unverified")
    dtype = {"float": np.float32, "double": np.float64, "int64": np.int64, "int32": np.int32}[element]
    indices = np.array([-0.5, -1.5, -1, 0.5, 1.5, 2.9, 3, -3, -4, 7]).astype(dtype)
    want = np.full((10, 3), 7.0)
    for row, index in enumerate(np.trunc(indices).astype(np.int64)):
        if 0 <= index < 3 or (opset == 13 and -3 <= index < 0):
            want[row, index] = 8.0
    feeds = {"i": indices, "d": np.array(3, np.float32), "v": np.float32([7, 8])}
    try:
        got = run(result, feeds)
    except NotImplemented_:
        got = ReferenceEvaluator(result).run(None, feeds)
    np.testing.assert_array_equal(got[0], want)


@pytest.mark.parametrize(("opset", "to", "at"), [(9, 11, {}), (11, 9, {0: 199})])
@pytest.mark.parametrize("element", ["int8", "float16"])
def test_a_depth_that_the_indices_have_no_room_for(opset, to, at, element):
    result, _ = convert(one_hot(element, opset), to, verify=False)
    dtype = {"int8": np.int8, "float16": np.float16}[element]
    depth = {"int8": 200, "float16": 2051}[element]
    (got,) = run(result, {"i": np.array([-1, 100], dtype), "d": np.array(depth), "v": np.float32([7, 8])})
    want = np.full((2, depth), 7.0)
    want[1, 100] = 8
    if at:
        want[0, depth - 1] = 8
    np.testing.assert_array_equal(got, want)
