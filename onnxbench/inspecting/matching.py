"""Pair the nodes of two graphs: by name, by what they make, then by what they are made from."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable

from onnxbench.core.attributes import subgraphs
from onnxbench.core.graph import GraphView, Node, plain_domain


def match(one: GraphView, other: GraphView) -> dict[int, int]:
    """Indices of the second graph's nodes by those of the first; each node at most once, operators always equal."""
    pairs: dict[int, int] = {}
    _pair_by(one, other, pairs, lambda node: (node.proto.name, _operator(node)) if node.proto.name else None)
    _pair_by(one, other, pairs, lambda node: (node.outputs[:1], _operator(node)) if node.outputs else None)
    _pair_by_structure(one, other, pairs)
    return pairs


def _operator(node: Node) -> tuple[str, str]:
    return plain_domain(node.proto.domain), node.proto.op_type


def _pair_by(one: GraphView, other: GraphView, pairs: dict[int, int], key: Callable[[Node], Hashable | None]) -> None:
    """Pair the unpaired nodes whose key is the only one of its kind in both graphs."""
    left = _unique((n for n in one.nodes if n.index not in pairs), key)
    taken = set(pairs.values())
    right = _unique((n for n in other.nodes if n.index not in taken), key)
    pairs.update((left[k], right[k]) for k in left if k in right)


def _unique(nodes: Iterable[Node], key: Callable[[Node], Hashable | None]) -> dict[Hashable, int]:
    keyed = [(k, node.index) for node in nodes if (k := key(node)) is not None]
    counts = Counter(k for k, _ in keyed)
    return {k: index for k, index in keyed if counts[k] == 1}


def _pair_by_structure(one: GraphView, other: GraphView, pairs: dict[int, int]) -> None:
    """Pair nodes with equal operator, attributes and, in turn, inputs; twins in their order."""
    left, right = _fingerprints(one), _fingerprints(other)
    free: dict[Hashable, list[int]] = defaultdict(list)
    taken = set(pairs.values())
    for node in other.order:
        if node.index not in taken:
            free[right[node.index]].append(node.index)
    for node in one.order:
        if node.index not in pairs and free.get(left[node.index]):
            pairs[node.index] = free[left[node.index]].pop(0)


def _fingerprints(view: GraphView) -> dict[int, Hashable]:
    """What each node is, hashed from its operator, attributes, and the fingerprints of what it reads."""
    made: dict[int, Hashable] = {}
    for node in view.order:
        sources: list[Hashable] = []
        for name in node.inputs:
            producer = view.producer.get(name)
            if producer is not None:
                sources.append((made.get(producer.index), producer.outputs.index(name)))
            elif name in view.initializers:
                tensor = view.initializers[name]
                sources.append((tensor.data_type, tuple(tensor.dims)))
            else:
                sources.append(name)
        attributes = tuple(sorted(attribute_key(a) for a in node.proto.attribute if a.name))
        bodies = tuple(len(graph.node) for _, graph in subgraphs(node.proto))
        made[node.index] = hash((_operator(node), bodies or attributes, tuple(sources)))
    return made


def attribute_key(attribute: object) -> tuple[str, bytes]:
    """Name and content of an attribute, without its doc."""
    from onnx import AttributeProto

    bare = AttributeProto()
    assert isinstance(attribute, AttributeProto)
    bare.CopyFrom(attribute)
    bare.ClearField("doc_string")
    return attribute.name, bare.SerializeToString(deterministic=True)
