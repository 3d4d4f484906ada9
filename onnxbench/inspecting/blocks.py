"""A model by its blocks: the scopes that exporters leave in node names or metadata."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from onnx import NodeProto

from onnxbench.core.graph import GraphView
from onnxbench.core.scopes import exported_scopes
from onnxbench.core.symbolic import Size, Total
from onnxbench.inspecting.costs import Costs
from onnxbench.inspecting.header import elements

STACK_TRACE = "pkg.torch.onnx.stack_trace"
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


def scopes(node: NodeProto) -> tuple[str, ...]:
    """The scopes that a node lies in, outermost first: from PyTorch's metadata if it is there, else from the name.

    PyTorch writes a list of dotted paths, each a prefix of the next, and the node's own name last.
    """
    if len(node.metadata_props) and (listed := exported_scopes(node)):
        return _steps(listed[:-1])
    parts = [part for part in node.name.split("/") if part]
    return tuple(parts[:-1]) if "/" in node.name else ()


def _steps(paths: list[str]) -> tuple[str, ...]:
    """["", "layer", "layer.0"] as ("layer", "0"); a path that says nothing new is no step of its own."""
    steps: list[str] = []
    before = ""
    for path in paths:
        path = path.strip("/.")
        if path and path != before:
            steps.append(path.removeprefix(f"{before}.") if before else path)
            before = path
    return tuple(steps)


def source_line(node: NodeProto) -> str:
    """The innermost line of the user's code, as "model.py:123", from PyTorch's stack trace; "" if there is none."""
    trace = next((entry.value for entry in node.metadata_props if entry.key == STACK_TRACE), "")
    lines = [line.strip() for line in trace.splitlines() if line.strip().startswith("File ")]
    if not lines:
        return ""
    parts = lines[-1].split('"')
    number = lines[-1].partition(", line ")[2].partition(",")[0]
    return f"{parts[1].rsplit('/', 1)[-1]}:{number}" if len(parts) > 2 else ""
