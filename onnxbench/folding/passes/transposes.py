"""Let one Transpose do what two in a row do."""

from __future__ import annotations

from collections.abc import Sequence

from onnx import AttributeProto, NodeProto

from onnxbench.core.graph import Node
from onnxbench.folding.changes import Changes
from onnxbench.folding.constancy import refers
from onnxbench.folding.passes import fold_pass
from onnxbench.folding.scope import Scope, is_default_domain


@fold_pass("transposes", "let one Transpose do what two in a row do", rank=5)
def transposes(changes: Changes) -> None:
    """Transpose-1: axis i of the result is axis perm[i] of the input; only where nobody else reads the first one."""
    scope = changes.scope
    for node in scope.view.nodes:
        if not is_transpose(node.proto) or not changes.is_open(node):
            continue
        between = node.proto.input[0]
        first = scope.view.producer.get(between)
        if first is None or not is_transpose(first.proto) or not changes.is_open(first):
            continue
        if len(scope.view.consumers[between]) > 1 or between in scope.outputs or between in changes.renames:
            continue
        before, after = permutation(scope, first), permutation(scope, node)
        if before is None or after is None or len(before) != len(after):
            continue
        copy = NodeProto()
        copy.CopyFrom(node.proto)
        copy.input[0] = first.proto.input[0]
        del copy.attribute[:]
        copy.attribute.add(name="perm", type=AttributeProto.INTS).ints.extend(before[axis] for axis in after)
        changes.replace(node, copy, "transposes", f"does what {first.label} and itself did")


def is_transpose(node: NodeProto) -> bool:
    """Whether a node is a Transpose whose axes are its own."""
    return node.op_type == "Transpose" and is_default_domain(node) and not refers(node)


def permutation(scope: Scope, node: Node) -> Sequence[int] | None:
    """The axis of the input that each axis of a Transpose's result is; None if it is not known."""
    given = next((attribute for attribute in node.proto.attribute if attribute.name == "perm"), None)
    if given is not None:
        order = list(given.ints)
        return order if sorted(order) == list(range(len(order))) else None
    dims = scope.dims(node.proto.input[0])
    return None if dims is None else range(len(dims))[::-1]
