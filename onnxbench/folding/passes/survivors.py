"""Put the branch that can succeed in the place of its If, where the other one leads to certain failure.

What PyTorch's `x.squeeze(k)` becomes is an `If`: x squeezed if the size of that axis is 1, else x as it is, of another rank.
Where a node further on takes only the first of the two ranks, the second branch never survived.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from onnx import NodeProto

from onnxbench.core.graph import GraphView, Node
from onnxbench.folding.changes import Changes
from onnxbench.folding.constancy import refers
from onnxbench.folding.doom import Wager, doom
from onnxbench.folding.lone_sizes import LoneSize, axes_of, lone_size, place_of
from onnxbench.folding.passes import fold_pass
from onnxbench.folding.passes.branches import has_room
from onnxbench.folding.reach import needing
from onnxbench.folding.scope import Scope, is_default_domain

#: Wagers of one graph that may be lost before it is left alone: each takes a walk over the graph.
_PATIENCE = 8


@fold_pass(
    "survivors", "put the branch in the place of its If whose other branch always fails later", rank=9, late="If"
)
def survivors(changes: Changes) -> None:
    """Squeeze-1 fails along an axis whose size is not 1: that is one branch, where the condition asks for this size.

    If the other one always leads to a node that refuses a rank, both fail in the same runs after the first has taken its
    place, as long as its Squeeze stays (`guards`).
    """
    scope = changes.scope
    if set(scope.outputs) != set(scope.view.outputs):
        return  # training reads more than the outputs
    for wager in islice(_candidates(scope), _PATIENCE):
        label = doom(scope, wager)
        if label:
            _hoist_all(changes, wager, label)
            return


def _hoist_all(changes: Changes, wager: Wager, label: str) -> None:
    branch = "else_branch" if wager.truth else "then_branch"
    for node in changes.scope.view.nodes:
        if _is_if(node) and node.proto.input[0] == wager.condition:
            reason = f"its {branch} never survives: {label} refuses the rank that comes of it"
            changes.hoist(node, wager.truth, "survivors", reason)


def _candidates(scope: Scope) -> Iterator[Wager]:
    """Ifs with a branch that fails by itself wherever the condition chooses the other."""
    asked: dict[str, LoneSize | None] = {}
    for node in scope.view.nodes:
        if not _is_if(node):
            continue
        condition = node.proto.input[0]
        if condition not in asked:
            asked[condition] = lone_size(scope, scope.view, condition)
        size = asked[condition]
        if size is not None and _all_have_room(scope, condition, size.truth):
            guard = _guard(scope, node, size)
            if guard is not None:
                yield Wager(condition, size.truth, guard[0], size.place.name, guard[1])


def _is_if(node: Node) -> bool:
    return node.proto.op_type == "If" and is_default_domain(node.proto)


def _all_have_room(scope: Scope, condition: str, truth: bool) -> bool:
    alike = [node for node in scope.view.nodes if _is_if(node) and node.proto.input[0] == condition]
    return all(not refers(node.proto) and has_room(scope, node, truth) for node in alike)


def _guard(scope: Scope, node: Node, size: LoneSize) -> tuple[NodeProto, frozenset[int]] | None:
    """A Squeeze of the branch along that axis that an output comes from, and the ranks of its input where it is that axis."""
    wanted = "then_branch" if size.truth else "else_branch"
    for label, body in scope.view.bodies(node):
        needed = needing(body) if label == wanted else {}
        for inner in body.nodes if label == wanted else ():
            ranks = _ranks(scope, body, inner.proto, size)
            if ranks is not None and needed[inner.index]:
                return inner.proto, ranks
    return None


def _ranks(scope: Scope, body: GraphView, node: NodeProto, size: LoneSize) -> frozenset[int] | None:
    """Ranks with which a node squeezes what was asked for, empty for any; None if it does something else.

    One axis may be counted from the front, and the other from the end.
    """
    if node.op_type != "Squeeze" or not is_default_domain(node) or place_of(body, node.input[0]) != size.place:
        return None
    axes = axes_of(scope, body, node) or []
    if size.axis in axes:
        return frozenset()
    return frozenset(abs(size.axis - axis) for axis in axes if (axis < 0) != (size.axis < 0)) or None
