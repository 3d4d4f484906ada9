"""Store the target of a Reshape or Expand whose sizes are known but for what the operator finds out by itself."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import NodeProto

from onnxbench.core.graph import Node
from onnxbench.core.symbolic import Size
from onnxbench.folding import stored
from onnxbench.folding.changes import Changes
from onnxbench.folding.naming import free_name
from onnxbench.folding.passes import fold_pass
from onnxbench.folding.scope import Scope, is_default_domain


@fold_pass("targets", "store the target of a Reshape or Expand that is known but for one size", rank=3)
def targets(changes: Changes) -> None:
    """What remains symbolic must be what 0 or -1 (Reshape-5) or 1 (Expand-8) means at that place."""
    scope = changes.scope
    if scope.function is not None or not scope.holds_initializers:
        return
    taken: set[str] = set()
    for node in scope.view.nodes:
        if not changes.is_open(node) or not is_default_domain(node.proto) or len(node.proto.input) < 2:
            continue
        source, wanted = node.proto.input[0], node.proto.input[1]
        if wanted in scope.constants or wanted in changes.constants:
            continue
        numbers = _target(scope, node, source, wanted)
        if numbers is None:
            continue
        taken = taken or scope.names_in_use()
        name = free_name(f"{node.outputs[0]}_target", taken)
        changes.store(name, stored.tensor(np.asarray(numbers, np.int64), name))
        copy = NodeProto()
        copy.CopyFrom(node.proto)
        copy.input[1] = name
        _take_zeros_for_copies(copy)
        changes.replace(node, copy, "targets", f"its target is always {numbers}")


def _target(scope: Scope, node: Node, source: str, wanted: str) -> list[int] | None:
    sizes = scope.numbers(wanted)
    dims = scope.dims(source)
    if sizes is None or any(size is None for size in sizes):
        return None
    known = [size for size in sizes if size is not None]
    if node.proto.op_type == "Reshape" and scope.opset() >= 5:
        return _reshaped(known, dims)
    if node.proto.op_type == "Expand" and dims is not None:
        return _expanded(known, dims)
    return None


def _take_zeros_for_copies(reshape: NodeProto) -> None:
    """Reshape-14: a 0 copies a size unless `allowzero` is set; the sizes that are stored are none."""
    kept = [attribute for attribute in reshape.attribute if attribute.name != "allowzero"]
    if len(kept) != len(reshape.attribute):
        copies = [type(attribute).FromString(attribute.SerializeToString()) for attribute in kept]
        del reshape.attribute[:]
        reshape.attribute.extend(copies)


def _reshaped(sizes: Sequence[Size], dims: Sequence[Size] | None) -> list[int] | None:
    """Reshape-5: 0 takes the size of the input at that place, and one -1 what is left, which needs the others not to be 0."""
    found: list[int] = []
    for place, size in enumerate(sizes):
        if isinstance(size, int):
            if size <= 0:  # 0 and -1 mean something else where they are computed
                return None
            found.append(size)
        elif dims is not None and place < len(dims) and dims[place] == size:
            found.append(0)
        else:
            found.append(-1)
    if found.count(-1) > 1 or (-1 in found and 0 in found):
        return None  # -1 is not told beside a copied size that is 0 at run time
    return found


def _expanded(sizes: Sequence[Size], dims: Sequence[Size]) -> list[int] | None:
    """Expand-8: a 1 keeps the size of the input, counted from the last axis."""
    found: list[int] = []
    for place, size in enumerate(sizes):
        axis = place - len(sizes) + len(dims)
        if isinstance(size, int):
            found.append(size)
        elif axis >= 0 and dims[axis] == size:
            found.append(1)
        else:
            return None
    return found
