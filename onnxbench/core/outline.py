"""A graph in a few boxes that can be drawn: whole scopes far from the nodes that matter, single nodes near them."""

from __future__ import annotations

import heapq
import itertools
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from onnxbench.core.graph import GraphView, Node
from onnxbench.core.scopes import scopes
from onnxbench.errors import ModelError

#: Boxes of an outline, and parts that a group is opened into at once.
_MOST, _FAN = 60, 12
#: Scopes in scopes that are told apart.
_DEEPEST = 50
#: Kinds of operators that a box tells of.
_KINDS = 4
#: Inputs and outputs that are named.
_NAMES = 20


@dataclass(frozen=True, slots=True)
class Box:
    """One node, or the nodes of a scope or a part of it.

    Attributes:
        kind: "nodes", or the graph's "inputs" or "outputs".
        name: of the node, the scope, or the values; may be empty.
        operators: how many nodes of each operator, the most frequent first; a few kinds.
        nodes: how many nodes.
        marks: nodes among them that matter.
        layer: boxes of a lower layer come first.
    """

    kind: Literal["nodes", "inputs", "outputs"]
    name: str
    operators: Mapping[str, int]
    nodes: int
    marks: int = 0
    layer: int = 0


@dataclass(frozen=True, slots=True)
class Edge:
    """Values that go from one box to another, by their places; `back` if that is against the layers."""

    source: int
    target: int
    values: int
    back: bool = False


@dataclass(frozen=True, slots=True)
class Outline:
    """A graph in a few boxes.

    Attributes:
        nodes: how many the graph has.
        boxes: in the order of layers.
        edges: between them, each pair once.
    """

    nodes: int
    boxes: Sequence[Box]
    edges: Sequence[Edge]


@dataclass(slots=True, eq=False)
class _Group:
    """Nodes that lie together in one scope; a leaf has none below."""

    name: str
    nodes: list[Node] = field(default_factory=list)
    children: list[_Group] = field(default_factory=list)

    def parts(self) -> list[_Group]:
        """What is seen when it is opened: its children, or runs of them where they are many."""
        if len(self.children) <= _FAN:
            return self.children
        size = -(-len(self.children) // _FAN)
        runs = [self.children[i : i + size] for i in range(0, len(self.children), size)]
        return [run[0] if len(run) == 1 else _run(run) for run in runs]


def _run(children: list[_Group]) -> _Group:
    nodes = [node for child in children for node in child.nodes]
    return _Group(f"{children[0].name} \u2026 {children[-1].name}", nodes, children)


def outline(view: GraphView, marked: Collection[int], most: int = _MOST) -> Outline:
    """Draw a graph together, opened around the nodes that matter.

    Args:
        view: the graph.
        marked: indices of the nodes that matter.
        most: boxes that there may be, besides those of inputs and outputs.
    """
    try:
        order = view.order
    except ModelError:  # nodes that feed each other
        order = view.nodes
    near = _neighbours(view, marked)
    groups = _opened(_tree(order), set(marked), near, most)
    place = {node.index: i for i, group in enumerate(groups) for node in group.nodes}
    rank = {node.index: i for i, node in enumerate(order)}
    means = [sum(rank[node.index] for node in group.nodes) / len(group.nodes) for group in groups]
    first = sorted(range(len(groups)), key=means.__getitem__)
    moved = {old: new for new, old in enumerate(first, start=1)}
    edges = _edges(view, {index: moved[old] for index, old in place.items()}, len(groups) + 1)
    layers = _layers(edges, len(groups) + 2)
    boxes = [
        Box("inputs", _few([name for name in view.inputs if name not in view.initializers]), {}, 0),
        *(_box(groups[old], marked, layers[moved[old]]) for old in first),
        Box("outputs", _few(view.outputs), {}, 0, 0, max(layers)),
    ]
    return Outline(len(view.nodes), boxes, edges)


def _few(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMES} more" if len(names) > _NAMES else ""
    return ", ".join(names[:_NAMES]) + more


def _neighbours(view: GraphView, marked: Collection[int]) -> set[int]:
    """The marked nodes' neighbours."""
    found: set[int] = set()
    for index in marked:
        node = view.nodes[index]
        found.update(view.producer[name].index for name in node.inputs if name in view.producer)
        found.update(reader.index for name in node.outputs for reader in view.consumers.get(name, ()))
    return found


def _tree(order: Sequence[Node]) -> _Group:
    root = _Group("", list(order))
    index: dict[tuple[str, ...], _Group] = {(): root}
    for node in order:
        path = scopes(node.proto)[:_DEEPEST]
        for depth in range(1, len(path) + 1):
            group = index.get(path[:depth])
            if group is None:
                group = index[path[:depth]] = _Group("/".join(path[:depth]))
                index[path[: depth - 1]].children.append(group)
            group.nodes.append(node)
        index[path].children.append(_Group(node.proto.name or next(filter(None, node.outputs), ""), [node]))
    return root


def _opened(root: _Group, marked: set[int], near: set[int], most: int) -> list[_Group]:
    """Open groups with marked nodes, then those with their neighbours, then the largest, as long as there is room.

    Far from what matters half of the room is enough, unless there is room for everything.
    """
    count = itertools.count()

    def entry(group: _Group) -> tuple[int, int, int, _Group]:
        held = [node.index for node in group.nodes]
        urgency = 0 if not marked.isdisjoint(held) else 1 if not near.isdisjoint(held) else 2
        return urgency, -len(held), next(count), group

    waiting, closed = [entry(root)] if root.nodes else [], list[_Group]()
    while waiting:
        urgency, _, _, group = heapq.heappop(waiting)
        parts = group.parts()
        room = most if urgency < 2 or len(root.nodes) <= most else most // 2
        if not parts or len(waiting) + len(closed) + len(parts) > room:
            closed.append(group)
            continue
        for part in parts:
            heapq.heappush(waiting, entry(part))
    return closed


def _edges(view: GraphView, place: Mapping[int, int], outputs: int) -> list[Edge]:
    """What goes from box to box; box 0 holds the inputs, `outputs` is the last."""
    counts: Counter[tuple[int, int]] = Counter()
    for node in view.nodes:
        target = place[node.index]
        for name in dict.fromkeys(node.inputs):
            made = view.producer.get(name)
            if made is not None:
                counts[place[made.index], target] += 1
            elif name in view.inputs and name not in view.initializers:
                counts[0, target] += 1
    for name in view.outputs:
        if name in view.producer:
            counts[place[view.producer[name].index], outputs] += 1
    return [Edge(a, b, number, a > b) for (a, b), number in sorted(counts.items()) if a != b]


def _layers(edges: Sequence[Edge], boxes: int) -> list[int]:
    """The longest way to each box along edges that do not go back; they come sorted by source."""
    layers = [0] + [1] * (boxes - 1)
    for edge in edges:
        if not edge.back:
            layers[edge.target] = max(layers[edge.target], layers[edge.source] + 1)
    layers[-1] = max(layers[-1], *(layer + 1 for layer in layers[:-1]))
    return layers


def _box(group: _Group, marked: Collection[int], layer: int) -> Box:
    operators = Counter(node.proto.op_type for node in group.nodes)
    marks = sum(node.index in marked for node in group.nodes)
    return Box("nodes", group.name, dict(operators.most_common(_KINDS)), len(group.nodes), marks, layer)
