"""Let one node stand for all that compute the same from the same."""

from __future__ import annotations

from onnxbench.core.graph import Node
from onnxbench.folding.changes import Changes
from onnxbench.folding.constancy import is_deterministic, refers
from onnxbench.folding.passes import fold_pass
from onnxbench.folding.scope import Scope, is_constant


@fold_pass("duplicates", "let one node stand for all that compute the same from the same", rank=6)
def duplicates(changes: Changes) -> None:
    """Equal are operator, inputs, attributes and which outputs are made; random operators never are."""
    scope = changes.scope
    alike: dict[object, dict[object, Node]] = {}
    for node in scope.view.nodes:  # in file order: the first stands before all that read the others
        if not changes.is_open(node) or not any(node.outputs):
            continue
        renames = changes.renames
        inputs = tuple(renames.get(name, name) for name in node.inputs) if renames else node.inputs
        others = alike.setdefault((node.proto.op_type, inputs), {})
        if not others:  # most nodes are like no other, and need no closer look
            others[None] = node
            continue
        if None in others:
            only = others.pop(None)
            others[_key(scope, only)] = only
        key = _key(scope, node)
        other = others.setdefault(key, node)
        if other is not node and _stand_in(changes, node, other):
            changes.remove(node, "duplicates", f"computes the same as {other.label}")


def _key(scope: Scope, node: Node) -> object:
    """What nodes with the same operator and inputs differ in; something like nothing else for one that stands for itself alone."""
    proto = node.proto
    if refers(proto):
        return object()
    if not is_constant(proto) and not is_deterministic(scope.view, node, quantized=scope.options.fold_qdq):
        return object()
    attributes = tuple(sorted(attribute.SerializeToString(deterministic=True) for attribute in proto.attribute))
    outputs = tuple(bool(name) for name in node.outputs)
    return proto.domain, proto.overload, attributes, outputs


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
