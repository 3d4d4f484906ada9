"""How many nodes a model has."""

from __future__ import annotations

from onnx import FunctionProto, GraphProto, ModelProto

from onnxbench.core.attributes import subgraphs


def count_nodes(model: ModelProto) -> tuple[int, int]:
    """Nodes of the top graph, and nodes in all: bodies and functions added."""
    return len(model.graph.node), sum(_nodes_in(graph) for graph in (model.graph, *model.functions))


def _nodes_in(graph: GraphProto | FunctionProto) -> int:
    return sum(1 + sum(_nodes_in(body) for _, body in subgraphs(node)) for node in graph.node)
