"""Replace an `If` by the branch that is taken, in the graph around it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from onnx import GraphProto, NodeProto, helper

from onnxbench.core.attributes import subgraphs


def hoist(graph: GraphProto, taken: Mapping[str, bool]) -> bool:
    """Put the taken branch in place of every `If` of the graph whose condition is known; in place.

    Names of the branch that the graph uses already get a suffix. What the branch returns takes the names of the `If`'s
    outputs, so that nothing else changes (ai.onnx If: the outputs of the branch are the outputs of the node).

    Args:
        graph: changed in place.
        taken: truth of the condition, by value name.

    Returns:
        Whether anything was hoisted.
    """
    names = _Names(set(defined_names(graph)), set(every_name(graph)))
    made: list[NodeProto] = []
    hoisted = False
    for node in graph.node:
        if node.op_type == "If" and node.domain in ("", "ai.onnx") and node.input[0] in taken:
            made += _branch_nodes(graph, node, taken[node.input[0]], names)
            hoisted = True
        else:
            made.append(node)
    if hoisted:
        copies = [NodeProto.FromString(node.SerializeToString()) for node in made]
        del graph.node[:]
        graph.node.extend(copies)
    return hoisted


def _branch_nodes(graph: GraphProto, node: NodeProto, truth: bool, names: _Names) -> list[NodeProto]:
    wanted = "then_branch" if truth else "else_branch"
    branch = next(body for name, body in subgraphs(node) if name == wanted)
    made = {name for inner in branch.node for name in inner.output if name}
    nested = {name for inner in branch.node for _, body in subgraphs(inner) for name in every_name(body)}
    mapping: dict[str, str] = {}
    passed_on: list[tuple[str, str]] = []
    for ours, theirs in zip(node.output, (value.name for value in branch.output), strict=False):
        if theirs in made and theirs not in mapping and ours and ours not in nested:
            mapping[theirs] = ours
        elif ours:
            passed_on.append((theirs, ours))
    kept = [*made, *(t.name for t in branch.initializer), *(t.values.name for t in branch.sparse_initializer)]
    for name in kept:
        if name not in mapping:
            mapping[name] = names.fresh(name)
    for tensor in branch.initializer:
        graph.initializer.add().CopyFrom(tensor)
        graph.initializer[-1].name = mapping[tensor.name]
    for sparse in branch.sparse_initializer:
        graph.sparse_initializer.add().CopyFrom(sparse)
        graph.sparse_initializer[-1].values.name = mapping[sparse.values.name]
    declared = {value.name for value in (*graph.output, *graph.value_info)}
    for value in branch.value_info:
        if mapping.get(value.name, value.name) not in declared:
            graph.value_info.add().CopyFrom(value)
            graph.value_info[-1].name = mapping.get(value.name, value.name)
    nodes = [renamed(inner, mapping) for inner in branch.node]
    return nodes + [helper.make_node("Identity", [mapping.get(source, source)], [ours]) for source, ours in passed_on]


def renamed(node: NodeProto, mapping: Mapping[str, str]) -> NodeProto:
    """A copy of a node with its values renamed, and those that its bodies capture."""
    copy = NodeProto()
    copy.CopyFrom(node)
    _rename_in_place(copy, mapping)
    return copy


def _rename_in_place(node: NodeProto, mapping: Mapping[str, str]) -> None:
    node.input[:] = [mapping.get(name, name) for name in node.input]
    node.output[:] = [mapping.get(name, name) for name in node.output]
    for _, body in subgraphs(node):
        own = set(defined_names(body))
        inner = {name: to for name, to in mapping.items() if name not in own}
        if not inner:
            continue
        for nested in body.node:
            _rename_in_place(nested, inner)
        for output in body.output:
            output.name = inner.get(output.name, output.name)


def defined_names(graph: GraphProto) -> Iterator[str]:
    """The names that a graph itself gives: inputs, initializers, what its nodes make."""
    yield from (value.name for value in graph.input)
    yield from (tensor.name for tensor in graph.initializer)
    yield from (tensor.values.name for tensor in graph.sparse_initializer)
    for node in graph.node:
        yield from node.output


def every_name(graph: GraphProto) -> Iterator[str]:
    """Every value name in a graph and its bodies, read or made."""
    yield from defined_names(graph)
    for node in graph.node:
        yield from node.input
        for _, body in subgraphs(node):
            yield from every_name(body)


class _Names:
    """Names in use, and new ones that are not."""

    def __init__(self, outer: Collection[str], everywhere: Collection[str]) -> None:
        self._taken, self._everywhere = set(outer), set(everywhere)

    def fresh(self, name: str) -> str:
        """The name itself unless the graph around the branch has it, or a branch before; then with a number."""
        candidate, number = name, 1
        while candidate in self._taken or (candidate != name and candidate in self._everywhere):
            number += 1
            candidate = f"{name}_{number}"
        self._taken.add(candidate)
        return candidate
