"""Convert a model written as text, and compare what ONNX Runtime makes of both."""

import numpy as np
import onnxruntime
from onnx import parser

from onnxbench.converters.options import ConvertOptions
from onnxbench.converters.run import convert_model
from onnxbench.core.model import Model


def converted(text, target):
    """The result and the report, not verified."""
    proto = parser.parse_model(text) if isinstance(text, str) else text
    return convert_model(Model(proto, label="m"), ConvertOptions(targets={"": target}, verify=False))


def outputs(proto, feeds):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(proto.SerializeToString(), options).run(None, feeds)


def assert_same(text, target, feeds, want=None, rtol=1e-5, atol=1e-6):
    """The model at the target gives what it gave, or what is wanted where the runtime cannot run the source."""
    proto = parser.parse_model(text) if isinstance(text, str) else text
    result, report = converted(proto, target)
    assert report.state != "refused", [refusal.reason for refusal in report.refusals]
    assert {entry.version for entry in result.proto.opset_import if not entry.domain} == {target}
    got = outputs(result.proto, feeds)
    for expected, made in zip(outputs(proto, feeds) if want is None else want, got, strict=True):
        if isinstance(expected, list):
            assert len(expected) == len(made)
            for one, other in zip(expected, made, strict=True):
                np.testing.assert_allclose(other, one, rtol, atol)
            continue
        assert made.shape == expected.shape
        assert made.dtype == expected.dtype
        np.testing.assert_allclose(made, expected, rtol, atol)
    return result.proto


def refusals(text, target):
    """Why a model is refused."""
    result, report = converted(text, target)
    assert result is None
    return [refusal.reason for refusal in report.refusals]
