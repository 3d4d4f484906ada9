"""Convert a model and prove that it computes the same."""

from __future__ import annotations

import contextlib
import gc
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TypeVar

from onnx import ModelProto

from onnxbench.converters import expand, header
from onnxbench.converters.engine import Engine
from onnxbench.converters.options import ConvertOptions
from onnxbench.converters.proof import prove
from onnxbench.converters.reach import furthest
from onnxbench.converters.report import Conversion
from onnxbench.converters.specialize import specialized
from onnxbench.converters.verdict import verdict
from onnxbench.core.graph import GraphView, plain_domain, refuse_doubles
from onnxbench.core.model import Model
from onnxbench.core.slimming import fatten, slim
from onnxbench.verify import Feeds

#: How deep functions that call functions are told apart.
_TRIES = 4
_E = TypeVar("_E", bound=Engine)


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
        UsageError: OB201 for an opset, an IR version or an operator to expand that the installed onnx does not know.
    """
    started = time.monotonic()
    header.refuse_unknown(options.targets)
    header.refuse_unheard(options)
    if _has_doubles(model.proto):  # which takes no view of the graph
        refuse_doubles(GraphView(model.proto, model.proto.graph), model.label)
    header.refuse_unclear(model)
    source = slim(model)
    report = Conversion(model.label)
    header.describe(source, report)
    if _stays(source, options):
        report.state, report.after, report.ir_after = "unchanged", report.before, report.ir_before
        report.seconds = time.monotonic() - started
        return model, report
    source, engine, notes = converted(source, options, Engine)
    result = engine.result
    report.notes += notes
    report.nodes, report.rewrites, report.refusals = engine.nodes, engine.rewrites, engine.refusals
    if engine.refusals:
        report.state = "refused"
        report.furthest = header.spelled(_furthest(source, engine, options))
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


@contextlib.contextmanager
def _uncollected() -> Iterator[None]:
    """No garbage is looked for: what a conversion makes of many nodes all stays, and is a third of the time to go through."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def _has_doubles(proto: ModelProto) -> bool:
    names = [name for node in proto.graph.node for name in node.output if name]
    return len(names) != len(set(names))


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
    result, report = convert_model(Model(model), replace(options or ConvertOptions(), targets=targets))
    stop = verdict(report)
    if stop is not None:
        raise stop
    assert result is not None
    return fatten(result).proto


def converted(source: Model, options: ConvertOptions, make: Callable[..., _E]) -> tuple[Model, _E, list[str]]:
    """The model that was converted, the engine after its work, and notes.

    Functions that it refuses get a copy for each kind of call, and another try.

    Args:
        source: the model, slim.
        options: what is asked.
        make: makes an engine of the model, a copy of its protobuf, and the options.
    """
    notes, absent = [], expand.absences(source.proto, options.expand)
    for _ in range(_TRIES):
        result = ModelProto()
        result.CopyFrom(source.proto)
        engine = make(source, result, options)
        with _uncollected():
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
    return source, engine, [*notes, *absent]


def _furthest(source: Model, engine: Engine, options: ConvertOptions) -> dict[str, int]:
    """How near to the targets the whole model gets, as another conversion confirms; nothing if it does not."""
    found = furthest(engine)
    if not found:
        return {}
    _, again, _ = converted(source, replace(options, targets=found), Engine)
    return {} if again.refusals else found


def _stays(model: Model, options: ConvertOptions) -> bool:
    """Whether there is nothing to do."""
    proto = model.proto
    if options.expand or options.ir not in (None, proto.ir_version):
        return False
    groups = [proto.opset_import, *(function.opset_import for function in proto.functions)]
    return all(options.end(plain_domain(e.domain), e.version) == e.version for group in groups for e in group)
