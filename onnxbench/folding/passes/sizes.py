"""Store what is no constant by its inputs and known all the same: sizes of values whose dims the model fixes."""

from __future__ import annotations

import numpy as np

from onnxbench.core.attributes import subgraphs
from onnxbench.core.graph import Node
from onnxbench.core.values import dtype_of
from onnxbench.folding import stored
from onnxbench.folding.changes import Changes
from onnxbench.folding.passes import fold_pass
from onnxbench.folding.scope import Scope

#: Operators that make sizes of what is no constant; bodies and calls may hold one.
_SOURCES = frozenset({"Shape", "Size", "SequenceLength", "NonZero"})


@fold_pass("sizes", "store sizes that follow from the dims of the model", rank=2)
def sizes(changes: Changes) -> None:
    """Shape, Size, and what is calculated from them: `core.shapes` follows elements of small integer tensors."""
    scope = changes.scope
    if scope.function is not None or not _has_sizes(scope):
        return
    for node in scope.view.nodes:
        if not changes.is_open(node) or not any(node.outputs):
            continue
        if any(name in scope.constants or name in scope.inner_names for name in node.outputs if name):
            continue  # or kept on purpose
        made = {name: _known(changes, node, name) for name in node.outputs if name}
        tensors = {name: value for name, value in made.items() if value is not None}
        if len(tensors) == len(made):
            for name, value in tensors.items():
                changes.store(name, stored.tensor(value, name))
            changes.remove(node, "sizes", "its result follows from the dims of the model")


def _has_sizes(scope: Scope) -> bool:
    """Whether the model has anything that a size could come from; else no walk over it is needed."""
    outermost = scope.outermost
    functions = outermost.functions
    return bool(functions) or any(
        node.proto.op_type in _SOURCES or (node.proto.attribute and any(True for _ in subgraphs(node.proto)))
        for node in outermost.nodes
    )


def _known(changes: Changes, node: Node, name: str) -> np.ndarray | None:
    scope = changes.scope
    numbers, dims, element = scope.numbers(name), scope.dims(name), scope.element(name)
    dtype = dtype_of(element) if element is not None else None
    if numbers is None or dims is None or dtype is None or dtype.kind not in "iub" or not scope.can_hold(name, element):
        return None
    if not all(isinstance(number, int) for number in numbers) or not all(isinstance(dim, int) for dim in dims):
        return None
    shape = tuple(dim for dim in dims if isinstance(dim, int))
    return np.asarray(numbers).astype(dtype).reshape(shape) if np.prod(shape, dtype=int) == len(numbers) else None
