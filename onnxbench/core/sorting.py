"""Models whose nodes stand in any order, which most tools but runtimes refuse."""

from __future__ import annotations

from onnx import GraphProto, ModelProto

from onnxbench.core.graph import GraphView
from onnxbench.core.model import Model


def is_unsorted(graph: GraphProto) -> bool:
    """Whether a node stands before one whose value it reads, in the graph itself."""
    made = {name for node in graph.node for name in node.output if name}
    met: set[str] = set()
    for node in graph.node:
        if any(name in made and name not in met for name in node.input):
            return True
        met.update(node.output)
    return False


def in_order(model: Model) -> Model:
    """A copy whose main graph has its nodes in an order that can run."""
    view = GraphView(model.proto, model.proto.graph)
    proto = ModelProto()
    proto.CopyFrom(model.proto)
    del proto.graph.node[:]
    proto.graph.node.extend(node.proto for node in view.order)
    return Model(proto, model.folder, model.path, model.label)
