"""Edits that several passes make: dropping what nothing reads, forgetting declared shapes."""

from __future__ import annotations

from collections.abc import Iterable

from onnx import GraphProto, ModelProto, NodeProto

from onnxbench.core.attributes import all_graphs, all_nodes, subgraphs
from onnxbench.core.graph import GraphView, captures, plain_domain
from onnxbench.core.subgraph import used_functions
from onnxbench.reducers.reproducer import Reproducer


def tidied(reproducer: Reproducer, proto: ModelProto) -> Reproducer:
    """The reproducer with another model, without what nothing in that reads: inputs, initializers, functions."""
    for graph in all_graphs(proto):
        drop_unread(graph)
    view = GraphView(proto, proto.graph)
    kept = {(function.domain, function.name) for function in used_functions(view, proto.graph)}
    keep(proto.functions, [f for f in proto.functions if (f.domain, f.name) in kept])
    read = _read(proto.graph)
    keep(proto.graph.input, [value for value in proto.graph.input if value.name in read])
    left = {value.name for value in proto.graph.input}
    return reproducer.with_model(proto, {name: value for name, value in reproducer.feeds.items() if name in left})


def drop_unread(graph: GraphProto) -> None:
    """Drop initializers that nothing reads and declarations of values that are not there."""
    read = _read(graph)
    keep(graph.initializer, [tensor for tensor in graph.initializer if tensor.name in read])
    keep(graph.sparse_initializer, [tensor for tensor in graph.sparse_initializer if tensor.values.name in read])
    made = {name for node in graph.node for name in node.output}
    keep(graph.value_info, [value for value in graph.value_info if value.name in made])


def _read(graph: GraphProto) -> set[str]:
    found = {value.name for value in graph.output}
    for node in graph.node:
        found.update(node.input)
        found.update(captures(node))
    return found


def keep(field: object, wanted: list[object]) -> None:
    """Leave only these entries of a repeated field."""
    if len(wanted) != len(field):  # type: ignore[arg-type]
        copies = []
        for entry in wanted:
            copy = type(entry)()
            copy.CopyFrom(entry)  # type: ignore[attr-defined]
            copies.append(copy)
        del field[:]  # type: ignore[attr-defined]
        field.extend(copies)  # type: ignore[attr-defined]


def forget_shapes(proto: ModelProto) -> None:
    """Drop what is declared of inner values, and the shapes that bodies declare: they may be those of before."""
    for graph in all_graphs(proto):
        del graph.value_info[:]
        if graph is proto.graph:
            continue
        for value in (*graph.input, *graph.output):
            if value.type.HasField("tensor_type"):
                value.type.tensor_type.ClearField("shape")
    for function in proto.functions:
        del function.value_info[:]


def forget_output_sizes(proto: ModelProto) -> None:
    """Leave the sizes of graph outputs open."""
    for value in proto.graph.output:
        if value.type.HasField("tensor_type"):
            for dim in value.type.tensor_type.shape.dim:
                dim.Clear()


def node_at(proto: ModelProto, place: int) -> NodeProto:
    """The node at a place of `all_nodes`."""
    return list(all_nodes(proto))[place]


def renamed_reads(nodes: Iterable[NodeProto], old: str, new: str) -> None:
    """Let nodes, and their bodies, read another value."""
    for node in nodes:
        node.input[:] = [new if name == old else name for name in node.input]
        for _, body in subgraphs(node):
            renamed_reads(body.node, old, new)
            for output in body.output:
                if output.name == old:
                    output.name = new


def is_standard(node: NodeProto) -> bool:
    """Whether a node's operator is one of ONNX's default domain."""
    return plain_domain(node.domain) == ""
