"""A model by its blocks: the scopes that exporters leave in node names or metadata."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from onnxbench.core.graph import GraphView
from onnxbench.core.scopes import scopes, source_line
from onnxbench.core.symbolic import Size, Total
from onnxbench.inspecting.costs import Costs
from onnxbench.inspecting.header import elements

#: Levels that are told apart at most: a name of a thousand slashes must not make a tree that nothing can print.
_DEEPEST = 50


@dataclass(slots=True)
class Block:
    """A scope: nodes, parameters and multiply-accumulates in it and below; `line` is the source line of its first node."""

    name: str
    nodes: int = 0
    parameters: int = 0
    macs: Size = 0
    line: str = ""
    blocks: list[Block] = field(default_factory=list)


def blocks(view: GraphView, costs: Costs, depth: int) -> Block:
    """The tree of scopes down to a depth (50 at most), in order of first appearance; nodes without one count at the root.

    A shared initializer counts for the first block that reads it.
    """
    depth = min(depth, _DEEPEST)
    root = Block("")
    index: dict[tuple[str, ...], Block] = {(): root}
    totals: dict[tuple[str, ...], Total] = defaultdict(Total)
    unseen = dict(view.initializers)
    for node, cost in zip(view.nodes, costs.nodes, strict=True):
        path = scopes(node.proto)[:depth]
        block = _block(index, path)
        block.nodes += 1
        for name in node.inputs:
            if name in unseen:
                block.parameters += elements(unseen.pop(name))
        if cost.macs:
            totals[path].add(cost.macs)
        if len(node.proto.metadata_props) and (line := source_line(node.proto)):
            for level in range(len(path) + 1):
                _block(index, path[:level]).line = _block(index, path[:level]).line or line
    for path in sorted(index, key=len, reverse=True):
        block = index[path]
        block.macs = totals[path].size
        if path:
            around = index[path[:-1]]
            around.nodes += block.nodes
            around.parameters += block.parameters
            totals[path[:-1]].add(block.macs)
    return root


def _block(index: dict[tuple[str, ...], Block], path: tuple[str, ...]) -> Block:
    if path not in index:
        index[path] = Block(path[-1])
        _block(index, path[:-1]).blocks.append(index[path])
    return index[path]
