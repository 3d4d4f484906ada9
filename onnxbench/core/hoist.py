"""Replace an `If` by the branch that is taken, in the graph around it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from onnx import GraphProto, NodeProto, TensorShapeProto, ValueInfoProto, helper

from onnxbench.core.attributes import subgraphs
from onnxbench.core.sizes import dims_in


def hoist(graph: GraphProto, taken: Mapping[str, bool], *, avoid: Iterable[str] = ()) -> bool:
    """Put the taken branch in place of every `If` of the graph whose condition is known; in place.

    Names of the branch that the graph uses already get a suffix. What the branch returns takes the names of the `If`'s
    outputs, so that nothing else changes (ai.onnx If: the outputs of the branch are the outputs of the node).

    Args:
        graph: changed in place.
        taken: truth of the condition, by value name.
        avoid: names outside the graph that no value may be renamed to.

    Returns:
        Whether anything was hoisted.
    """
    names = _Names(graph, avoid)
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
    names.release(node)
    branch = _without(next(body for name, body in subgraphs(node) if name == wanted), node.output, names)
    made = {name for inner in branch.node for name in inner.output if name}
    mapping: dict[str, str] = {}
    passed_on: list[tuple[str, str]] = []
    for ours, theirs in zip(node.output, (value.name for value in branch.output), strict=False):
        if theirs in made and theirs not in mapping and ours:
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
    _declare(graph, branch, mapping)
    nodes = [renamed(inner, mapping) for inner in branch.node]
    return nodes + [helper.make_node("Identity", [mapping.get(source, source)], [ours]) for source, ours in passed_on]


def _declare(graph: GraphProto, branch: GraphProto, mapping: Mapping[str, str]) -> None:
    """Declare what the branch declares, without names of sizes that the graph has too: each graph has its own."""
    declared = {value.name for value in (*graph.output, *graph.value_info)}
    taken = {dim.dim_param for value in (*graph.input, *graph.output, *graph.value_info) for dim in _dims(value)}
    for value in branch.value_info:
        name = mapping.get(value.name, value.name)
        if name not in declared:
            made = graph.value_info.add()
            made.CopyFrom(value)
            made.name = name
            for dim in _dims(made):
                if dim.dim_param in taken:
                    dim.ClearField("dim_param")


def _dims(value: ValueInfoProto) -> Iterable[TensorShapeProto.Dimension]:
    return dims_in(value.type) or ()


def _without(branch: GraphProto, outer: Iterable[str], names: _Names) -> GraphProto:
    """The branch, with other names for what it calls like an output of its `If`: at any depth that is its own value."""
    used = set(every_name(branch))
    mapping = {name: names.fresh(name) for name in outer if name in used}
    if not mapping:
        return branch
    copy = GraphProto()
    copy.CopyFrom(branch)
    _rename_everywhere(copy, mapping)
    return copy


def _rename_everywhere(graph: GraphProto, mapping: Mapping[str, str]) -> None:
    for value in (*graph.input, *graph.output, *graph.value_info, *graph.initializer):
        value.name = mapping.get(value.name, value.name)
    for sparse in graph.sparse_initializer:
        sparse.values.name = mapping.get(sparse.values.name, sparse.values.name)
    for node in graph.node:
        _rename_own(node, mapping)
        for _, body in subgraphs(node):
            _rename_everywhere(body, mapping)


def renamed(node: NodeProto, mapping: Mapping[str, str]) -> NodeProto:
    """A copy of a node with its values renamed, and those that its bodies capture."""
    copy = NodeProto()
    copy.CopyFrom(node)
    _rename_in_place(copy, mapping)
    return copy


def _rename_own(node: NodeProto, mapping: Mapping[str, str]) -> None:
    """What a node itself says of values: its inputs and outputs, and over which devices they are spread."""
    node.input[:] = [mapping.get(name, name) for name in node.input]
    node.output[:] = [mapping.get(name, name) for name in node.output]
    for configuration in node.device_configurations:
        for spec in configuration.sharding_spec:
            spec.tensor_name = mapping.get(spec.tensor_name, spec.tensor_name)


def _rename_in_place(node: NodeProto, mapping: Mapping[str, str]) -> None:
    _rename_own(node, mapping)
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
    """Every value name in a graph and its bodies, read, made or handed on, as often as it is there."""
    yield from defined_names(graph)
    yield from (value.name for value in graph.output)
    for node in graph.node:
        yield from node.input
        if node.attribute:
            for _, body in subgraphs(node):
                yield from every_name(body)


class _Names:
    """Names in use, and new ones that are not; bodies count: none of their names may be one of the graph outside."""

    def __init__(self, graph: GraphProto, avoid: Iterable[str]) -> None:
        self._uses = Counter(every_name(graph))
        self._everywhere = {*self._uses, *avoid}

    def release(self, node: NodeProto) -> None:
        """Count the names in a node's bodies no longer: it is about to be replaced."""
        for _, body in subgraphs(node):
            self._uses.subtract(every_name(body))

    def fresh(self, name: str) -> str:
        """The name itself unless it is used elsewhere, or was given before; then with a number."""
        candidate, number = name, 1
        while self._uses[candidate] > 0 or (candidate != name and candidate in self._everywhere):
            number += 1
            candidate = f"{name}_{number}"
        self._uses[candidate] += 1
        return candidate
