"""Whether one branch of an If always leads to failure, and the other fails in its stead once it has its place."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import reduce
from operator import or_

from onnx import ModelProto, NodeProto

from onnxbench.core.attributes import subgraphs
from onnxbench.core.graph import GraphView, Node
from onnxbench.core.hoist import every_name, hoist
from onnxbench.core.model import Model
from onnxbench.core.refusals import Question, refused
from onnxbench.core.shape_rules.light import lighten
from onnxbench.core.shapes import Shapes, propagate
from onnxbench.core.types import strict_refusal
from onnxbench.errors import ModelError
from onnxbench.folding import guards
from onnxbench.folding.changes import Changes, apply, write_back
from onnxbench.folding.options import FoldOptions
from onnxbench.folding.passes import passes
from onnxbench.folding.premise import premise, twin
from onnxbench.folding.reach import needing, touched
from onnxbench.folding.scope import Scope, is_default_domain
from onnxbench.folding.simplify import settle
from onnxbench.folding.sweep import sweep

#: Passes that open what ranks decide; others have nothing to say about ranks.
_OPENING = frozenset({"branches"})


@dataclass(frozen=True, slots=True)
class Wager:
    """That an `If` may give way to a branch.

    Attributes:
        condition: of the `If`.
        truth: where it has this truth the branch that stays is taken in the source too.
        guard: a node of that branch that fails wherever the condition has the other truth.
        value: what the guard reads.
        ranks: one of these `value` must have for that; empty for any.
    """

    condition: str
    truth: bool
    guard: NodeProto
    value: str
    ranks: frozenset[int]


def doom(scope: Scope, wager: Wager) -> str:
    """The node on which every run ends that chooses the other branch; empty if one might survive.

    Whoever asks for one output alone must get the same failure as well: each output that may depend on the `If` has to
    need the node that fails, and the guard after the exchange.
    """
    made = [
        n for node in scope.view.nodes if _is_chosen_by(node.proto, wager.condition) for n in node.proto.output if n
    ]
    try:
        nodes, outputs = touched(scope.view, made)
        label = _failure(scope, wager, nodes, outputs) if outputs else ""
        return label if label and _guards_stay(scope, wager, outputs) else ""
    except ModelError:  # a circle of nodes, or of calls
        return ""


def _is_chosen_by(node: NodeProto, condition: str) -> bool:
    return node.op_type == "If" and is_default_domain(node) and node.input[0] == condition


def _failure(scope: Scope, wager: Wager, nodes: set[int], outputs: int) -> str:
    """A node that refuses a rank with the other branch in place, if such nodes bring down all of these outputs.

    Only what may depend on the `If` is looked at.
    """
    options = scope.options
    certain = premise(scope)
    if wager.ranks and _rank(certain.known, wager.value) not in wager.ranks:
        return ""
    chosen = {node.index for node in scope.view.nodes if _is_chosen_by(node.proto, wager.condition)}
    names = [name for place, name in enumerate(scope.view.outputs) if outputs >> place & 1]
    world = certain.part(nodes | chosen, names)
    hoist(world.graph, {wager.condition: not wager.truth}, avoid=set(every_name(world.graph)))
    settle(Model(world), _only(options, _OPENING))
    known = propagate(Model(world), timeout=options.inference_time, memory=options.limits.memory)
    view = GraphView(world, world.graph)
    needed = needing(view)
    failing = [node for node in _refusing(view, known, options) if needed[node.index]]
    downed = reduce(or_, (needed[node.index] for node in failing), 0)
    return failing[0].label if downed == (1 << len(names)) - 1 else ""


def _refusing(view: GraphView, known: Shapes, options: FoldOptions) -> list[Node]:
    """The nodes of the graph itself that onnx refuses for the ranks that they read, in an order that can run."""
    asked = [node for node in view.order if _can_be_asked(node.proto)]
    version = view.opsets.get("", 1)
    questions = [
        Question(
            node.proto.SerializeToString(),
            version,
            tuple(_told(known, name) if name else (None, None) for name in node.proto.input),
        )
        for node in asked
    ]
    answers = refused(questions, timeout=options.inference_time, memory=options.limits.memory)
    return [node for node, answer in zip(asked, answers, strict=True) if answer]


def _can_be_asked(node: NodeProto) -> bool:
    return is_default_domain(node) and bool(node.input) and not any(True for _ in subgraphs(node))


def _told(known: Shapes, name: str) -> tuple[int | None, int | None] | None:
    kind = known.type(name)
    if kind is not None and kind.WhichOneof("value") != "tensor_type":
        return None
    return known.element(name), _rank(known, name)


def _rank(known: Shapes, name: str) -> int | None:
    dims = known.dims(name)
    return None if dims is None else len(dims)


def _guards_stay(scope: Scope, wager: Wager, outputs: int) -> bool:
    """Whether the guard brings down these outputs after the exchange, when all other passes are done.

    And each Squeeze of the graphs around it what it did before: it may be the guard of another exchange.
    """
    proto = ModelProto()
    proto.CopyFrom(scope.model.proto)
    model = dataclasses.replace(scope.model, proto=proto)
    place = twin(scope, model)
    changes = Changes(place)
    for ours, theirs in zip(scope.view.nodes, place.view.nodes, strict=True):
        if _is_chosen_by(theirs.proto, wager.condition):
            changes.hoist(theirs, wager.truth, "", "")
            for guard in _like(wager.guard, ours.proto, theirs.proto):
                guards.put(guard, outputs)
    apply(changes)
    changed = twin(scope, model)
    marks = 1 + sum(map(_mark_squeezes, changed.view.outward()))
    write_back(changed)
    prompt = {*(entry.name for entry in passes() if not entry.late), "unused"}
    settle(model, _only(scope.options, prompt.difference(scope.options.skip)))
    sweep(proto)
    return guards.standing(proto) == marks and not _is_refused(model, scope)


def _is_refused(model: Model, scope: Scope) -> bool:
    """Whether inference refuses what it did not refuse before: then the branch that stays does not survive either."""
    third, memory = scope.options.inference_time, scope.options.limits.memory
    if strict_refusal(Model(lighten(model)), timeout=third, memory=memory) is None:
        return False
    return strict_refusal(Model(lighten(scope.model)), timeout=third, memory=memory) is None


def _mark_squeezes(view: GraphView) -> int:
    squeezes = [node for node in view.nodes if node.proto.op_type == "Squeeze" and is_default_domain(node.proto)]
    needed = needing(view) if squeezes else {}
    alive = [node for node in squeezes if needed[node.index]]
    for node in alive:
        guards.put(node.proto, needed[node.index])
    return len(alive)


def _like(wanted: NodeProto, ours: NodeProto, theirs: NodeProto) -> Iterator[NodeProto]:
    """The node of a body in a copy of its `If`."""
    for (_, body), (_, other) in zip(subgraphs(ours), subgraphs(theirs), strict=True):
        yield from (copy for node, copy in zip(body.node, other.node, strict=True) if node is wanted)


def _only(options: FoldOptions, names: Collection[str]) -> FoldOptions:
    """The options with all other passes left out."""
    others = {*(entry.name for entry in passes()), "unused"}.difference(names)
    return dataclasses.replace(options, skip=sorted(others))
