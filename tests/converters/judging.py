"""Convert a small model and judge the result without any of our own code: ONNX Runtime without optimizations on both."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx
import onnxruntime as ort
from onnx import ModelProto, checker, parser

from onnxbench import Model
from onnxbench.converters.options import ConvertOptions
from onnxbench.converters.report import Conversion
from onnxbench.converters.run import convert_model
from onnxbench.core.weights import fatten
from onnxbench.runtimes.base import Limits

Feeds = Mapping[str, object]
LIMITS = Limits(20.0)
#: What operators are known to part at.
EDGES = np.float32([np.nan, np.inf, -np.inf, 0.5, 1.5, 2.5, -2.5, -0.0, 0.0, 1.0, -1.0, 3.0, 1e4])


def model_of(body: str, opset: int, ir: int = 8, more: str = "") -> ModelProto:
    """A model from ONNX text without its header."""
    return parser.parse_model(f'<ir_version: {ir}, opset_import: ["": {opset}{more}]> {body}')


def convert(source: ModelProto, to: int | Mapping[str, int], **options: object) -> tuple[ModelProto | None, Conversion]:
    """The converted model, which is None if it was refused, and the report; verified unless that is switched off."""
    targets = {"": to} if isinstance(to, int) else to
    made, report = convert_model(
        Model(source, label="m"),
        ConvertOptions(targets=targets, limits=LIMITS, **options),  # type: ignore[arg-type]
    )
    return (None if made is None else fatten(made).proto), report


def run(model: ModelProto, feeds: Feeds) -> list[object]:
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return list(session.run(None, dict(feeds)))


def assert_same(source: ModelProto, result: ModelProto, *sets: Feeds) -> None:
    """Both give the same, NaN and infinities included, and the result is valid to the letter."""
    if _is_valid(source):
        checker.check_model(result, full_check=True)
    onnx.shape_inference.infer_shapes(result, strict_mode=True, data_prop=True)
    assert sets
    for feeds in sets:
        for want, got in zip(run(source, feeds), run(result, feeds), strict=True):
            if isinstance(want, list):
                assert len(want) == len(got)  # type: ignore[arg-type]
                continue
            np.testing.assert_array_equal(want.shape, got.shape)  # type: ignore[attr-defined]
            assert want.dtype == got.dtype  # type: ignore[attr-defined]
            if want.dtype.kind == "f":  # type: ignore[attr-defined]
                np.testing.assert_allclose(want, got, rtol=1e-3, atol=1e-6)  # type: ignore[call-overload]
            else:
                np.testing.assert_array_equal(want, got)


def _is_valid(model: ModelProto) -> bool:
    """A graph input without a shape is not, and runtimes take it all the same."""
    try:
        checker.check_model(model, full_check=True)
    except (checker.ValidationError, onnx.shape_inference.InferenceError):
        return False
    return True


def opset_of(model: ModelProto, domain: str = "") -> int:
    return next(entry.version for entry in model.opset_import if entry.domain == domain)


def drawn(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def ops(model: ModelProto) -> list[str]:
    return [node.op_type for node in model.graph.node]
