"""What of a graph depends on some of its nodes or values."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from onnxbench.core.graph import GraphView


def needing(view: GraphView) -> Mapping[int, int]:
    """For each node, by index, which outputs of the graph cannot be had without it: bit i for output i.

    Only what nodes read themselves counts: their bodies may never be run.
    """
    needed: dict[str, int] = {}
    for place, name in enumerate(view.outputs):
        needed[name] = needed.get(name, 0) | 1 << place
    found: dict[int, int] = {}
    for node in reversed(view.order):
        outputs = 0
        for name in node.outputs:
            outputs |= needed.get(name, 0) if name else 0
        found[node.index] = outputs
        for name in node.proto.input if outputs else ():
            needed[name] = needed.get(name, 0) | outputs
    return found


def touched(view: GraphView, names: Collection[str]) -> tuple[set[int], int]:
    """Nodes that may depend on some values in any way, by index, and outputs of the graph that may: bit i for output i."""
    reached, nodes = set(names), set()
    for node in view.order:
        if any(name in reached for name in node.inputs):
            nodes.add(node.index)
            reached.update(name for name in node.outputs if name)
    return nodes, sum(1 << place for place, name in enumerate(view.outputs) if name in reached)
