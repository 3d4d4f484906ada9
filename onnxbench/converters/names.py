"""Names that a model uses, so that new ones are nobody's; and how reports name a node."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from onnx import GraphProto, ModelProto, NodeProto

from onnxbench.core.attributes import subgraphs
from onnxbench.core.hoist import every_name
from onnxbench.errors import quote


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


def every_name_of(model: ModelProto) -> Iterable[str]:
    """Every name of a value or node in a model: in bodies, functions and training graphs too."""
    graphs = [model.graph]
    graphs += [graph for info in model.training_info for graph in (info.initialization, info.algorithm)]
    for graph in graphs:
        yield from every_name(graph)
        yield from _node_names(graph.node)
        yield from (value.name for value in graph.value_info)
    for function in model.functions:
        body = GraphProto()
        body.node.extend(function.node)
        yield from every_name(body)
        yield from (*function.input, *function.output)
        yield from _node_names(function.node)


def _node_names(nodes: Iterable[NodeProto]) -> Iterable[str]:
    for node in nodes:
        yield node.name
        for _, body in subgraphs(node):
            yield from _node_names(body.node)


def label_of(node: NodeProto) -> str:
    """How reports name a node: its own name, else its operator and first output."""
    if node.name:
        return f"{quote(node.name)} ({node.op_type})"
    return f"{node.op_type} that makes {quote(node.output[0]) if node.output else 'nothing'}"


def copied(node: NodeProto) -> NodeProto:
    """A copy of a node."""
    copy = NodeProto()
    copy.CopyFrom(node)
    return copy
