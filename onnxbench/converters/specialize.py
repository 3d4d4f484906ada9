"""Functions that cannot be converted once for all their calls: one copy for each kind of call.

What a call gives decides what a node inside means: its attributes, and the element types of its inputs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from onnx import GraphProto, ModelProto, NodeProto

from onnxbench.converters.facts import Facts
from onnxbench.converters.options import ConvertOptions
from onnxbench.converters.places import Places
from onnxbench.core.attributes import subgraphs
from onnxbench.core.graph import FunctionKey, call_key, function_key
from onnxbench.core.model import Model


def specialized(model: Model, wanted: Iterable[FunctionKey], options: ConvertOptions) -> Model | None:
    """A copy of a model in which calls of some functions that are not of one kind call copies of their own.

    Args:
        model: the model; not changed.
        wanted: the functions.
        options: limits for what has to be found out.

    Returns:
        The model, or None if no function has calls of different kinds.
    """
    copy = ModelProto()
    copy.CopyFrom(model.proto)
    places = Places(model, options)
    every = {*wanted, *_callers(model.proto, set(wanted), places)}
    kinds: dict[FunctionKey, dict[bytes, str]] = {key: {} for key in every}
    taken = {function.name for function in copy.functions}
    for node, facts, index in _calls(model.proto, copy, places):
        key = call_key(node)
        if key not in every:
            continue
        kind = _kind(facts.bound(index) or node, facts)
        if kind not in kinds[key]:
            kinds[key][kind] = node.op_type if not kinds[key] else _fresh(node.op_type, taken)
        node.op_type = kinds[key][kind]
    if all(len(found) < 2 for found in kinds.values()):
        return None
    for function in model.proto.functions:
        for name in list(kinds.get(function_key(function), {}).values())[1:]:
            twin = copy.functions.add()
            twin.CopyFrom(function)
            twin.name = name
    return Model(copy, model.folder, model.path, model.label)


def _callers(model: ModelProto, wanted: set[FunctionKey], places: Places) -> set[FunctionKey]:
    """Functions that hand on, to those that are wanted, what their own calls give: they have to be told apart first."""
    found: set[FunctionKey] = set()
    pending = set(wanted)
    while pending:
        callers = set()
        for function in model.functions:
            for node, facts, index in _within(function.node, function.node, places.function(function)):
                if call_key(node) in pending and _is_handed_on(node, facts, index):
                    callers.add(function_key(function))
        pending = callers - found - wanted
        found |= pending
    return found


def _is_handed_on(node: NodeProto, facts: Facts, index: int) -> bool:
    if len(facts.scopes) < 2:
        return False
    return facts.bound(index) is None or any(name and facts.rank(name) is None for name in node.input)


def _calls(source: ModelProto, copy: ModelProto, places: Places) -> Iterator[tuple[NodeProto, Facts, int]]:
    """Every node of the copy that may be a call, with what is known of the values around it, and its place there."""
    yield from _within(source.graph.node, copy.graph.node, places.main())
    for function, twin in zip(source.functions, list(copy.functions), strict=False):
        yield from _within(function.node, twin.node, places.function(function))


def _within(
    nodes: Iterable[NodeProto], copies: Iterable[NodeProto], facts: Facts
) -> Iterator[tuple[NodeProto, Facts, int]]:
    for index, (node, copy) in enumerate(zip(nodes, copies, strict=True)):
        yield copy, facts, index
        pairs: list[tuple[tuple[str, GraphProto], tuple[str, GraphProto]]]
        pairs = list(zip(subgraphs(node), subgraphs(copy), strict=True))
        for (label, body), (_, twin) in pairs:
            yield from _within(body.node, twin.node, Places.body(facts, index, label))


def _kind(node: NodeProto, facts: Facts) -> bytes:
    attributes = sorted(attribute.SerializeToString(deterministic=True) for attribute in node.attribute)
    types = [f"{facts.kind(name)}:{facts.rank(name)}" if name else "" for name in node.input]
    return b"\0".join([*attributes, ",".join(types).encode()])


def _fresh(name: str, taken: set[str]) -> str:
    number = 2
    while f"{name}_{number}" in taken:
        number += 1
    taken.add(f"{name}_{number}")
    return f"{name}_{number}"
