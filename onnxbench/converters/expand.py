"""Put the function body that an operator's specification gives in a node's place."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from onnx import FunctionProto, GraphProto, ModelProto, NodeProto, TensorProto, TypeProto, helper
from onnx.defs import OpSchema

from onnxbench.converters import schemas
from onnxbench.converters.facts import Facts
from onnxbench.converters.site import Open
from onnxbench.core.attributes import all_nodes, bind, nodes_below, subgraphs
from onnxbench.core.graph import opset_imports, plain_domain
from onnxbench.core.hoist import defined_names, every_name, renamed


def body_of(node: NodeProto, version: OpSchema, opset: int, facts: Facts) -> FunctionProto | None:
    """The body of an operator for one node, at the newest opset up to the one given that has one; else at the oldest.

    Some bodies depend on attributes and element types of the node (ONNX, "Context-dependent functions").

    Raises:
        Open: if one depends on attributes that calls of a function give.
    """
    function = _plain_body(version, opset)
    if function is not None:
        _mend(function)
    else:
        if any(attribute.ref_attr_name for attribute in node.attribute):
            raise Open("its body depends on attributes that calls of the function give")
        function = _built_body(node, version, opset, facts)
    if function is None or not function.node or _makes_twice(function):
        return None
    for name, attribute in version.attributes.items():
        if attribute.default_value.name and name in function.attribute:
            function.attribute_proto.add().CopyFrom(attribute.default_value)
    return function


def absences(model: ModelProto, operators: Collection[str]) -> list[str]:
    """A note for each operator that is to be expanded and that no node of a model has."""
    if not operators:
        return []
    met = {node.op_type for node in all_nodes(model) if plain_domain(node.domain) in schemas.REVIEWED}
    return [f"--expand {op} changed nothing: no node has that operator" for op in sorted(set(operators) - met)]


def _mend(function: FunctionProto) -> None:
    if function.name == "AffineGrid":
        _keep_the_batch(function)
    if function.name == "DynamicQuantizeLinear":
        _avoid_no_scale(function)


def _keep_the_batch(function: FunctionProto) -> None:
    """The body of AffineGrid takes out the axis that a Split has left by leaving out all of size 1: the batch too."""
    for node in nodes_below(function.node):
        if node.op_type == "Squeeze" and len(node.input) == 1:
            node.input.append("one_1d")


def _avoid_no_scale(function: FunctionProto) -> None:
    """The body of DynamicQuantizeLinear divides zeros by a scale of 0; runtimes give 1 as the scale of nothing but zeros."""
    nodes = []
    for node in function.node:
        nodes.append(node)
        if list(node.output) == ["Scale"]:
            node.output[0] = "Any_Scale"
            nodes += [
                helper.make_node(
                    "Constant", [], ["One"], value=helper.make_tensor("One", TensorProto.FLOAT, [], [1.0])
                ),
                helper.make_node("Equal", ["X_Range", "Q_Min"], ["Only_Zeros"]),
                helper.make_node("Where", ["Only_Zeros", "One", "Any_Scale"], ["Scale"]),
            ]
    made = [NodeProto.FromString(node.SerializeToString()) for node in nodes]
    del function.node[:]
    function.node.extend(made)


def _makes_twice(function: FunctionProto) -> bool:
    """Whether a graph in a body gives a name twice: onnx makes up names of a SequenceMap's from those of its own body."""
    graphs = [graph for node in nodes_below(function.node) for _, graph in subgraphs(node)]
    for graph in graphs:
        names = [name for name in defined_names(graph) if name]
        if len(names) != len(set(names)):
            return True
    return False


def _plain_body(version: Any, opset: int) -> FunctionProto | None:
    chosen = _chosen(list(version.function_opset_versions), opset)
    if chosen is None:
        return None
    data = version.get_function_with_opset_version(chosen)
    return FunctionProto.FromString(data) if data else None


def _built_body(node: NodeProto, version: Any, opset: int, facts: Facts) -> FunctionProto | None:
    chosen = _chosen(list(version.context_dependent_function_opset_versions), opset)
    if chosen is None:
        return None
    types = [_type(facts, name) for name in node.input]
    if any(name and not kind.WhichOneof("value") for name, kind in zip(node.input, types, strict=True)):
        return None  # onnx's builders die of a type that is not known
    try:
        data = version.get_context_dependent_function_with_opset_version(
            chosen, node.SerializeToString(), [kind.SerializeToString() for kind in types]
        )
    except Exception:  # onnx raises several of its own for a node that it cannot build a body for
        return None
    return FunctionProto.FromString(data) if data else None


def _chosen(versions: list[int], opset: int) -> int | None:
    if not versions:
        return None
    return max((version for version in versions if version <= opset), default=min(versions))


def _type(facts: Facts, name: str) -> TypeProto:
    kind = TypeProto()
    element = facts.element(name) if name else None
    if element is None and name:
        kind.CopyFrom(facts.whole_type(name) or TypeProto())
    if element is not None:
        kind.tensor_type.elem_type = element
        dims = facts.dims(name)
        if dims is not None:
            kind.tensor_type.shape.SetInParent()
            for dim in dims:
                entry = kind.tensor_type.shape.dim.add()
                if dim is not None:
                    entry.dim_value = dim
    return kind


def inlined(node: NodeProto, function: FunctionProto, fresh: Callable[[str], str]) -> tuple[list[NodeProto], int]:
    """The nodes of a body with the names of the call, new ones for what is inside, and the opset they are valid at."""
    names = {"": ""}
    for formal, actual in zip(function.input, [*node.input, *[""] * len(function.input)], strict=False):
        names[formal] = actual
    for formal, actual in zip(function.output, node.output, strict=False):
        if actual:
            names[formal] = actual
    base = node.output[0] if node.output and node.output[0] else node.name or node.op_type
    nodes = bind(function, node)
    for inner in nodes:
        for name in _made(inner):
            if name and name not in names:
                names[name] = fresh(f"{base}_{name}")
    kept = {name for _, graph in subgraphs(node) for name in every_name(graph)}
    for inner in nodes:
        for _, graph in subgraphs(inner):
            _make_own(graph, kept, fresh)
    made = [renamed(inner, names) for inner in nodes]
    for inner in made:
        if node.name:
            inner.name = fresh(f"{node.name}_{inner.op_type.lower()}")
    return made, opset_imports(function.opset_import).get("", 0)


def _made(node: NodeProto) -> list[str]:
    return list(node.output)


def _make_own(graph: GraphProto, kept: Collection[str], fresh: Callable[[str], str]) -> None:
    """Give what a graph in a body defines names that nothing else in the model has; in place.

    Args:
        graph: one that a node of the specification's body holds.
        kept: names that come from the model: the body has the graphs of the node itself in it.
        fresh: makes a name.
    """
    names = {name: fresh(name) for name in dict.fromkeys(defined_names(graph)) if name and name not in kept}
    for value in (*graph.input, *graph.output, *graph.value_info, *graph.initializer):
        value.name = names.get(value.name, value.name)
    for node in graph.node:
        node.CopyFrom(renamed(node, names))
        for _, inner in subgraphs(node):
            _make_own(inner, kept, fresh)
