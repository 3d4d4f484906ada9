"""Find which numbers an input may hold: those that index, size or divide something further on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from onnxbench.core.graph import GraphView, Node
from onnxbench.core.index_roles import Bound, role
from onnxbench.core.knowledge import Knowledge
from onnxbench.core.sizes import Sizes

#: Operators that move the numbers of their first operand.
_MOVERS = (
    *("Cast", "Identity", "Reshape", "Squeeze", "Unsqueeze", "Slice", "Transpose", "Flatten", "Expand", "Gather"),
    *("GatherElements", "GatherND", "Split", "Tile", "ReduceMax", "ReduceMin", "SequenceAt", "ConcatFromSequence"),
    *("SplitToSequence", "OptionalGetElement", "Optional", "Compress", "TopK", "Clip", "Dropout", "Pad"),
)
#: Operators whose result holds numbers of the operand at these places ("all": of any) and no others.
_CARRIERS: dict[str, tuple[int, ...] | str] = {
    "Concat": "all",
    "Max": "all",
    "Min": "all",
    "SequenceConstruct": "all",
    "Where": (1, 2),
    "ScatterND": (0, 2),
    "ScatterElements": (0, 2),
    "Scatter": (0, 2),
    "SequenceInsert": (0, 1),
    **dict.fromkeys(_MOVERS, (0,)),
}
#: Carriers that keep every element at its place in the flat order.
_WHOLE = frozenset({"Cast", "Identity", "Reshape", "Squeeze", "Unsqueeze", "Flatten", "Optional", "OptionalGetElement"})
_MOST_STEPS = 200_000


def index_ranges(view: GraphView, sizes: Sizes) -> dict[str, Bound]:
    """The bound of each input that has one, as far as the graph tells it.

    An input is followed through operators that only move its numbers, through constant offsets, into bodies and local
    functions. Where two readers disagree, the first one counts.
    """
    knowledge = Knowledge(sizes)
    flow = _Flow(knowledge)
    found: dict[str, Bound] = {}
    for name in sizes.shapes:
        bound: Bound | None = None
        for other in flow.bounds(view, name):
            bound = other if bound is None else bound.narrowed(other)
        if bound is not None:
            found[name] = bound
    return found


Stop = tuple[GraphView, str, float, bool]  # a value, what was added on the way, whether its elements kept their places


class _Flow:
    def __init__(self, knowledge: Knowledge) -> None:
        self.knowledge = knowledge
        self._inner: dict[tuple[int, int], list[GraphView]] = {}

    def bounds(self, view: GraphView, name: str) -> Iterator[Bound]:
        """The bounds that readers of a value put on it, the nearest first."""
        seen = {(id(view), name)}
        pending: list[Stop] = [(view, name, 0, True)]
        for stop in pending:
            if len(pending) > _MOST_STEPS:
                return
            view, name, shift, whole = stop
            for node in view.consumers.get(name, []):
                for place in (i for i, other in enumerate(node.proto.input) if other == name):
                    bound = None if view.function_of(node) else role(self.knowledge, view, node, place)
                    if bound is not None:
                        yield replace(bound.shifted(-shift), exact=bound.exact if whole and not shift else None)
            for following in self._onward(stop):
                key = (id(following[0]), following[1])
                if key not in seen:
                    seen.add(key)
                    pending.append(following)

    def _onward(self, stop: Stop) -> Iterator[Stop]:
        view, name, shift, whole = stop
        for node in view.consumers.get(name, []):
            places = [i for i, other in enumerate(node.proto.input) if other == name]
            yield from self._into(node, places, stop)
            if node.proto.domain not in ("", "ai.onnx"):
                continue
            carried = _CARRIERS.get(node.proto.op_type, ())
            if any(carried == "all" or place in carried for place in places):
                kept = whole and node.proto.op_type in _WHOLE
                yield from ((view, output, shift, kept) for output in node.outputs if output)
            elif len(node.inputs) < 2 or not node.outputs:
                continue
            elif node.proto.op_type in ("Add", "Sub") and places == [0]:
                offset = self.knowledge.scalar(view, node.inputs[1])
                if offset is not None:
                    yield view, node.outputs[0], shift + (offset if node.proto.op_type == "Add" else -offset), whole
            elif node.proto.op_type == "Add" and places == [1]:
                offset = self.knowledge.scalar(view, node.inputs[0])
                if offset is not None:
                    yield view, node.outputs[0], shift + offset, whole
        yield from _out(stop)

    def _into(self, node: Node, places: list[int], stop: Stop) -> Iterator[Stop]:
        """Bodies and functions that read the value, by its own name or by that of their input."""
        view, name, shift, whole = stop
        for inner in self._inside(view, node):
            if not inner.isolated and not inner.defines(name):
                yield inner, name, shift, whole
            if inner.isolated or node.proto.op_type in ("Loop", "Scan"):
                formals = list(inner.inputs)
                first = 2 if node.proto.op_type == "Loop" and not inner.isolated else 0
                for place in places:
                    if first <= place < len(formals):
                        yield inner, formals[place], shift, whole and inner.isolated

    def _inside(self, view: GraphView, node: Node) -> list[GraphView]:
        key = (id(view), node.index)
        if key not in self._inner:
            called = view.call(node)
            self._inner[key] = [called] if called is not None else [inner for _, inner in view.bodies(node)]
        return self._inner[key]


def _out(stop: Stop) -> Iterator[Stop]:
    """From the output of a branch or function to what its node makes."""
    view, name, shift, whole = stop
    if view.parent is None or view.owner is None or not (view.isolated or view.owner.proto.op_type == "If"):
        return
    for place, output in enumerate(view.outputs):
        if output == name and place < len(view.owner.outputs) and view.owner.outputs[place]:
            yield view.parent, view.owner.outputs[place], shift, whole


def within(bounds: Mapping[str, Bound], name: str, ranges: Mapping[str, tuple[float, float]]) -> Bound | None:
    """The bound of an input: the user's range before what the graph tells."""
    if name in ranges:
        return Bound(*ranges[name], whole=False)
    return bounds.get(name)
