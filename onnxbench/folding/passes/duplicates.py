"""Let one node stand for all that compute the same from the same."""

from __future__ import annotations

from onnx import NodeProto

from onnxbench.core.graph import Node
from onnxbench.folding.changes import Changes
from onnxbench.folding.constancy import is_deterministic, refers
from onnxbench.folding.passes import fold_pass
from onnxbench.folding.scope import Scope, is_constant


@fold_pass("duplicates", "let one node stand for all that compute the same from the same", rank=6)
def duplicates(changes: Changes) -> None:
    """Equal are operator, inputs, attributes and which outputs are made; random operators never are."""
    scope = changes.scope
    first: dict[object, Node] = {}
    for node in scope.view.nodes:  # in file order: the first stands before all that read the others
        if not changes.is_open(node) or not any(node.outputs) or refers(node.proto):
            continue
        if not is_constant(node.proto) and not is_deterministic(scope.view, node, quantized=scope.options.fold_qdq):
            continue
        key = _key(changes, node.proto)
        other = first.setdefault(key, node)
        if other is not node and _stand_in(changes, node, other):
            changes.remove(node, "duplicates", f"computes the same as {other.label}")


def _key(changes: Changes, node: NodeProto) -> object:
    inputs = tuple(changes.renames.get(name, name) for name in node.input)
    attributes = tuple(sorted(attribute.SerializeToString(deterministic=True) for attribute in node.attribute))
    outputs = tuple(bool(name) for name in node.output)
    return node.domain, node.op_type, node.overload, inputs, attributes, outputs


def _stand_in(changes: Changes, node: Node, other: Node) -> bool:
    """Let the readers of a node read the other; an output of the graph keeps its own maker."""
    scope: Scope = changes.scope
    touched = [*node.outputs, *other.outputs]
    if any(name in scope.outputs for name in node.outputs):
        return False
    if any(name in changes.retitled or name in changes.constants for name in touched):
        return False
    if not all(changes.may_rename(*pair) for pair in zip(node.outputs, other.outputs, strict=True)):
        return False
    for ours, theirs in zip(node.outputs, other.outputs, strict=True):
        if ours:
            for name, to in changes.renames.items():
                if to == ours:
                    changes.renames[name] = theirs
            changes.renames[ours] = theirs
    return True
