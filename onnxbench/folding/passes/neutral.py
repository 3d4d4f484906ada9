"""Remove arithmetic with the number that changes nothing."""

from __future__ import annotations

import numpy as np
from onnx import NodeProto

from onnxbench.core.values import dtype_of
from onnxbench.folding.changes import Changes
from onnxbench.folding.passes import fold_pass
from onnxbench.folding.scope import Scope, is_default_domain

#: Operand that may be neutral, by operator, and the number that it is then.
_NEUTRAL = {"Mul": ((0, 1), 1), "Div": ((1,), 1), "Sub": ((1,), 0), "Add": ((0, 1), 0), "Pow": ((1,), 1)}


@fold_pass("neutral", "remove arithmetic with the number that changes nothing", rank=4)
def neutral(changes: Changes) -> None:
    """What x * 1, x / 1, x - 0 and x ** 1 give is x to the last bit (IEEE 754); x + 0 too for integers, but not for -0.0.

    Only where the constant does not make the other operand larger, and has its type.
    """
    scope = changes.scope
    for node in scope.view.nodes:
        proto = node.proto
        if proto.op_type not in _NEUTRAL or not is_default_domain(proto) or not changes.is_open(node):
            continue
        if len(proto.input) != 2 or not all(proto.input) or scope.opset() < 7:
            continue  # before opset 7, operands were aligned by `axis`
        places, number = _NEUTRAL[proto.op_type]
        place = next((place for place in places if _is_all(scope, proto.input[place], number)), None)
        if place is None or not _is_kept(scope, proto, 1 - place):
            continue
        changes.bypass(node, "neutral", f"its other operand is {number} everywhere", place=1 - place)


def _is_all(scope: Scope, name: str, number: int) -> bool:
    value = scope.value(name)
    if value is None or not value.size or value.dtype.kind not in "iuf":
        return False
    if value.dtype.kind == "f" and np.signbit(value).any():
        return False  # x - -0.0 is x + 0.0
    return bool((value == number).all())


def _is_kept(scope: Scope, node: NodeProto, place: int) -> bool:
    source, target = node.input[place], node.output[0]
    element = scope.element(source)
    if element is None or element != scope.element(node.input[1 - place]):
        return False
    dtype = dtype_of(element)
    if dtype is None or (node.op_type == "Add" and dtype.kind not in "iu"):
        return False
    dims = scope.dims(source)
    return dims is not None and dims == scope.dims(target)
