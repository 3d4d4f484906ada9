"""Put the branch that is always taken in the place of its If."""

from __future__ import annotations

from onnxbench.folding.changes import Changes
from onnxbench.folding.constancy import refers
from onnxbench.folding.passes import fold_pass
from onnxbench.folding.scope import is_default_domain


@fold_pass("branches", "put the branch that is always taken in the place of its If", rank=0)
def branches(changes: Changes) -> None:
    """If-1: the branch that its condition chooses is all that it computes; names that clash get a number."""
    scope = changes.scope
    for node in scope.view.nodes:
        if node.proto.op_type != "If" or not is_default_domain(node.proto) or refers(node.proto):
            continue
        numbers = scope.numbers(node.proto.input[0])
        if numbers and len(numbers) == 1 and isinstance(numbers[0], int):
            changes.hoist(node, bool(numbers[0]))
