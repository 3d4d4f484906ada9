"""Element types of a graph's values, told by schemas alone: no walk over the whole model is needed for them."""

from __future__ import annotations

from weakref import WeakKeyDictionary

from onnx import NodeProto
from onnx.defs import OpSchema

from onnxbench.converters import schemas
from onnxbench.core.graph import GraphView, plain_domain

_known: WeakKeyDictionary[GraphView, dict[str, int | None]] = WeakKeyDictionary()


def element_in(view: GraphView, name: str) -> int | None:
    """The element type of a value, as what it is made of and the schemas tell it; None if they do not.

    An output that shares a type variable with an input has its type (ONNX, "Type constraints"): the way leads back from
    node to node until a type is declared or stored.
    """
    known = _known.setdefault(view, {})
    way: list[str] = []
    found: int | None = None
    while name not in known:
        way.append(name)
        known[name] = None  # while the way is walked: a circle tells nothing
        found = _declared(view, name)
        source = _source(view, name) if found is None else None
        if source is None:
            break
        name = source
    else:
        found = known[name]
    for passed in way:
        known[passed] = found
    return found


def _declared(view: GraphView, name: str) -> int | None:
    if name in view.initializers:
        return int(view.initializers[name].data_type)
    declared = view.types.get(name)
    return declared.tensor_type.elem_type or None if declared is not None else None


def _source(view: GraphView, name: str) -> str | None:
    """The input of what makes a value that has the same type variable."""
    node = view.producer.get(name)
    if node is None or view.function_of(node) is not None:
        return None
    domain = plain_domain(node.proto.domain)
    version = schemas.schema(domain, node.proto.op_type, view.opsets.get(domain, 0))
    return _alike(node.proto, version, list(node.proto.output).index(name)) if version is not None else None


def _alike(node: NodeProto, version: OpSchema, place: int) -> str | None:
    if not version.outputs or not version.inputs:
        return None
    formal = version.outputs[min(place, len(version.outputs) - 1)].type_str
    if formal.startswith(("tensor", "seq", "optional", "map")):
        return None
    for number, name in enumerate(node.input):
        given = version.inputs[min(number, len(version.inputs) - 1)]
        if name and given.type_str == formal and given.is_homogeneous:
            return str(name)
    return None
