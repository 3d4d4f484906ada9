"""Whether nodes that can fail still do, once a model is folded further.

They are marked in the model itself, so that copies of a node and whoever moves it take the mark along.
"""

from __future__ import annotations

from onnx import FunctionProto, GraphProto, ModelProto, NodeProto, ValueInfoProto

from onnxbench.core.attributes import all_graphs
from onnxbench.core.graph import GraphView
from onnxbench.folding.reach import needing

_KEY = "onnxbench.guard"


def put(node: NodeProto, outputs: int) -> None:
    """Mark a node, with the outputs of its graph that cannot be had without it: bit i for output i."""
    node.metadata_props.add(key=_KEY, value=str(outputs))


def standing(model: ModelProto) -> int:
    """How many marks there are of which all outputs still need the node."""
    graphs = [*all_graphs(model), *map(_as_graph, model.functions)]
    return sum(_standing_in(GraphView(model, graph)) for graph in graphs if any(map(_marks, graph.node)))


def _as_graph(function: FunctionProto) -> GraphProto:
    graph = GraphProto(name=function.name)
    graph.node.extend(function.node)
    graph.output.extend(ValueInfoProto(name=name) for name in function.output)
    return graph


def _standing_in(view: GraphView) -> int:
    needed = needing(view)
    return sum(mark & ~needed[node.index] == 0 for node in view.nodes for mark in _marks(node.proto))


def _marks(node: NodeProto) -> list[int]:
    return [int(entry.value) for entry in node.metadata_props if entry.key == _KEY]
