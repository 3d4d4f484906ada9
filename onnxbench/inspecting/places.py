"""Every graph of a model: the main one, the bodies of its nodes, and its functions, each with where it is."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from onnx import NodeProto

from onnxbench.core.graph import FunctionKey, GraphView, Node, call_key
from onnxbench.core.shapes import Shapes
from onnxbench.errors import quote


@dataclass(frozen=True, slots=True)
class Place:
    """One graph with the types of its values; `where` says how to get there, in words, "" for the main graph."""

    view: GraphView
    shapes: Shapes
    where: str = ""


def places(view: GraphView, shapes: Shapes) -> Iterator[Place]:
    """The main graph first, then what it holds and calls, level by level; functions that nothing calls last.

    A function is one place, whoever calls it: its types are those of the first call met.
    """
    met: set[FunctionKey] = set()
    yield from _below(Place(view, shapes), met)
    for key in view.functions:
        if key not in met:
            met.add(key)
            domain, name, overload = key
            call = Node(-1, NodeProto(domain=domain, op_type=name, overload=overload), (), ())
            body = view.call(call)
            assert body is not None
            yield from _below(Place(body, Shapes(), f"function {_called(key)}, which nothing calls"), met)


def _below(start: Place, met: set[FunctionKey]) -> Iterator[Place]:
    pending = deque([start])
    while pending:
        place = pending.popleft()
        yield place
        around = f", in {place.where}" if place.where else ""
        for node in place.view.nodes:
            for label, body in place.view.bodies(node):
                pending.append(Place(body, place.shapes.of(body), f"{label} of {node.label}{around}"))
            key = call_key(node.proto)
            if key in met or (called := _call(place.view, node)) is None:
                continue
            met.add(key)
            where = f"function {_called(key)}, as {node.label} calls it{around}"
            pending.append(Place(called, place.shapes.of(called), where))


def _call(view: GraphView, node: Node) -> GraphView | None:
    return view.call(node) if view.function_of(node) is not None else None


def _called(key: FunctionKey) -> str:
    return quote("::".join(filter(None, key)))
