"""Make sure that a folded model computes what its source does, before it is written."""

from __future__ import annotations

from collections.abc import Iterable

from onnx import TensorProto

from onnxbench.core import check
from onnxbench.core.counts import count_nodes, stored_bytes
from onnxbench.core.graph import GraphView
from onnxbench.core.model import Model
from onnxbench.core.shapes import Shapes
from onnxbench.core.types import strict_refusal
from onnxbench.core.weights import array
from onnxbench.errors import SafetyStop
from onnxbench.folding.evaluate import Evaluator, is_same
from onnxbench.folding.options import FoldOptions
from onnxbench.folding.report import Folding
from onnxbench.folding.scope import Scope, is_constant, scopes
from onnxbench.folding.stored import tensor_of
from onnxbench.verify import LARGEST, MOST_NODES, Feeds, verify

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
    if not options.whole and (reason := _too_large(before)):
        report.state = "certified" if report.certificates else "unverified"
        report.reason = f"it was not run as a whole, for it {reason} (--require-verified runs it)"
        return
    verdict = verify(before, after, feeds, limits=options.limits)
    report.runs = verdict.runs
    if verdict.state == "mismatch":
        raise _stop(before, verdict.reason)
    report.state, report.reason = verdict.state, verdict.reason
    if verdict.state == "unverified" and report.certificates:
        report.state = "certified"


def _too_large(model: Model) -> str:
    """Why a run of the whole model costs more than it should without being asked for; empty if it does not."""
    size, nodes = stored_bytes(model), count_nodes(model.proto)[1]
    if size > LARGEST:
        return f"holds {size / 2**30:.1f} GiB"
    return f"has {nodes} nodes" if nodes > MOST_NODES else ""


def _refuse_faults(before: Model, after: Model, options: FoldOptions) -> None:
    third, memory = options.inference_time, options.limits.memory
    fault = check.fault(after, timeout=third, memory=memory)
    if fault is not None and check.fault(before, timeout=third, memory=memory) is None:
        raise _stop(before, f"the checker says of the result: {' '.join(fault.split())[:200]}")
    refusal = strict_refusal(_light(after), timeout=third, memory=memory)
    if refusal is not None and strict_refusal(_light(before), timeout=third, memory=memory) is None:
        raise _stop(before, f"shape inference refuses the result: {refusal[:200]}")


def _light(model: Model) -> Model:
    from onnxbench.core.shape_rules.light import lighten

    return Model(lighten(model), model.folder, model.path, model.label)


def _certify(before: Model, after: Model, options: FoldOptions) -> int:
    """Compute the constants of the result again from the source, in bodies and functions too; how many were compared.

    Raises:
        SafetyStop: OB501 if one differs.
    """
    sources = _by_place(before, options)
    compared = 0
    for place, result in _by_place(after, options).items():
        source = sources.get(place)
        if source is None:
            continue
        made = _stored(result.view)
        fresh = [name for name, tensor in made.items() if _is_fresh(source, name) and tensor.ByteSize() <= _CERTIFIED]
        computed = Evaluator(source).run(source.view.cone(fresh), fresh) if fresh else {}
        for name, value in computed.items():
            if not is_same(value, array(after, made[name])):
                label = source.view.producer[name].label
                raise _stop(before, f"{name} was stored with another value than {label} computes")
        compared += len(computed)
    return compared


def _by_place(model: Model, options: FoldOptions) -> dict[str, Scope]:
    """Graphs, bodies and functions by what reports call them, where that means one of them."""
    found: dict[str, list[Scope]] = {}
    for scope in scopes(model, Shapes, options, set()):
        found.setdefault(scope.where, []).append(scope)
    return {place: several[0] for place, several in found.items() if len(several) == 1}


def _stored(view: GraphView) -> dict[str, TensorProto]:
    found = dict(view.initializers)
    for node in view.nodes:
        tensor = tensor_of(node.proto) if is_constant(node.proto) else None
        if tensor is not None:
            found[node.outputs[0]] = tensor
    return found


def _is_fresh(source: Scope, name: str) -> bool:
    maker = source.view.producer.get(name)
    return maker is not None and not is_constant(maker.proto) and name in source.constants


def _stop(model: Model, reason: str) -> SafetyStop:
    return SafetyStop(
        "OB501",
        f"{model.label} folded did not verify, and nothing was written: {reason}",
        hint="--skip-pass NAME leaves a pass out; --explain with --dry-run shows what each would do",
    )
