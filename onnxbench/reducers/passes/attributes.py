"""Attributes at their defaults, which tell the reader nothing; one that stays is a clue."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from onnx import AttributeProto, ModelProto, defs, helper

from onnxbench.core.attributes import all_nodes
from onnxbench.core.graph import opset_imports, plain_domain
from onnxbench.reducers.passes import shrink_pass
from onnxbench.reducers.passes.operands import schema_of
from onnxbench.reducers.reproducer import Reproducer
from onnxbench.reducers.shrink import Shrinker

#: Place of the node, name of the attribute.
Key = tuple[int, str]
_GRAPHS = (AttributeProto.GRAPH, AttributeProto.GRAPHS)


@shrink_pass("attributes", "drop attributes that have a default, and make the others 0 or 1", 70)
def run(shrinker: Shrinker) -> None:
    """First what changes nothing, then all at once, then by halves; required ones become simpler."""
    proto = shrinker.best.proto
    shrinker.consider(_without(shrinker.best, list(_at_default(proto))))
    shrinker.lump(list(_optional(proto)), _without)
    for key in list(_all(shrinker.best.proto)):
        for number in (0, 1):
            if shrinker.consider(_all_set(shrinker.best, key, number)):
                break
        else:
            _simplify_each(shrinker, key)


def _all(proto: ModelProto) -> Iterator[Key]:
    for place, node in enumerate(all_nodes(proto)):
        yield from ((place, a.name) for a in node.attribute if a.type not in _GRAPHS and not a.ref_attr_name)


def _optional(proto: ModelProto) -> Iterator[Key]:
    return (key for key, told in _definitions(proto) if told is None or not told.required)


def _at_default(proto: ModelProto) -> Iterator[Key]:
    for key, told in _definitions(proto):
        default = told.default_value if told is not None else None
        if default is not None and default.type and _value(_find(proto, key)) == _value(default):
            yield key


def _definitions(proto: ModelProto) -> Iterator[tuple[Key, defs.OpSchema.Attribute | None]]:
    """What the operators say of their attributes; None of one that they do not know."""
    opsets, nodes = opset_imports(proto.opset_import), list(all_nodes(proto))
    for place, name in _all(proto):
        schema = schema_of(nodes[place], opsets.get(plain_domain(nodes[place].domain), 1))
        yield (place, name), schema.attributes.get(name) if schema is not None else None


def _value(attribute: AttributeProto) -> object:
    return helper.get_attribute_value(attribute)


def _find(proto: ModelProto, key: Key) -> AttributeProto:
    found: AttributeProto = next(a for a in list(all_nodes(proto))[key[0]].attribute if a.name == key[1])
    return found


def _without(best: Reproducer, keys: Sequence[Key]) -> Reproducer:
    proto = best.draft()
    nodes = list(all_nodes(proto))
    for place, name in keys:
        at = next((i for i, a in enumerate(nodes[place].attribute) if a.name == name), None)
        if at is not None:
            del nodes[place].attribute[at]
    return best.with_model(proto)


def _all_set(best: Reproducer, key: Key, number: int) -> Reproducer:
    """With all numbers of an attribute the same."""
    proto = best.draft()
    attribute = _find(proto, key)
    for i in range(len(attribute.ints)):
        attribute.ints[i] = number
    for i in range(len(attribute.floats)):
        attribute.floats[i] = number
    if attribute.type == AttributeProto.INT:
        attribute.i = number
    elif attribute.type == AttributeProto.FLOAT:
        attribute.f = number
    return best.with_model(proto)


def _simplify_each(shrinker: Shrinker, key: Key) -> None:
    """One number of a list after the other, and halves of a single one."""
    attribute = _find(shrinker.best.proto, key)
    for i in range(min(len(attribute.ints), 8)):
        for number in (0, 1):
            if shrinker.consider(_one_set(shrinker.best, key, i, number)):
                break
    while attribute.type == AttributeProto.INT and attribute.i > 2:
        proto = shrinker.best.draft()
        _find(proto, key).i = 2 if attribute.i % 2 else attribute.i // 2
        if not shrinker.consider(shrinker.best.with_model(proto)):
            return
        attribute = _find(shrinker.best.proto, key)


def _one_set(best: Reproducer, key: Key, i: int, number: int) -> Reproducer:
    proto = best.draft()
    _find(proto, key).ints[i] = number
    return best.with_model(proto)
