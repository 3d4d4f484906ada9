"""Values that are made with types that evaluators disagree about: bf16, 8 bits and fewer, strings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache

from onnx import AttributeProto, NodeProto, TensorProto

from onnxbench.core.attributes import subgraphs
from onnxbench.core.graph import FunctionKey, GraphView, Node, call_key
from onnxbench.core.values import dtype_name, dtype_of, is_narrow
from onnxbench.folding.scope import Scope

#: Attributes that say what type an operator makes.
_TYPES = frozenset({"to", "dtype", "output_dtype", "output_datatype"})


def doubted(scope: Scope, nodes: Sequence[Node]) -> set[str]:
    """The values that these nodes make with such a type, directly or through others.

    A node tells by what it reads and by what it holds: attributes, tensors, bodies, calls. That needs no inference.

    Args:
        scope: where the nodes stand.
        nodes: in an order that can run.
    """
    found: set[str] = set()
    made: set[str] = set()
    for node in nodes:
        made.update(node.outputs)
        touched = any(name in found for name in node.inputs if name)
        touched = touched or any(is_doubted(_element(scope, name)) for name in node.inputs if name and name not in made)
        touched = touched or any(is_doubted(element) for element in _named_types(scope.view, node.proto, set()))
        if touched:
            found.update(name for name in node.outputs if name)
    return found


@cache
def is_doubted(element: int | None) -> bool:
    """Whether evaluators are known to disagree about an element type."""
    dtype = dtype_of(element) if element is not None else None
    return dtype is not None and (is_narrow(dtype) or dtype_name(dtype) == "string")


def _element(scope: Scope, name: str) -> int | None:
    held = next((view.initializers[name] for view in scope.view.outward() if name in view.initializers), None)
    return held.data_type if held is not None else scope.element(name)


def _named_types(view: GraphView, node: NodeProto, followed: set[FunctionKey]) -> Iterator[int]:
    """Element types that a node names anywhere, in what it calls too."""
    for attribute in node.attribute:
        if attribute.name in _TYPES and attribute.type == AttributeProto.INT:
            yield attribute.i
        if attribute.type == AttributeProto.TENSOR:
            yield attribute.t.data_type
        if attribute.type == AttributeProto.STRINGS or attribute.name == "value_string":
            yield TensorProto.STRING
    for _, body in subgraphs(node):
        yield from (tensor.data_type for tensor in body.initializer)
        for inner in body.node:
            yield from _named_types(view, inner, followed)
    key = call_key(node)
    if key in view.functions and key not in followed:
        followed.add(key)
        for inner in view.functions[key].node:
            yield from _named_types(view, inner, followed)
