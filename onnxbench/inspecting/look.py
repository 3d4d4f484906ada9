"""A closer look: one node, one value, or what a selection selects."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from onnx import AttributeProto, helper

from onnxbench.core.graph import GraphView, Node, plain_domain
from onnxbench.core.nearest import not_found
from onnxbench.core.scopes import STACK_TRACE, scopes, source_line
from onnxbench.core.select import select
from onnxbench.core.shapes import Shapes
from onnxbench.core.tensors import type_name
from onnxbench.errors import ModelError, NameNotFound, escape
from onnxbench.inspecting.costs import byte_size, node_macs
from onnxbench.inspecting.inspection import shown
from onnxbench.inspecting.made_up import MadeUp, made_up
from onnxbench.inspecting.operators import schema_of
from onnxbench.inspecting.places import Place, places

_LONG = 120  # characters of an attribute's value


@dataclass(slots=True)
class ValueLook:
    """One value: how it comes about, its type as text, its bytes, who makes it and who reads it; `where` its body is."""

    name: str
    kind: str
    type: str
    bytes: int | str | None
    producer: str | None
    consumers: list[str] = field(default_factory=list)
    where: str = ""


@dataclass(slots=True)
class NodeLook:
    """One node with all that touches it; `where` is the body or function that holds it, "" for the main graph."""

    name: str
    operator: str
    domain: str
    since: int | None
    index: int
    inputs: list[ValueLook]
    outputs: list[ValueLook]
    attributes: dict[str, str]
    scopes: list[str]
    line: str
    stack_trace: str
    metadata: dict[str, str]
    doc: str
    macs: int | str | None
    where: str = ""


@dataclass(slots=True)
class Look:
    """What was asked for, and what symbols mean that we made up."""

    nodes: list[NodeLook]
    values: list[ValueLook]
    made_up: list[MadeUp] = field(default_factory=list)

    @property
    def exit_code(self) -> int:
        return 0

    def to_dict(self) -> dict[str, Any]:
        return {"schema": "onnxbench.look/1", **asdict(self)}


def look_for(view: GraphView, shapes: Shapes, selection: str) -> Look:
    """What a selection selects, in bodies and functions too.

    Raises:
        NameNotFound: OB303 if nothing.
        UsageError: OB204 if it cannot be read.
    """
    nodes: list[tuple[Place, Node]] = []
    values: list[tuple[Place, str]] = []
    absent: NameNotFound | None = None
    for place in places(view, shapes):
        try:
            chosen = select(place.view, selection)
        except NameNotFound as error:
            absent = absent or error  # what the main graph says: it is the first
            continue
        nodes += [(place, node) for node in chosen.nodes]
        values += [(place, name) for name in chosen.values]
    if absent is not None and not nodes and not values:
        raise absent
    return _look(nodes, values, view)


def look_at_node_named(view: GraphView, shapes: Shapes, name: str) -> Look:
    """All nodes of a name, in bodies and functions too; an unnamed node goes by what it makes.

    Raises:
        NameNotFound: OB303 with the nearest names.
    """
    everywhere = list(places(view, shapes))
    nodes = [(place, node) for place in everywhere for node in place.view.by_name.get(name, ())]
    if not nodes:
        nodes = [(place, place.view.producer[name]) for place in everywhere if name in place.view.producer]
    if not nodes:
        raise not_found("node", name, dict.fromkeys(known for place in everywhere for known in place.view.by_name))
    return _look(nodes, [], view)


def look_at_value(view: GraphView, shapes: Shapes, name: str) -> Look:
    """The value of a name; several if bodies or functions have values of that name.

    Raises:
        NameNotFound: OB303 with the nearest names.
    """
    everywhere = list(places(view, shapes))
    values = [(place, name) for place in everywhere if place.view.defines(name)]
    if not values:
        raise not_found("value", name, dict.fromkeys(known for place in everywhere for known in place.view.values()))
    return _look([], values, view)


def _look(nodes: list[tuple[Place, Node]], values: list[tuple[Place, str]], view: GraphView) -> Look:
    shown_values = [*values, *((place, name) for place, node in nodes for name in (*node.inputs, *node.outputs))]
    shapes = values[0][0].shapes if values else nodes[0][0].shapes
    sizes = (dim for place, name in shown_values for dim in place.shapes.dims(name) or ())
    return Look(
        [look_at_node(place, node) for place, node in nodes],
        [_value(place, name) for place, name in values],
        made_up(view.model, shapes, sizes),
    )


def look_at_node(place: Place, node: Node) -> NodeLook:
    """One node."""
    view = place.view
    proto = node.proto
    domain = plain_domain(proto.domain)
    schema = schema_of(domain, proto.op_type, view.opsets.get(domain, 0))
    metadata = {entry.key: entry.value for entry in proto.metadata_props}
    return NodeLook(
        name=proto.name,
        operator=proto.op_type,
        domain=domain,
        since=schema.since_version if schema is not None else None,
        index=node.index,
        inputs=[_value(place, name) for name in node.inputs],
        outputs=[_value(place, name) for name in node.outputs],
        attributes={attribute.name: attribute_text(attribute) for attribute in proto.attribute},
        scopes=list(scopes(proto)),
        line=source_line(proto),
        stack_trace=metadata.pop(STACK_TRACE, ""),
        metadata=metadata,
        doc=proto.doc_string,
        macs=_macs(place, node),
        where=place.where,
    )


def _macs(place: Place, node: Node) -> int | str | None:
    try:
        return shown(node_macs(place.view, node, place.shapes))
    except ModelError:  # it calls a function that reaches itself, which costs nothing that could be told
        return None


def attribute_text(attribute: AttributeProto) -> str:
    """An attribute's value in a few words."""
    if attribute.ref_attr_name:
        return f"@{attribute.ref_attr_name}"
    if attribute.type == AttributeProto.GRAPH:
        return f"graph of {len(attribute.g.node)} nodes"
    if attribute.type == AttributeProto.TENSOR:
        return f"{type_name(attribute.t.data_type).lower()}{list(attribute.t.dims)}"
    if attribute.type == AttributeProto.STRING:
        return _quoted(attribute.s)
    if attribute.type in (AttributeProto.FLOAT, AttributeProto.INT, AttributeProto.FLOATS, AttributeProto.INTS):
        text = str(helper.get_attribute_value(attribute))
    elif attribute.type == AttributeProto.STRINGS:
        text = f"[{', '.join(map(_quoted, attribute.strings))}]"
    else:
        text = AttributeProto.AttributeType.Name(attribute.type).lower()
    return text if len(text) <= _LONG else text[:_LONG] + "..."


