"""Store scalars for a Range that has come to read stored vectors of one element."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import NodeProto

from onnxbench.core.graph import Node
from onnxbench.core.values import Array, element_type
from onnxbench.folding import stored
from onnxbench.folding.changes import Changes
from onnxbench.folding.naming import free_name
from onnxbench.folding.passes import fold_pass
from onnxbench.folding.scope import is_default_domain


@fold_pass("ranges", "store scalars for a Range that reads stored vectors of one element", rank=5)
def ranges(changes: Changes) -> None:
    """Range-11 wants scalars: runtimes take [1] as long as it is computed, and refuse to load what is stored like that."""
    for node in changes.scope.view.nodes:
        if node.proto.op_type != "Range" or not is_default_domain(node.proto) or not changes.is_open(node):
            continue
        values = [changes.scope.value(name) for name in node.proto.input]
        if all(value is not None for value in values) and any(v is not None and v.shape == (1,) for v in values):
            _replace(changes, node, values)


def _replace(changes: Changes, node: Node, values: Sequence[Array | None]) -> None:
    scope = changes.scope
    taken = scope.names_in_use()
    copy = NodeProto()
    copy.CopyFrom(node.proto)
    for place, value in enumerate(values):
        name = free_name(f"{node.proto.input[place]}_scalar", taken)
        if value is not None and value.shape == (1,) and scope.can_hold(name, element_type(value.dtype)):
            changes.store(name, stored.tensor(np.reshape(value, ()), name))
            copy.input[place] = name
    scope.failed.clear()  # what could not be computed because of it can be now
    changes.replace(node, copy, "ranges", "it reads vectors of one element that are stored, where it wants scalars")
