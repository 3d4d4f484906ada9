"""Put the branch that is always taken in the place of its If."""

from __future__ import annotations

from onnxbench.core.attributes import subgraphs
from onnxbench.core.graph import Node
from onnxbench.folding.changes import Changes
from onnxbench.folding.constancy import refers
from onnxbench.folding.passes import fold_pass
from onnxbench.folding.scope import Scope, is_default_domain


@fold_pass("branches", "put the branch that is always taken in the place of its If", rank=0)
def branches(changes: Changes) -> None:
    """If-1: the branch that its condition chooses is all that it computes; names that clash get a number."""
    scope = changes.scope
    for node in scope.view.nodes:
        if node.proto.op_type != "If" or not is_default_domain(node.proto) or refers(node.proto):
            continue
        numbers = scope.numbers(node.proto.input[0])
        if numbers and len(numbers) == 1 and isinstance(numbers[0], int) and has_room(scope, node, bool(numbers[0])):
            truth = bool(numbers[0])
            changes.hoist(node, truth, "branches", f"its condition is always {str(truth).lower()}")


def has_room(scope: Scope, node: Node, truth: bool) -> bool:
    """Whether the graph can hold what the branch stores."""
    wanted = "then_branch" if truth else "else_branch"
    bodies = (body for label, body in subgraphs(node.proto) if label == wanted)
    return all(scope.can_hold(tensor.name, tensor.data_type) for body in bodies for tensor in body.initializer)