def _quoted(data: bytes) -> str:
    """A string as Python writes it: text, or bytes where it is none."""
    try:
        return repr(data.decode())
    except UnicodeDecodeError:
        return repr(data)


def _value(place: Place, name: str) -> ValueLook:
    view, shapes = place.view, place.shapes
    maker = view.producer.get(name)
    readers = [node.label for node in view.consumers.get(name, ())]
    return ValueLook(
        name,
        _kind(view, name),
        type_text(shapes, name),
        shown(byte_size(shapes, name)),
        maker.label if maker is not None else None,
        readers + (["graph output"] if name in view.outputs else []),
        place.where,
    )


def _kind(view: GraphView, name: str) -> str:
    if not name:
        return "omitted"
    if view.is_overridable(name):
        return "overridable initializer"
    if name in view.initializers or name in view.sparse:
        return "initializer"
    if name in view.inputs:
        return "input"
    return "output" if name in view.outputs else "inner value" if name in view.producer else "outer value"


def type_text(shapes: Shapes, name: str) -> str:
    """float[N, 3, 8]; `?` for an unknown dim, `...` for an unknown rank."""
    if not name:
        return ""
    element, dims = shapes.element(name), shapes.dims(name)
    if element is None:
        return "sequence, optional or unknown" if shapes.type(name) is not None else "unknown"
    inside = "..." if dims is None else ", ".join("?" if dim is None else escape(str(dim)) for dim in dims)
    return f"{type_name(element).lower()}[{inside}]"
