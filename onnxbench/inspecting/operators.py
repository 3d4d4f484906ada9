"""Which operators a model uses, in which version, and how much of the weights they read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from onnx import FunctionProto, GraphProto, NodeProto, TensorProto, defs

from onnxbench.core.attributes import subgraphs
from onnxbench.core.graph import GraphView, call_key, draws, opset_imports, plain_domain
from onnxbench.inspecting.header import constant_tensors, elements

#: Domains whose operators ONNX itself defines; operators of others are somebody's own.
STANDARD = frozenset({"", "ai.onnx.ml", "ai.onnx.preview.training", "ai.onnx.preview"})


@dataclass(slots=True)
class Operator:
    """One operator of a model.

    Attributes:
        domain, name: of the operator; the default domain is "".
        since: the version in force: the newest not above the imported opset. None for custom ones and unknown ones.
        count: nodes of the top graph; `in_bodies` and `in_functions` are counted apart.
        parameters: elements of the initializers that its nodes read; a tensor that several operators read counts for each.
        kind: "standard", "custom" (a domain of somebody else's), "function" (defined in the model), or "unknown" (a standard
            domain without that operator at that opset).
        deprecated: whether the version in force is a tombstone.
        random: whether its results are drawn.
    """

    domain: str
    name: str
    since: int | None
    kind: str
    deprecated: bool = False
    random: bool = False
    count: int = 0
    in_bodies: int = 0
    in_functions: int = 0
    parameters: int = 0


def operators(view: GraphView) -> list[Operator]:
    """The operators, the most frequent first."""
    found: dict[tuple[str, str, int], Operator] = {}
    read: dict[tuple[str, str, int], TensorProto] = {}  # holds the tensors, so that no id is given twice
    for node, place, opsets, stored in every_node(view):
        domain = plain_domain(node.domain)
        key = (domain, node.op_type, opsets.get(domain, 0))
        if key not in found:
            found[key] = _describe(view, node, domain, opsets)
        entry = found[key]
        setattr(entry, place, getattr(entry, place) + 1)
        for name in node.input:
            tensor = stored.get(name)
            if tensor is not None and (domain, node.op_type, id(tensor)) not in read:
                read[domain, node.op_type, id(tensor)] = tensor
                entry.parameters += elements(tensor)
        if node.op_type == "Constant":
            entry.parameters += sum(elements(tensor) for tensor in constant_tensors(node))
    return sorted(found.values(), key=lambda o: (-(o.count + o.in_bodies + o.in_functions), o.domain, o.name))


_Found = tuple[NodeProto, str, Mapping[str, int], Mapping[str, TensorProto]]


def every_node(view: GraphView) -> Iterator[_Found]:
    """Each node, the counter of `Operator` it belongs to, the opsets in force, and the initializers that it can see."""
    yield from _nodes(view.graph, "count", view.opsets, view.initializers)
    for function in view.model.functions:
        yield from _nodes(function, "in_functions", {**view.opsets, **opset_imports(function.opset_import)}, {})


def _nodes(
    graph: GraphProto | FunctionProto, place: str, opsets: Mapping[str, int], stored: Mapping[str, TensorProto]
) -> Iterator[_Found]:
    for node in graph.node:
        yield node, place, opsets, stored
        for _, body in subgraphs(node):
            inside = {**stored, **{tensor.name: tensor for tensor in body.initializer}} if body.initializer else stored
            yield from _nodes(body, "in_bodies" if place == "count" else place, opsets, inside)


def _describe(view: GraphView, node: NodeProto, domain: str, opsets: Mapping[str, int]) -> Operator:
    if call_key(node) in view.functions:
        return Operator(domain, node.op_type, None, "function")
    if domain not in STANDARD:
        return Operator(domain, node.op_type, None, "custom")
    schema = schema_of(domain, node.op_type, opsets.get(domain, 0))
    if schema is None:
        return Operator(domain, node.op_type, None, "unknown")
    return Operator(
        domain,
        node.op_type,
        schema.since_version,
        "standard",
        deprecated=schema.deprecated,
        random=draws(node),
    )


def schema_of(domain: str, name: str, opset: int) -> defs.OpSchema | None:
    """The operator's schema in force at an opset; None if there is none."""
    try:
        return defs.get_schema(name, opset, domain)
    except (defs.SchemaError, TypeError):  # TypeError: an opset that is no C int
        return None
