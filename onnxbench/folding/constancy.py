"""Which values of a graph are the same in every run."""

from __future__ import annotations

from weakref import WeakKeyDictionary

from onnx import NodeProto

from onnxbench.core.attributes import subgraphs
from onnxbench.core.graph import GraphView, Node, call_key, draws

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
    """Whether equal inputs give equal outputs, whatever the node holds or calls; not told of operators nobody knows."""
    return _is_steady(view, node.proto, ())


def _is_steady(view: GraphView, node: NodeProto, calling: tuple[object, ...]) -> bool:
    if draws(node) or any(attribute.ref_attr_name for attribute in node.attribute):
        return False
    key = call_key(node)
    function = view.functions.get(key)
    if function is not None:
        inside = () if key in calling else function.node
        return key not in calling and all(_is_steady_inside(view, inner, (*calling, key)) for inner in inside)
    if node.domain not in _KNOWN_DOMAINS:
        return False
    return all(_is_steady(view, inner, calling) for _, graph in subgraphs(node) for inner in graph.node)


def _is_steady_inside(view: GraphView, node: NodeProto, calling: tuple[object, ...]) -> bool:
    """The same in a function, where attributes may refer to those of the call."""
    if not any(attribute.ref_attr_name for attribute in node.attribute):
        return _is_steady(view, node, calling)
    bare = NodeProto(op_type=node.op_type, domain=node.domain, overload=node.overload, input=node.input)
    return _is_steady(view, bare, calling)
