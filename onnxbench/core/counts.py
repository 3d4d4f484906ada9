"""How much there is in a model: nodes, and bytes."""

from __future__ import annotations

from onnx import FunctionProto, GraphProto, ModelProto, TensorProto

from onnxbench.core.attributes import subgraphs
from onnxbench.core.external import MARK, is_marked
from onnxbench.core.model import Model
from onnxbench.core.tensors import is_external, tensors


def count_nodes(model: ModelProto) -> tuple[int, int]:
    """Nodes of the top graph, and nodes in all: bodies and functions added."""
    return len(model.graph.node), sum(_nodes_in(graph) for graph in (model.graph, *model.functions))


def _nodes_in(graph: GraphProto | FunctionProto) -> int:
    holders = (node for node in graph.node if node.attribute)
    return len(graph.node) + sum(_nodes_in(body) for node in holders for _, body in subgraphs(node))


def stored_bytes(model: Model) -> int:
    """Bytes of the model as a file that holds its weights, external ones counted too."""
    total: int = model.proto.ByteSize()
    for tensor in tensors(model.proto):
        if not is_external(tensor):
            continue
        total += referred_bytes(tensor)
        if is_marked(tensor):  # the reference gives way to the bytes when the model is saved
            marks = [entry for entry in tensor.metadata_props if entry.key == MARK]
            total -= sum(entry.ByteSize() + 2 for entry in [*tensor.external_data, *marks])
    return total


def referred_bytes(tensor: TensorProto) -> int:
    """How long an external tensor's data is, as it says itself; 0 if it does not."""
    return next((int(e.value) for e in tensor.external_data if e.key == "length" and e.value.isdigit()), 0)
