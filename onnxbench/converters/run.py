"""Convert a model and prove that it computes the same."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from onnx import ModelProto

from onnxbench.converters import header
from onnxbench.converters.engine import Engine
from onnxbench.converters.options import ConvertOptions
from onnxbench.converters.proof import prove
from onnxbench.converters.report import Conversion
from onnxbench.converters.specialize import specialized
from onnxbench.converters.verdict import verdict
from onnxbench.core.graph import GraphView, plain_domain, refuse_doubles
from onnxbench.core.model import Model
from onnxbench.core.slimming import fatten, slim
from onnxbench.verify import Feeds

#: How deep functions that call functions are told apart.
_TRIES = 4


def convert_model(
    model: Model, options: ConvertOptions, feeds: Callable[[Model], Iterable[Feeds]] | None = None
) -> tuple[Model | None, Conversion]:
    """The model in other opsets, verified, and the report; no model if it was refused or did not verify.

    Args:
        model: not changed; its external weights stay where they are, and are not read.
        options: the target, and what it may cost.
        feeds: gives inputs of the model to verify with; made up if there is none.

    Raises:
        ModelError: OB305 if the model is invalid (two nodes make one value, an unknown operator of ai.onnx, no opset).
        UsageError: OB201 for an opset that the installed onnx does not know.
    """
    started = time.monotonic()
    header.refuse_unknown(options.targets)
    header.refuse_unexpandable(options.expand)
    refuse_doubles(GraphView(model.proto, model.proto.graph), model.label)
    header.refuse_unclear(model)
    source = slim(model)
    report = Conversion(model.label)
    header.describe(source, report)
    if _stays(source, options):
        report.state, report.after, report.ir_after = "unchanged", report.before, report.ir_before
        report.seconds = time.monotonic() - started
        return model, report
    source, engine, notes = _converted(source, options)
    result = engine.result
    report.notes += notes
    report.nodes, report.rewrites, report.refusals = engine.nodes, engine.rewrites, engine.refusals
    if engine.refusals:
        report.state = "refused"
        report.seconds = time.monotonic() - started
        return None, report
    header.stamp(source.proto, result, options)
    done = Model(result, source.folder, None, source.label)
    header.describe_result(result, report)
    if options.verify:
        prove(source, done, engine.rewritten, report, options, feeds)
    else:
        report.reason = "verification is off"
    report.seconds = time.monotonic() - started
    return (None if report.state == "mismatch" else done), report


def convert(model: ModelProto, to: int | Mapping[str, int], options: ConvertOptions | None = None) -> ModelProto:
    """`convert_model` for a model in memory, whose weights it holds itself.

    Args:
        model: not changed.
        to: the opset of ai.onnx, or opsets by domain.
        options: what it may cost; the targets in it do not count.

    Raises:
        AnswerIsNo: OB107 if a node cannot be converted.
        SafetyStop: OB501 if the result computes something else.
    """
    targets = {"": to} if isinstance(to, int) else {plain_domain(domain): version for domain, version in to.items()}
    converted, report = convert_model(Model(model), replace(options or ConvertOptions(), targets=targets))
    stop = verdict(report)
    if stop is not None:
        raise stop
    assert converted is not None
    return fatten(converted).proto


def _converted(source: Model, options: ConvertOptions) -> tuple[Model, Engine, list[str]]:
    """The engine after its work; functions that it refuses get a copy for each kind of call, and another try."""
    notes: list[str] = []
    for _ in range(_TRIES):
        result = ModelProto()
        result.CopyFrom(source.proto)
        engine = Engine(source, result, options)
        engine.run()
        if not engine.refused_functions:
            break
        apart = specialized(source, engine.refused_functions, options)
        if apart is None:
            break
        more = len(apart.proto.functions) - len(source.proto.functions)
        notes = [
            f"{more} copies of functions were made: their calls have attributes or types that a node in them depends on"
        ]
        source = apart
    return source, engine, notes


def _stays(model: Model, options: ConvertOptions) -> bool:
    """Whether there is nothing to do."""
    proto = model.proto
    if options.expand or options.ir not in (None, proto.ir_version):
        return False
    groups = [proto.opset_import, *(function.opset_import for function in proto.functions)]
    return all(options.end(plain_domain(e.domain), e.version) == e.version for group in groups for e in group)
