"""Make sure that a folded model computes what its source does, before it is written."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from onnxbench.core import check
from onnxbench.core.counts import stored_bytes
from onnxbench.core.graph import GraphView, Node
from onnxbench.core.model import Model
from onnxbench.core.subgraph import carve
from onnxbench.core.types import infer_strictly
from onnxbench.core.values import Value
from onnxbench.core.weights import array
from onnxbench.errors import AnswerIsNo, SafetyStop
from onnxbench.folding.constancy import constants_of
from onnxbench.folding.options import FoldOptions
from onnxbench.folding.report import Folding
from onnxbench.runtimes.find import find
from onnxbench.verify import LARGEST, Feeds, verify

#: Bytes of one constant above which it is not computed again for its certificate.
_CERTIFIED = 64 << 20


def prove(before: Model, after: Model, report: Folding, options: FoldOptions, feeds: Iterable[Feeds]) -> None:
    """Verify, and write into the report how far it could be verified.

    First each stored constant by itself: computed again from the source, it must be the same to the last bit. Then both
    models as wholes, where their weights are no more than `verify.LARGEST`.

    Raises:
        SafetyStop: OB501 if the result is invalid where the source was not, or computes something else.
    """
    _refuse_faults(before, after, options)
    report.certificates = _certify(before, after, options)
    size = stored_bytes(before)
    if size > LARGEST:
        report.state = "certified"
        report.reason = f"it was not run as a whole: it holds {size / 2**30:.1f} GiB"
        return
    verdict = verify(before, after, feeds, limits=options.limits)
    report.runs = verdict.runs
    if verdict.state == "mismatch":
        raise _stop(before, verdict.reason)
    report.state, report.reason = verdict.state, verdict.reason
    if verdict.state == "unverified" and report.certificates:
        report.state = "certified"


def _refuse_faults(before: Model, after: Model, options: FoldOptions) -> None:
    limits = options.limits
    third = limits.timeout / 3 if limits.timeout is not None else None
    fault = check.fault(after, timeout=third, memory=limits.memory)
    if fault is not None and check.fault(before, timeout=third, memory=limits.memory) is None:
        raise _stop(before, f"the checker says of the result: {' '.join(fault.split())[:200]}")
    strict = infer_strictly(_light(after), timeout=third, memory=limits.memory)
    if strict is None and infer_strictly(_light(before), timeout=third, memory=limits.memory) is not None:
        raise _stop(before, "shape inference refuses the result")


def _light(model: Model) -> Model:
    from onnxbench.core.shape_rules.light import lighten

    return Model(lighten(model), model.folder, model.path, model.label)


def _certify(before: Model, after: Model, options: FoldOptions) -> int:
    """Compute the constants of the result again from the source; how many were compared.

    Raises:
        SafetyStop: OB501 if one differs.
    """
    view = GraphView(before.proto, before.proto.graph)
    known = constants_of(view, freeze=options.freeze_initializers, quantized=options.fold_qdq)
    stored = {tensor.name: tensor for tensor in after.proto.graph.initializer}
    fresh = [n for n in stored if n in known and n in view.producer and stored[n].ByteSize() <= _CERTIFIED]
    fresh = [name for name in fresh if view.producer[name].proto.op_type != "Constant"]
    computed = _compute(before, view, fresh, options)
    for name, value in computed.items():
        if not _is_same(value, array(after, stored[name])):
            raise _stop(before, f"{name} was stored with another value than {view.producer[name].label} computes")
    return len(computed)


def _compute(model: Model, view: GraphView, names: Sequence[str], options: FoldOptions) -> dict[str, Value]:
    if not names:
        return {}
    try:
        piece = carve(model, view, _cone(view, names), {}, outputs=list(names))
    except AnswerIsNo:
        return {}
    outcome = find("onnxruntime:opt=disable").run(piece.model, piece.feeds, limits=options.limits)
    return dict(outcome.outputs) if outcome.ok else {}


def _cone(view: GraphView, names: Sequence[str]) -> list[Node]:
    wanted: dict[int, Node] = {}
    pending = [view.producer[name] for name in names]
    while pending:
        node = pending.pop()
        if node.index not in wanted:
            wanted[node.index] = node
            pending.extend(view.producer[name] for name in node.inputs if name in view.producer)
    return list(wanted.values())


def _is_same(one: Value, other: Value) -> bool:
    if not isinstance(one, np.ndarray) or not isinstance(other, np.ndarray):
        return False
    if one.dtype != other.dtype or one.shape != other.shape:
        return False
    return bool(np.array_equal(one, other)) if one.dtype.kind == "O" else one.tobytes() == other.tobytes()


def _stop(model: Model, reason: str) -> SafetyStop:
    return SafetyStop(
        "OB501",
        f"{model.label} folded did not verify, and nothing was written: {reason}",
        hint="--skip-pass NAME leaves a pass out; --explain with --dry-run shows what each would do",
    )
