"""Which values of a graph are the same in every run."""

from __future__ import annotations

from collections.abc import Iterable
from weakref import WeakKeyDictionary

from onnx import AttributeProto, NodeProto

from onnxbench.core.attributes import subgraphs
from onnxbench.core.graph import RANDOM, FunctionKey, GraphView, Node, call_key, draws, opset_imports, plain_domain

#: Of operators of other domains nobody knows whether equal inputs give equal outputs.
_KNOWN_DOMAINS = ("", "ai.onnx", "ai.onnx.ml")
#: Runtimes recognize quantized networks by these: where they stand says more than what they compute.
QUANTIZATION = frozenset({"QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear"})

_found: WeakKeyDictionary[GraphView, dict[tuple[bool, bool], frozenset[str]]] = WeakKeyDictionary()


def constants_of(view: GraphView, *, freeze: bool = False, quantized: bool = False) -> frozenset[str]:
    """Initializers, and what is computed from them alone by operators that are not random; of outer graphs too.

    Args:
        view: the graph.
        freeze: whether initializers that a caller may override count as well.
        quantized: whether what is quantized or dequantized counts as well.
    """
    known = _found.setdefault(view, {})
    if (freeze, quantized) not in known:
        known[freeze, quantized] = _constants(view, freeze, quantized)
    return known[freeze, quantized]


def _constants(view: GraphView, freeze: bool, quantized: bool) -> frozenset[str]:
    stored = [*view.initializers, *view.sparse]
    found = {name for name in stored if freeze or not view.is_overridable(name)}
    if view.parent is not None and not view.isolated:
        outer = constants_of(view.parent, freeze=freeze, quantized=quantized)
        found |= {name for name in outer if not view.defines(name)}
    for node in view.order:
        if all(not name or name in found for name in node.inputs) and is_deterministic(view, node, quantized=quantized):
            found.update(name for name in node.outputs if name)
    return frozenset(found)


def is_deterministic(view: GraphView, node: Node, *, quantized: bool = False) -> bool:
    """Whether equal inputs give equal outputs, whatever the node holds or calls; not told of operators nobody knows.

    A node that takes attributes of the function that it stands in, at any depth, gives something else in each call.

    Args:
        view: the graph that the node stands in.
        node: the node.
        quantized: whether quantization counts as any other operator; else it counts as what has to stay.
    """
    proto = node.proto
    if not proto.attribute and not proto.domain and not view.functions and proto.op_type not in _UNCLEAR:
        return True  # most nodes of a large graph: this is asked of every one
    if refers(proto):
        return False
    return _is_steady(view, proto, view.opsets.get("", 0), quantized)


def refers(node: NodeProto) -> bool:
    """Whether a node takes attributes of the function that it stands in, at any depth."""
    for attribute in node.attribute:
        if attribute.ref_attr_name:
            return True
        if attribute.type in (AttributeProto.GRAPH, AttributeProto.GRAPHS):
            graphs = [attribute.g] if attribute.type == AttributeProto.GRAPH else attribute.graphs
            if any(refers(inner) for graph in graphs for inner in graph.node):
                return True
    return False


_UNCLEAR = RANDOM | QUANTIZATION
_steady: WeakKeyDictionary[GraphView, dict[tuple[FunctionKey, bool], bool]] = WeakKeyDictionary()


def _is_steady(view: GraphView, node: NodeProto, opset: int, quantized: bool) -> bool:
    if draws(node) or (opset < 7 and node.op_type == "Dropout"):  # which trains unless it says `is_test`
        return False
    key = call_key(node)
    if key in view.functions:
        return _is_function_steady(view, key, quantized)
    if node.domain not in _KNOWN_DOMAINS:
        return False
    if not quantized and plain_domain(node.domain) == "" and node.op_type in QUANTIZATION:
        return False
    return _are_steady(view, (inner for _, graph in subgraphs(node) for inner in graph.node), opset, quantized)


def _are_steady(view: GraphView, nodes: Iterable[NodeProto], opset: int, quantized: bool) -> bool:
    return all(_is_steady(view, node, opset, quantized) for node in nodes)


def _is_function_steady(view: GraphView, key: FunctionKey, quantized: bool) -> bool:
    """Told once for each function: thirty that call each other twice have more calls than anybody can follow."""
    known = _steady.setdefault(view, {})
    if (key, quantized) not in known:
        known[key, quantized] = False  # while it is being told: one that calls itself is not steady
        function = view.functions[key]
        opset = opset_imports(function.opset_import).get("", 0)
        known[key, quantized] = _are_steady(view, function.node, opset, quantized)
    return known[key, quantized]
