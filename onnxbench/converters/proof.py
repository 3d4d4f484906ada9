"""Make sure that a converted model computes what its source does, before it is written."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable

import numpy as np

from onnxbench.converters import believed
from onnxbench.converters.certify import EMPTY, certify
from onnxbench.converters.feeding import Feeding
from onnxbench.converters.foreign import why_apart
from onnxbench.converters.forms import Rewritten
from onnxbench.converters.options import ConvertOptions
from onnxbench.converters.report import Conversion
from onnxbench.core import check
from onnxbench.core.counts import count_nodes, stored_bytes
from onnxbench.core.model import Model
from onnxbench.core.shapes import propagate
from onnxbench.core.sorting import in_order, is_unsorted
from onnxbench.core.types import strict_refusal
from onnxbench.errors import quote
from onnxbench.runtimes.base import Limits, Runtime
from onnxbench.runtimes.find import find
from onnxbench.verify import (
    LARGEST,
    MOST_NODES,
    Feeds,
    Verdict,
    drawn_outputs,
    has_moved,
    is_void,
    verify,
)

REFUSED = "shape inference refuses the result"
#: The opset from which on onnx's inference has rules for nearly every operator; before, it refuses what follows one without.
_INFERRED = 7
#: Inputs that are tried.
_MOST_SETS = 8


def prove(
    before: Model,
    after: Model,
    rewritten: list[Rewritten],
    report: Conversion,
    options: ConvertOptions,
    feeds: Callable[[Model], Iterable[Feeds]] | None,
) -> None:
    """Verify, and write into the report how far it could be verified: the state, and why it is no more.

    An invalid result of a valid source, a rewritten node that gives something else by itself, and a whole model that does
    are a mismatch.
    """
    fault = faults(before, after, options)
    if fault.startswith(REFUSED):
        fault = _without_stale_types(before, after, report, options, fault)
    if fault:
        report.state, report.reason = "mismatch", fault
        return
    report.certificates = certify(rewritten, before, after.proto, options.limits)
    for certificate in report.certificates:
        if certificate.state == "differs":
            report.state = "mismatch"
            report.reason = f"{certificate.node}, alone, gives something else: {certificate.reason}"
            return
    if not options.whole and (reason := _too_large(before)):
        _without_whole(report, f"it was not run as a whole, for it {reason} (--require-verified runs it)")
        return
    made = feeds if feeds is not None else Feeding(seed=options.seed).of
    sets = list(itertools.islice(made(before), _MOST_SETS))
    if any(EMPTY in certificate.reason for certificate in report.certificates):
        sets = [feeds for feeds in sets if not any(isinstance(v, np.ndarray) and not v.size for v in feeds.values())]
    verdict = verify(before, after, sets, runtimes=_runtimes(before, after), limits=options.limits, needs_kernels=False)
    if verdict.state == "unverified" and not verdict.runs:
        verdict = _by_two(before, after, sets, options.limits) or verdict
    report.runs = verdict.runs
    if verdict.state == "mismatch":
        apart = why_apart(before.proto)
        report.state, report.reason = "mismatch", f"{verdict.reason}; {apart}" if apart else verdict.reason
    elif verdict.state == "unverified":
        _without_whole(report, verdict.reason)
    elif unmoved := _unmoved(report, verdict.moved):
        _without_whole(report, unmoved)
    else:
        report.state, report.reason = "verified", ""


def _runtimes(before: Model, after: Model) -> list[Runtime]:
    """The reference evaluator runs both models only where it is believed about both."""
    found = [find("onnxruntime:opt=disable")]
    if believed.is_believed(before) and believed.is_believed(after):
        found.append(find("reference"))
    return found


def _by_two(before: Model, after: Model, sets: Iterable[Feeds], limits: Limits) -> Verdict | None:
    """What two runtimes tell, where ONNX Runtime runs only one of the models; None if that is nothing."""
    runs, seen = 0, []
    for feeds in sets:
        ran = believed.run(before, feeds, limits)
        if not ran.outcome.ok:
            continue
        told = believed.told(ran, believed.run(after, feeds, limits))
        if told.state != "same":
            return Verdict("mismatch" if told.state == "differs" else "unverified", told.reason, runs)
        runs += 1
        seen.append(ran.outcome.outputs)
    if not runs or all(is_void(outputs) for outputs in seen) or drawn_outputs(before):
        return None
    return Verdict("verified", "", runs, moved=has_moved(seen))


def faults(before: Model, after: Model, options: ConvertOptions) -> str:
    """What the checker or inference says of the result and not of the source; empty if nothing."""
    third, memory = options.inference_time, options.limits.memory
    fault = check.fault(after, timeout=third, memory=memory)
    if fault is not None and check.fault(before, timeout=third, memory=memory) is None:
        return f"the checker says of the result: {' '.join(fault.split())[:200]}"
    if believed.opset(after) < _INFERRED:
        return ""
    refusal = strict_refusal(_light(after), timeout=third, memory=memory)
    if refusal is not None and is_unsorted(
        after.proto.graph
    ):  # runtimes sort nodes, inference takes them as they stand
        before, after = in_order(before), in_order(after)
        refusal = strict_refusal(_light(after), timeout=third, memory=memory)
    if refusal is not None and strict_refusal(_light(before), timeout=third, memory=memory) is None:
        return f"{REFUSED}: {refusal[:200]}"
    return ""


def _without_stale_types(before: Model, after: Model, report: Conversion, options: ConvertOptions, first: str) -> str:
    """What is still wrong with a result, of which inference said the first, once types that the source declared wrongly are right.

    Inference knows more of newer operators, and finds what it could not before.
    """
    known = propagate(before, timeout=options.inference_time, memory=options.limits.memory)
    stale = {conflict.name: conflict.computed for conflict in known.conflicts if not conflict.where}
    graph = after.proto.graph
    for value in (*graph.value_info, *graph.output):
        if value.name in stale:
            value.type.CopyFrom(stale[value.name])
    fault = faults(before, after, options) if stale else first
    if not fault:
        names = ", ".join(quote(name) for name in sorted(stale)[:3])
        report.notes.append(f"the declared type of {names} contradicted what the model computes, and was put right")
    return fault


def _light(model: Model) -> Model:
    from onnxbench.core.shape_rules.light import lighten

    return Model(lighten(model), model.folder, model.path, model.label)


def _too_large(model: Model) -> str:
    size, nodes = stored_bytes(model), count_nodes(model.proto)[1]
    if size > LARGEST:
        return f"holds {size / 2**30:.1f} GiB"
    return f"has {nodes} nodes" if nodes > MOST_NODES else ""


def _unmoved(report: Conversion, moved: bool) -> str:
    """Why equal outputs say little: they are always the same, or a body may not have run."""
    if not moved:
        return "its outputs were the same whatever the inputs"
    for certificate in report.certificates:
        if ":" in certificate.where and certificate.state == "untold":
            return f"{certificate.node} stands in a body that may not have run, and alone {certificate.reason}"
    return ""


def _without_whole(report: Conversion, reason: str) -> None:
    """Certificates alone: each rewritten node gave the same; nodes that stand as they are mean the same by their schemas."""
    untold = [certificate for certificate in report.certificates if certificate.state == "untold"]
    report.reason = reason
    if untold:
        report.state = "unverified"
        report.reason += f"; {len(untold)} of {len(report.certificates)} nodes could not be compared alone"
    else:
        report.state = "certified"
