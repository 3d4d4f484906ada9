"""Which nodes of a plan somebody asks about, by the selections that all commands take."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from onnx import FunctionProto, GraphProto, ModelProto

from onnxbench.core.graph import GraphView
from onnxbench.core.nearest import not_found
from onnxbench.core.select import select
from onnxbench.errors import NameNotFound

if TYPE_CHECKING:
    from onnxbench.converters.plan import Row


def as_graph(holder: GraphProto | FunctionProto) -> GraphProto:
    """A copy of a graph, or the graph of a function."""
    graph = GraphProto()
    if isinstance(holder, GraphProto):
        graph.CopyFrom(holder)
        return graph
    graph.node.extend(holder.node)
    for name in holder.input:
        graph.input.add(name=name)
    for name in holder.output:
        graph.output.add(name=name)
    return graph


def chosen(model: ModelProto, rows: Sequence[Row], graphs: Sequence[GraphProto], texts: Sequence[str]) -> list[Row]:
    """The rows that selections select, in the order of the model; a value stands for the node that makes it.

    Args:
        model: what the graphs are of.
        rows: all nodes.
        graphs: the graphs that they stand in.
        texts: selections; of a label, as reports have them, the whole.

    Raises:
        NameNotFound: OB303 for one that selects no node.
        UsageError: OB204 for one that cannot be read.
    """
    views = [GraphView(model, graph) for graph in graphs]
    wanted: set[tuple[int, int]] = set()
    for text in texts:
        found = {(row.graph, row.index) for row in rows if row.node == text}
        found = found or _selected(views, text)
        if not found:
            raise not_found("node", text, [row.name or row.output for row in rows])
        wanted |= found
    return [row for row in rows if (row.graph, row.index) in wanted]


def _selected(views: Sequence[GraphView], text: str) -> set[tuple[int, int]]:
    """Where it selects nothing in one graph, it may in another."""
    found: set[tuple[int, int]] = set()
    for number, view in enumerate(views):
        with suppress(NameNotFound):
            found |= {(number, node.index) for node in select(view, text).node_set(view)}
    return found
