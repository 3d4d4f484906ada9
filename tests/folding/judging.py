"""Fold a small model and judge the result without any of our own code: ONNX Runtime without optimizations on both."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import onnx
import onnxruntime as ort
from onnx import GraphProto, ModelProto, NodeProto, TypeProto, parser
from onnx.reference import ReferenceEvaluator

from onnxbench import Model
from onnxbench.core.weights import fatten
from onnxbench.folding.options import FoldOptions
from onnxbench.folding.report import Folding
from onnxbench.folding.run import fold_model
from onnxbench.folding.simplify import simplify
from onnxbench.runtimes.base import Limits

Feeds = Mapping[str, np.ndarray]

HEADER = '<ir_version: 10, opset_import: ["": 21, "local": 1, "custom": 1]>'
LIMITS = Limits(20.0)


def model_of(text: str, header: str = HEADER) -> ModelProto:
    """A model from ONNX text, with a header unless it has its own."""
    return parser.parse_model(text if text.lstrip().startswith("<ir_version") else header + text)


def fold(source: ModelProto | str, **options: object) -> tuple[ModelProto, Folding]:
    """The folded model, proven by the command's own means too."""
    proto = model_of(source) if isinstance(source, str) else source
    limits = options.pop("limits", LIMITS)
    folded, report = fold_model(Model(proto, label="trap"), FoldOptions(limits=limits, **options))  # type: ignore[arg-type]
    return fatten(folded).proto, report


def bare(source: ModelProto | str, **options: object) -> ModelProto:
    """The folded model, as it is before anything is proven: a wrong one is not caught but shown."""
    proto = model_of(source) if isinstance(source, str) else source
    limits = options.pop("limits", LIMITS)
    folded, _ = simplify(Model(proto, label="trap"), FoldOptions(limits=limits, **options))  # type: ignore[arg-type]
    return folded.proto


def ops(holder: ModelProto | GraphProto) -> list[str]:
    """Operators of the main graph, in order."""
    nodes = holder.graph.node if isinstance(holder, ModelProto) else holder.node
    return [node.op_type for node in nodes]


def all_ops(model: ModelProto) -> list[str]:
    """Operators everywhere, bodies and functions included, sorted."""
    pending: list[NodeProto] = [*model.graph.node, *(node for f in model.functions for node in f.node)]
    return sorted(node.op_type for node in _with_inner(pending))


def _with_inner(nodes: list[NodeProto]) -> Iterator[NodeProto]:
    for node in nodes:
        yield node
        for attribute in node.attribute:
            for graph in [attribute.g, *attribute.graphs]:
                yield from _with_inner(list(graph.node))


def run(model: ModelProto, feeds: Feeds) -> list[object]:
    """Outputs by ONNX Runtime without optimizations, or by the reference where that has no kernel."""
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    try:
        session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        return list(session.run(None, dict(feeds)))
    except Exception as error:
        if "NOT_IMPLEMENTED" not in str(error) and "NotImplemented" not in type(error).__name__:
            raise
        return list(ReferenceEvaluator(model).run(None, dict(feeds)))


def assert_same(before: ModelProto, after: ModelProto, feeds: Feeds, *, exact: bool = True) -> None:
    """Both give the same outputs for these inputs."""
    for name, want, got in zip(outputs(before), run(before, feeds), run(after, feeds), strict=True):
        _assert_equal(name, want, got, exact)


def _assert_equal(name: str, want: object, got: object, exact: bool) -> None:
    if isinstance(want, list):
        assert isinstance(got, list)
        assert len(want) == len(got)
        for one, other in zip(want, got, strict=True):
            _assert_equal(name, one, other, exact)
        return
    left, right = np.asarray(want), np.asarray(got)
    assert left.dtype == right.dtype, name
    assert left.shape == right.shape, name
    if exact or left.dtype.kind not in "f":
        np.testing.assert_array_equal(left, right, err_msg=name)
    else:
        np.testing.assert_allclose(left, right, rtol=1e-4, atol=1e-5, err_msg=name)


def outputs(model: ModelProto) -> list[str]:
    return [value.name for value in model.graph.output]


def interface(model: ModelProto) -> list[tuple[str, TypeProto]]:
    """Names and types of inputs, then of outputs."""
    return [(v.name, v.type) for v in (*model.graph.input, *model.graph.output)]


def judged(source: ModelProto | str, *feeds: Feeds, exact: bool = True, **options: object) -> ModelProto:
    """Fold, and assert all that must hold of every fold: outputs, interface, validity, nothing left to do, same bytes."""
    proto = model_of(source) if isinstance(source, str) else source
    before = proto.SerializeToString(deterministic=True)
    raw = bare(proto, **options)
    for given in feeds:
        assert_same(proto, raw, given, exact=exact)
    folded, report = fold(proto, **options)
    assert proto.SerializeToString(deterministic=True) == before, "the source was changed"
    assert folded.SerializeToString(deterministic=True) == raw.SerializeToString(deterministic=True)
    if not options:
        assert interface(folded) == interface(proto)
    if _is_valid(proto):
        onnx.checker.check_model(folded, full_check=True)
    again, second = fold(folded, **options)
    assert not second.removals, [removal.reason for removal in second.removals]
    assert again.SerializeToString(deterministic=True) == folded.SerializeToString(deterministic=True)
    assert all(removal.reason for removal in report.removals)
    return folded


def _is_valid(proto: ModelProto) -> bool:
    try:
        onnx.checker.check_model(proto, full_check=True)
    except Exception:
        return False
    return True


def random(*dims: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=dims).astype(np.float32)


#: Inputs of a model that takes x[N, 4], the empty batch among them.
SIZES = [{"x": random(n, 4)} for n in (0, 1, 2, 7)]


def runs(model: ModelProto, feeds: Feeds) -> bool:
    """Whether a model takes these inputs."""
    try:
        run(model, feeds)
    except Exception:
        return False
    return True
