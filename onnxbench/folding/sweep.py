"""Remove what nobody reads any more: nodes, initializers, and declarations of values that are gone."""

from __future__ import annotations

from collections.abc import Iterable

from onnx import FunctionProto, GraphProto, ModelProto, NodeProto, TensorProto

from onnxbench.core.attributes import subgraphs
from onnxbench.core.graph import FunctionKey, Node, call_key, captures, function_key
from onnxbench.folding.changes import set_nodes
from onnxbench.folding.report import Removal
from onnxbench.folding.training import trained_names

#: What a node of another domain does besides making values, nobody knows.
_PURE = ("", "ai.onnx", "ai.onnx.ml")


def sweep(model: ModelProto) -> list[Removal]:
    """Remove what nobody reads in every graph and function of a model, in place; what went, innermost graphs first.

    Inputs stay, and the initializers that are their defaults. Of nodes that make something only those of operators that
    are known to do nothing else go, and calls of local functions.

    Args:
        model: changed in place.
    """
    local = {function_key(function) for function in model.functions}
    gone: list[Removal] = []
    _sweep_bodies(model.graph.node, "", local, gone)
    _sweep_graph(model.graph, "", local, gone, trained_names(model))
    for function in model.functions:
        where = f"function {function.name}"
        _sweep_bodies(function.node, where, local, gone)
        _sweep_nodes(function, set(function.output), where, local, gone)
    return gone


def drop_functions(model: ModelProto, called_before: set[FunctionKey]) -> list[Removal]:
    """Remove local functions that were called and are not any more."""
    called = called_functions(model)
    gone = [f for f in model.functions if function_key(f) in called_before and function_key(f) not in called]
    kept = [FunctionProto.FromString(f.SerializeToString()) for f in model.functions if f not in gone]
    if gone:
        del model.functions[:]
        model.functions.extend(kept)
    return [Removal("function", f.name, "", "", "unused", "nothing calls it any more") for f in gone]


def called_functions(model: ModelProto) -> set[FunctionKey]:
    """The keys of all nodes that the main graph and those of training reach, through bodies and calls."""
    functions = {function_key(function): function for function in model.functions}
    if not functions:
        return set()
    called: set[FunctionKey] = set()
    pending: list[NodeProto] = list(model.graph.node)
    for info in model.training_info:
        pending += [*info.initialization.node, *info.algorithm.node]
    while pending:
        node = pending.pop()
        for _, body in subgraphs(node):
            pending.extend(body.node)
        key = call_key(node)
        if key in functions and key not in called:
            called.add(key)
            pending.extend(functions[key].node)
    return called


def _sweep_bodies(nodes: Iterable[NodeProto], where: str, local: set[FunctionKey], gone: list[Removal]) -> None:
    for node in nodes:
        if not node.attribute:
            continue
        for label, body in subgraphs(node):
            inner = f"{where}/{_label(node)}:{label}" if where else f"{_label(node)}:{label}"
            _sweep_bodies(body.node, inner, local, gone)
            _sweep_graph(body, inner, local, gone)


def _sweep_graph(
    graph: GraphProto,
    where: str,
    local: set[FunctionKey],
    gone: list[Removal],
    trained: frozenset[str] = frozenset(),
) -> None:
    _forget(graph)
    scales = {pair.value for entry in graph.quantization_annotation for pair in entry.quant_parameter_tensor_names}
    read = {value.name for value in graph.output} | scales | trained
    read = _sweep_nodes(graph, read, where, local, gone)
    inputs = {value.name for value in graph.input}
    needed = read | inputs
    unused = [t for t in graph.initializer if t.name not in needed]
    if unused:
        names = {tensor.name for tensor in unused}
        kept = [TensorProto.FromString(t.SerializeToString()) for t in graph.initializer if t.name not in names]
        del graph.initializer[:]
        graph.initializer.extend(kept)
        gone += [Removal("initializer", name, "", where, "unused", "nobody reads it") for name in sorted(names)]
    _forget(graph)


def _sweep_nodes(
    holder: GraphProto | FunctionProto,
    read: set[str],
    where: str,
    local: set[FunctionKey],
    gone: list[Removal],
) -> set[str]:
    """Remove nodes that make nothing that is read; the names that are read in the end.

    From the last node to the first, which takes one walk where they are sorted, and a short one of what is left over.
    """
    read, kept = set(read), set()
    waiting, before = [(place, node) for place, node in enumerate(holder.node)][::-1], -1
    while waiting and len(waiting) != before:
        before, rest = len(waiting), []
        for place, node in waiting:
            if _is_pure(node, local) and not any(name in read for name in node.output):
                rest.append((place, node))
                continue
            kept.add(place)
            read.update(node.input)
            if node.attribute:
                read.update(captures(node))
        waiting = rest[::-1] if len(rest) > 1 else rest  # the other way round: a file may be sorted backwards
    if waiting:
        dead = [node for _, node in sorted(waiting, key=lambda pair: pair[0])]
        gone += [Removal("node", _name(n, where), n.op_type, where, "unused", "nobody reads it") for n in dead]
        set_nodes(holder, [node for place, node in enumerate(holder.node) if place in kept])
    return read


def _is_pure(node: NodeProto, local: set[FunctionKey]) -> bool:
    if node.domain not in _PURE and call_key(node) not in local:
        return False
    return any(node.output) and all(_is_pure(inner, local) for _, body in subgraphs(node) for inner in body.node)


def _forget(graph: GraphProto) -> None:
    """Drop declarations and annotations of values that are not there any more."""
    there = {name for node in graph.node for name in node.output}
    there.update(value.name for value in graph.input)
    there.update(tensor.name for tensor in graph.initializer)
    there.update(sparse.values.name for sparse in graph.sparse_initializer)
    if any(value.name not in there for value in graph.value_info):
        kept = [value for value in graph.value_info if value.name in there]
        copies = [type(value).FromString(value.SerializeToString()) for value in kept]
        del graph.value_info[:]
        graph.value_info.extend(copies)
    if any(entry.tensor_name not in there for entry in graph.quantization_annotation):
        notes = [entry for entry in graph.quantization_annotation if entry.tensor_name in there]
        texts = [type(entry).FromString(entry.SerializeToString()) for entry in notes]
        del graph.quantization_annotation[:]
        graph.quantization_annotation.extend(texts)


def _label(node: NodeProto) -> str:
    return Node(0, node, (), tuple(node.output)).label


def _name(node: NodeProto, where: str) -> str:
    return f"{where}/{_label(node)}" if where else _label(node)
