"""Attributes of a node: the graphs they hold, and the values a function body refers to by name."""

from collections.abc import Iterable, Iterator

from onnx import AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto


def subgraphs(node: NodeProto) -> Iterable[tuple[str, GraphProto]]:
    """The graphs that a node holds, with the attribute that holds each ('name[i]' for one of a list)."""
    attributes = node.attribute
    return _graphs(attributes) if attributes else ()  # most nodes: this is asked of every node many times


def _graphs(attributes: Iterable[AttributeProto]) -> Iterator[tuple[str, GraphProto]]:
    for attribute in attributes:
        if attribute.type == AttributeProto.GRAPH:
            yield attribute.name, attribute.g
        elif attribute.type == AttributeProto.GRAPHS:
            for i, graph in enumerate(attribute.graphs):
                yield f"{attribute.name}[{i}]", graph


def all_graphs(model: ModelProto) -> Iterator[GraphProto]:
    """The main graph, then every body, those of functions' nodes too."""
    yield model.graph
    pending = list(model.graph.node) + [node for function in model.functions for node in function.node]
    for node in nodes_below(pending):
        for _, graph in subgraphs(node):
            yield graph


def all_nodes(model: ModelProto) -> Iterator[NodeProto]:
    """Every node: of the main graph first and in its order, then of functions, each followed by those of its bodies."""
    yield from nodes_below([*model.graph.node, *(node for function in model.functions for node in function.node)])


def nodes_below(nodes: Iterable[NodeProto]) -> Iterator[NodeProto]:
    """Nodes, each followed by those of its bodies."""
    for node in nodes:
        yield node
        for _, graph in subgraphs(node):
            yield from nodes_below(graph.node)


def bind(function: FunctionProto, call: NodeProto) -> list[NodeProto]:
    """Copies of a function's nodes with attribute references replaced by the call's attributes or the defaults.

    A reference to an attribute that neither the call nor the function gives is dropped: the inner operator's own
    default holds then (ONNX IR, "Functions").
    """
    given = {attribute.name: attribute for attribute in function.attribute_proto}
    given.update((attribute.name, attribute) for attribute in call.attribute)
    return [_bound(node, given) for node in function.node]


def _bound(node: NodeProto, given: dict[str, AttributeProto]) -> NodeProto:
    copy = NodeProto()
    copy.CopyFrom(node)
    _bind_in_place(copy, given)
    return copy


def _bind_in_place(node: NodeProto, given: dict[str, AttributeProto]) -> None:
    kept: list[AttributeProto] = []
    for attribute in node.attribute:
        if attribute.ref_attr_name:
            source = given.get(attribute.ref_attr_name)
            if source is None:
                continue
            bound = AttributeProto()
            bound.CopyFrom(source)
            bound.name = attribute.name
            kept.append(bound)
        else:
            kept.append(attribute)
    if len(kept) != len(node.attribute) or any(a.ref_attr_name for a in node.attribute):
        copies = [AttributeProto.FromString(a.SerializeToString()) for a in kept]
        del node.attribute[:]
        node.attribute.extend(copies)
    for _, graph in subgraphs(node):
        for inner in graph.node:
            _bind_in_place(inner, given)
