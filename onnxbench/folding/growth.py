"""Which folded constants cost more bytes than they save: those whose sources stay, or are shared among many."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from math import prod

from onnx import TensorProto

from onnxbench.core.attributes import subgraphs
from onnxbench.core.graph import GraphView, Node, free_names
from onnxbench.core.tensors import element_bits
from onnxbench.folding.scope import Scope, holder, is_constant

#: What each node that goes may cost, and how much more than its constants a result may take.
PER_NODE, TIMES = 1024, 2


def too_costly(scope: Scope, sizes: Mapping[str, int], cones: Mapping[str, list[Node]], gone: set[int]) -> set[str]:
    """The values to compute as before.

    Each value may take `TIMES` its share of the constants that go, and `PER_NODE` for each node that makes it, or its part
    of a thousandth of the model.

    Args:
        scope: where they are stored.
        sizes: bytes of each value that would be stored.
        cones: the nodes that make it, Constants included.
        gone: indices of nodes that go.
    """
    leaves = {name: _leaves(scope.view, cones[name]) for name in sizes}
    shares = Counter(leaf for name in sizes for leaf in leaves[name])
    freed = {leaf: leaf_bytes(scope.view, leaf) for leaf in shares if _is_freed(scope.view, leaf, gone)}
    costly = set()
    for name, size in sizes.items():
        worth = sum(freed[leaf] / shares[leaf] for leaf in leaves[name] if leaf in freed)
        if size > max(TIMES * worth + PER_NODE * len(cones[name]), scope.slack / len(sizes)):
            costly.add(name)
    return costly


def _leaves(view: GraphView, cone: Iterable[Node]) -> set[str]:
    """Constants that the nodes read, and those that are among them."""
    made = {name for node in cone for name in node.outputs}
    read = {name for node in cone for name in node.inputs if name and name not in made}
    return read | {node.outputs[0] for node in cone if is_constant(node.proto)}


def _is_freed(view: GraphView, leaf: str, gone: set[int]) -> bool:
    """Whether nobody reads a constant when the nodes are gone; one of a graph around this may serve this body alone."""
    if leaf in view.outputs or leaf in view.inputs:
        return False
    if any(reader.index not in gone for reader in view.consumers.get(leaf, ())):
        return False
    if view.defines(leaf):
        return True
    if view.parent is None or view.owner is None or view.isolated:
        return False
    bodies = [body for _, body in subgraphs(view.owner.proto) if leaf in set(free_names(body))]
    return len(bodies) == 1 and _is_freed(view.parent, leaf, {view.owner.index})


def leaf_bytes(view: GraphView, leaf: str) -> int:
    """The bytes of a value that is stored, in the graph or one around it; 0 for any other."""
    tensor = holder(view, leaf)
    if not isinstance(tensor, TensorProto):
        return 0
    elements: int = prod(tensor.dims)
    return elements * (element_bits(tensor.data_type) or 8) // 8
