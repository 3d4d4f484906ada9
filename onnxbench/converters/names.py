"""Names that a model uses, so that new ones are nobody's; and how reports name a node."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from onnx import FunctionProto, GraphProto, ModelProto, NodeProto

from onnxbench.core.attributes import subgraphs
from onnxbench.core.graph import FunctionKey, function_key
from onnxbench.errors import quote

#: What is said of a function that has no part in what the model computes.
UNCALLED = ", which nothing calls"


class Names(set[str]):
    """Names in use, collected when the first new one is asked for."""

    def __init__(self, collect: Callable[[], Iterable[str]]) -> None:
        super().__init__()
        self._collect: Callable[[], Iterable[str]] | None = collect

    def __contains__(self, name: object) -> bool:
        if self._collect is not None:
            collect, self._collect = self._collect, None
            self.update(collect())
        return super().__contains__(name)


def every_name_of(model: ModelProto) -> set[str]:
    """Every name of a value or node in a model: in bodies, functions and training graphs too."""
    names: set[str] = set()
    graphs = [model.graph]
    graphs += [graph for info in model.training_info for graph in (info.initialization, info.algorithm)]
    for graph in graphs:
        _add_graph(graph, names)
    for function in model.functions:
        names.update(function.input, function.output)
        _add_nodes(function.node, names)
    return names


def _add_graph(graph: GraphProto, names: set[str]) -> None:
    for values in (graph.input, graph.output, graph.value_info, graph.initializer):
        names.update(value.name for value in values)
    names.update(tensor.values.name for tensor in graph.sparse_initializer)
    _add_nodes(graph.node, names)


def _add_nodes(nodes: Iterable[NodeProto], names: set[str]) -> None:
    for node in nodes:
        names.add(node.name)
        names.update(node.input, node.output)
        if node.attribute:
            for _, body in subgraphs(node):
                _add_graph(body, names)


def label_of(node: NodeProto) -> str:
    """How reports name a node: its own name, else its operator and first output."""
    if node.name:
        return f"{quote(node.name)} ({node.op_type})"
    return f"{node.op_type} that makes {quote(node.output[0]) if node.output else 'nothing'}"


def named(function: FunctionProto, called: Collection[FunctionKey]) -> str:
    """How reports name a function as the place where a node stands.

    Args:
        function: the function.
        called: keys of those that anything calls.
    """
    is_called = function_key(function) in called
    return f"function {function.name}{'' if is_called else UNCALLED}"


def copied(node: NodeProto) -> NodeProto:
    """A copy of a node."""
    copy = NodeProto()
    copy.CopyFrom(node)
    return copy
