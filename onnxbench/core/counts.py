"""How much there is in a model: nodes, and bytes."""

from __future__ import annotations

from collections import Counter

from onnx import FunctionProto, GraphProto, ModelProto, TensorProto

from onnxbench.core.attributes import subgraphs
from onnxbench.core.external import MARK, is_marked
from onnxbench.core.graph import FunctionKey, call_key, function_key
from onnxbench.core.model import Model
from onnxbench.core.tensors import is_external, tensors

#: Nodes, with all functions written out, that runtimes and shape inference do not get through in any time one would wait.
_ENDLESS = 1_000_000


def is_endless(model: ModelProto) -> bool:
    """Whether the functions call each other so often that a run of the model would only be waited for."""
    return bool(model.functions) and count_inlined(model) > _ENDLESS


def count_nodes(model: ModelProto) -> tuple[int, int]:
    """Nodes of the top graph, and nodes in all: bodies and functions added."""
    return len(model.graph.node), sum(_nodes_in(graph) for graph in (model.graph, *model.functions))


def count_inlined(model: ModelProto) -> int:
    """Nodes in all if every call of a local function were written out: functions that call each other can make billions.

    A function that calls itself, which no specification allows, counts once in its own body.
    """
    if not model.functions:
        return count_nodes(model)[1]
    functions = {function_key(f): f for f in model.functions}
    calls = {key: _calls(function, functions) for key, function in functions.items()}
    sizes: dict[FunctionKey, int] = {}
    pending, begun = list(functions), set[FunctionKey]()
    while pending:  # no recursion: a chain of functions may be longer than Python's stack
        key = pending[-1]
        missing = [callee for callee in calls[key] if callee not in sizes and callee not in begun]
        begun.add(key)
        if missing:
            pending += missing
            continue
        pending.pop()
        sizes.setdefault(key, _written_out(functions[key], calls[key], sizes))
    return _written_out(model.graph, _calls(model.graph, functions), sizes)


def _written_out(holder: GraphProto | FunctionProto, calls: Counter[FunctionKey], sizes: dict[FunctionKey, int]) -> int:
    return _nodes_in(holder) + sum(times * (sizes.get(key, 1) - 1) for key, times in calls.items())


def _calls(holder: GraphProto | FunctionProto, functions: dict[FunctionKey, FunctionProto]) -> Counter[FunctionKey]:
    """How often a graph or function calls each function, bodies included."""
    found: Counter[FunctionKey] = Counter()
    pending: list[GraphProto | FunctionProto] = [holder]
    while pending:
        for node in pending.pop().node:
            if (key := call_key(node)) in functions:
                found[key] += 1
            pending += [body for _, body in subgraphs(node)]
    return found


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
