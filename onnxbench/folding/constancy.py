"""Which values of a graph are the same in every run."""

from __future__ import annotations

from weakref import WeakKeyDictionary

from onnx import NodeProto

from onnxbench.core.attributes import subgraphs
from onnxbench.core.graph import FunctionKey, GraphView, Node, call_key, draws

#: Of operators of other domains nobody knows whether equal inputs give equal outputs.
_KNOWN_DOMAINS = ("", "ai.onnx", "ai.onnx.ml")


_found: WeakKeyDictionary[GraphView, dict[bool, frozenset[str]]] = WeakKeyDictionary()


def constants_of(view: GraphView, *, freeze: bool = False) -> frozenset[str]:
    """Initializers, and what is computed from them alone by operators that are not random; of outer graphs too.

    Args:
        view: the graph.
        freeze: whether initializers that a caller may override count as well.
    """
    known = _found.setdefault(view, {})
    if freeze not in known:
        known[freeze] = _constants(view, freeze)
    return known[freeze]


def _constants(view: GraphView, freeze: bool) -> frozenset[str]:
    stored = [*view.initializers, *view.sparse]
    found = {name for name in stored if freeze or not view.is_overridable(name)}
    if view.parent is not None and not view.isolated:
        outer = constants_of(view.parent, freeze=freeze)
        found |= {name for name in outer if not view.defines(name)}
    for node in view.order:
        if all(not name or name in found for name in node.inputs) and is_deterministic(view, node):
            found.update(name for name in node.outputs if name)
    return frozenset(found)


def is_deterministic(view: GraphView, node: Node) -> bool:
    """Whether equal inputs give equal outputs, whatever the node holds or calls; not told of operators nobody knows.

    A node that takes attributes of the function that it stands in gives something else in each call.
    """
    if any(attribute.ref_attr_name for attribute in node.proto.attribute):
        return False
    return _is_steady(view, node.proto)


_steady: WeakKeyDictionary[GraphView, dict[FunctionKey, bool]] = WeakKeyDictionary()


def _is_steady(view: GraphView, node: NodeProto) -> bool:
    if draws(node):
        return False
    key = call_key(node)
    if key in view.functions:
        return _is_function_steady(view, key)
    if node.domain not in _KNOWN_DOMAINS:
        return False
    return all(_is_steady(view, inner) for _, graph in subgraphs(node) for inner in graph.node)


def _is_function_steady(view: GraphView, key: FunctionKey) -> bool:
    """Told once for each function: thirty that call each other twice have more calls than anybody can follow."""
    known = _steady.setdefault(view, {})
    if key not in known:
        known[key] = False  # while it is being told: one that calls itself is not steady
        known[key] = all(_is_steady(view, inner) for inner in view.functions[key].node)
    return known[key]
