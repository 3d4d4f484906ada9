"""Remove operators that hand their input on as it is."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from onnx import AttributeProto, NodeProto

from onnxbench.folding.changes import Changes
from onnxbench.folding.constancy import refers
from onnxbench.folding.passes import fold_pass
from onnxbench.folding.scope import Scope, is_default_domain

_BIGGEST = 2**31 - 1


@fold_pass("idle", "remove operators that hand their input on as it is", rank=4)
def idle(changes: Changes) -> None:
    """Each operator by its own rule; outputs but the first must be read by nobody."""
    scope = changes.scope
    for node in scope.view.nodes:
        rule = _RULES.get(node.proto.op_type) if is_default_domain(node.proto) else None
        if rule is None or not changes.is_open(node) or refers(node.proto):
            continue
        if not node.proto.input or not node.proto.input[0] or not node.proto.output or not node.proto.output[0]:
            continue
        if any(_is_read(scope, name) for name in node.proto.output[1:]):
            continue
        reason = rule(scope, node.proto)
        if reason:
            changes.bypass(node, "idle", reason)


def _is_read(scope: Scope, name: str) -> bool:
    return bool(name) and (name in scope.outputs or name in scope.view.consumers)


def _attribute(node: NodeProto, name: str) -> AttributeProto | None:
    return next((attribute for attribute in node.attribute if attribute.name == name), None)


def _identity(scope: Scope, node: NodeProto) -> str:
    return "hands its input on"


def _cast(scope: Scope, node: NodeProto) -> str:
    to = _attribute(node, "to")
    element = scope.element(node.input[0])
    if to is None or to.type != AttributeProto.INT or element is None:  # Cast-1 names the type in text
        return ""
    return "its input has that type already" if to.i == element else ""


def _cast_like(scope: Scope, node: NodeProto) -> str:
    element = scope.element(node.input[0])
    same = element is not None and len(node.input) > 1 and scope.element(node.input[1]) == element
    return "its input has that type already" if same else ""


def _same_dims(scope: Scope, node: NodeProto) -> bool:
    before, after = scope.dims(node.input[0]), scope.dims(node.output[0])
    return before is not None and before == after


def _reshape(scope: Scope, node: NodeProto) -> str:
    return "its input has that shape already" if _same_dims(scope, node) else ""


def _transpose(scope: Scope, node: NodeProto) -> str:
    perm = _attribute(node, "perm")
    dims = scope.dims(node.input[0])
    order: Sequence[int] | None = list(perm.ints) if perm is not None else None
    if order is None and dims is not None:
        order = range(len(dims))[::-1]
    return "leaves the axes in their order" if order is not None and list(order) == sorted(order) else ""


def _dropout(scope: Scope, node: NodeProto) -> str:
    """Dropout-12 drops only where its third input says so; -7 and -10 never do; -1 and -6 unless `is_test` is set."""
    if scope.opset() < 7:
        test = _attribute(node, "is_test")
        return "drops nothing in inference" if test is not None and test.i else ""
    if len(node.input) > 2 and node.input[2]:
        training = scope.value(node.input[2])
        if training is None or training.any():
            return ""
    return "drops nothing in inference"


def _pad(scope: Scope, node: NodeProto) -> str:
    pads = _attribute(node, "pads") or _attribute(node, "paddings")
    amounts: Sequence[object] | None = list(pads.ints) if pads is not None else None
    if amounts is None and len(node.input) > 1:
        amounts = scope.numbers(node.input[1])
    return "pads by nothing" if amounts and all(amount == 0 for amount in amounts) else ""


def _slice(scope: Scope, node: NodeProto) -> str:
    """From the first element in steps of 1: then equal dims mean all elements."""
    starts = _ints(scope, node, "starts", 1)
    steps = _ints(scope, node, "steps", 4) if len(node.input) > 4 and node.input[4] else [1]
    if not starts or any(start != 0 for start in starts) or not steps or any(step != 1 for step in steps):
        return ""
    ends = _ints(scope, node, "ends", 2)
    open_ends = ends is not None and all(isinstance(end, int) and end >= _BIGGEST for end in ends)
    return "takes all elements" if open_ends or _same_dims(scope, node) else ""


def _ints(scope: Scope, node: NodeProto, name: str, place: int) -> Sequence[object] | None:
    given = _attribute(node, name)
    if given is not None:
        return list(given.ints)
    return scope.numbers(node.input[place]) if len(node.input) > place and node.input[place] else None


def _expand(scope: Scope, node: NodeProto) -> str:
    return "its input has that shape already" if _same_dims(scope, node) else ""


def _tile(scope: Scope, node: NodeProto) -> str:
    if len(node.input) != 2:  # Tile-1
        return ""
    repeats = scope.numbers(node.input[1])
    return "repeats its input once" if repeats and all(count == 1 for count in repeats) else ""


def _lone(scope: Scope, node: NodeProto) -> str:
    return "has a single input" if len(node.input) == 1 else ""


def _split(scope: Scope, node: NodeProto) -> str:
    return "has a single output" if len(node.output) == 1 and _same_dims(scope, node) else ""


_RULES: dict[str, Callable[[Scope, NodeProto], str]] = {
    "Identity": _identity,
    "Cast": _cast,
    "CastLike": _cast_like,
    "Reshape": _reshape,
    "Flatten": _reshape,
    "Squeeze": _reshape,
    "Unsqueeze": _reshape,
    "Transpose": _transpose,
    "Dropout": _dropout,
    "Pad": _pad,
    "Slice": _slice,
    "Expand": _expand,
    "Tile": _tile,
    "Concat": _lone,
    "Sum": _lone,
    "Max": _lone,
    "Min": _lone,
    "Mean": _lone,
    "Split": _split,
}
