"""What a model costs: multiply-accumulates, and the peak of live activation memory.

Both are sizes (`core.symbolic`): numbers where every dimension is known, expressions of the model's symbols where not. What
cannot be told at all is counted apart, so that a sum never hides it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from onnxbench.core.graph import GraphView, Node, call_key
from onnxbench.core.shapes import Shapes
from onnxbench.core.symbolic import Size, Total, largest, term_count
from onnxbench.core.tensors import element_bits
from onnxbench.inspecting.macs import macs_of
from onnxbench.inspecting.matching import attribute_key

_COMPARED = 256  # terms: to compare longer expressions with each other takes minutes, and nobody reads them


@dataclass(slots=True)
class NodeCost:
    """Of one node: `macs` is None if a dimension that counts is unknown; `live` is the memory in use while it runs, bytes."""

    node: Node
    macs: Size | None
    live: Size | None


@dataclass(slots=True)
class Costs:
    """Of a graph.

    Attributes:
        nodes: in file order, of the top graph; a node with bodies or a function holds what those cost.
        macs: the sum over nodes whose cost is known; for `If` the dearest branch.
        unknown: nodes whose cost cannot be told, bodies included.
        peak: bytes of activations alive at once, inputs and outputs included and weights not, in file order without reuse in
            place; the largest of several expressions if none is larger for all symbols.
        peak_at: the node that runs at the peak.
        unsized: values whose size cannot be told; they are not in `peak`.
    """

    nodes: list[NodeCost] = field(default_factory=list)
    macs: Size = 0
    unknown: int = 0
    peak: Size = 0
    peak_at: Node | None = None
    unsized: int = 0


def costs(view: GraphView, shapes: Shapes) -> Costs:
    """The costs of a graph; linear in its nodes."""
    result = Costs()
    counter = _Counter(shapes)
    counts = [counter.node(view, node) for node in view.nodes]
    live, result.unsized = live_memory(view, shapes)
    result.nodes = [NodeCost(n, m, b) for n, m, b in zip(view.nodes, counts, live, strict=True)]
    total = Total()
    for count in counts:
        if count:
            total.add(count)
    result.macs = total.size
    result.unknown = counter.unknown
    result.peak, result.peak_at = _peak(result.nodes)
    return result


def node_macs(view: GraphView, node: Node, shapes: Shapes) -> Size | None:
    """The multiply-accumulates of one node, with what its bodies or its function cost; None if they cannot be told."""
    return _Counter(shapes).node(view, node)


def _peak(nodes: Sequence[NodeCost]) -> tuple[Size, Node | None]:
    """The memory that no other node needs more of; a maximum of expressions if it depends on the symbols."""
    best: list[tuple[Size, Node]] = []
    seen: set[Size] = set()
    for cost in nodes:
        if cost.live is None or cost.live in seen:
            continue
        seen.add(cost.live)
        if any(at_least(size, cost.live) for size, _ in best):
            continue
        best = [(size, node) for size, node in best if not at_least(cost.live, size)] + [(cost.live, cost.node)]
    if not best:
        return 0, None
    return largest(*(size for size, _ in best)), best[0][1]


def at_least(one: Size, other: Size) -> bool:
    """Whether a size is never smaller than another, whatever sizes of 1 and more the symbols have (sufficient, not necessary)."""
    if max(term_count(one), term_count(other)) > _COMPARED:
        return False
    gap = one - other
    if isinstance(gap, int):
        return gap >= 0
    # With every symbol at 1 or more a product is at least each of its parts, so negative terms are paid by larger ones.
    positive = {m: f for m, f in gap.terms.items() if f > 0}
    owed = [(m, -f) for m, f in gap.terms.items() if f < 0]
    for monomial, debt in owed:
        for bigger in list(positive):
            if debt and _covers(dict(bigger), dict(monomial)):
                paid = min(debt, positive[bigger])
                positive[bigger] -= paid
                debt -= paid
        if debt:
            return False
    return True


def _covers(bigger: Mapping[object, int], smaller: Mapping[object, int]) -> bool:
    """Whether a product is at least another: it has all its atoms, and what it has more are symbols, which are 1 or more."""
    more = {atom for atom, power in bigger.items() if power > smaller.get(atom, 0)}
    return all(bigger.get(a, 0) >= power for a, power in smaller.items()) and all(isinstance(a, str) for a in more)


def byte_size(shapes: Shapes, name: str) -> Size | None:
    """Bytes of a value; None if its type or a dimension is unknown. Strings have no size of their own: 0."""
    element, dims = shapes.element(name), shapes.dims(name)
    return None if element is None or dims is None else _bytes(element, dims)


@lru_cache(4096)
def _bytes(element: int, dims: tuple[Size | None, ...]) -> Size | None:
    bits = element_bits(element)
    if bits is None:
        return 0
    count: Size = 1
    for dim in dims:
        if dim is None:
            return None
        count = count * dim
    if isinstance(count, int):
        return -(-count * bits // 8)
    return count * (bits // 8) if bits >= 8 else (count * bits + 7) // 8


def live_memory(view: GraphView, shapes: Shapes) -> tuple[list[Size | None], int]:
    """Bytes alive while each node of a graph runs, and how many values have no known size.

    A value lives from the node that makes it (an input: from the start) to the last node that reads it (an output: to the
    end). Initializers and Constants are weights and not counted, nor is what bodies hold while they run. Order: the file's,
    or a runnable one if the file is unsorted.
    """
    order = view.nodes if _is_sorted(view) else view.order
    born: list[Size] = [0] * len(order)
    dying: list[Size] = [0] * (len(order) + 1)
    unsized = 0
    for name, start, end in _lifetimes(view, order):
        size = byte_size(shapes, name)
        if size is None:
            unsized += 1
            continue
        born[start] = _plus(born[start], size)
        dying[end] = _plus(dying[end], size)
    alive: dict[int, Size | None] = {}
    current: Size = 0
    for node, start_bytes, end_bytes in zip(order, born, dying, strict=False):
        current = alive[node.index] = _plus(current, start_bytes)
        current = _minus(current, end_bytes)
    return [alive[node.index] for node in view.nodes], unsized


@lru_cache(4096)
def _plus(one: Size, other: Size) -> Size:
    """The sum; networks repeat themselves, and the same sums come again."""
    return one + other


@lru_cache(4096)
def _minus(one: Size, other: Size) -> Size:
    return one - other


def _lifetimes(view: GraphView, order: Sequence[Node]) -> Iterator[tuple[str, int, int]]:
    """Each activation with the places in the order of the first and the last node that it is alive for."""
    last = {name: place for place, node in enumerate(order) for name in node.inputs}
    last.update(dict.fromkeys(view.outputs, len(order)))
    weights = {*view.initializers, *view.sparse}
    if order:
        yield from ((name, 0, last[name]) for name in view.inputs if name in last and name not in weights)
    for place, node in enumerate(order):
        if node.proto.op_type != "Constant":
            yield from ((name, place, last.get(name, place)) for name in node.outputs if name)


def _is_sorted(view: GraphView) -> bool:
    return all(
        view.producer[name].index < node.index for node in view.nodes for name in node.inputs if name in view.producer
    )


@dataclass(slots=True)
class _Counter:
    """Counts multiply-accumulates through bodies and functions."""

    shapes: Shapes
    unknown: int = 0
    _calls: dict[Hashable, tuple[Size, int]] = field(default_factory=dict)

    def node(self, view: GraphView, node: Node) -> Size | None:
        bodies = view.bodies(node)
        if bodies:
            return self._control_flow(view, node, bodies)
        if view.function_of(node) is not None:
            return self._call(view, node)
        count = macs_of(node, self.shapes)
        if count is None:
            self.unknown += 1
        return count

    def _graph(self, view: GraphView) -> Size:
        total = Total()
        for node in view.nodes:
            if count := self.node(view, node):
                total.add(count)
        return total.size

    def _control_flow(self, view: GraphView, node: Node, bodies: Sequence[tuple[str, GraphView]]) -> Size | None:
        inner = [self._scoped(body) for _, body in bodies]
        if node.proto.op_type == "If":
            return largest(*inner)
        if not any(inner):
            return 0
        rounds = self.shapes.rounds(view, node)
        if rounds is None:
            self.unknown += 1
            return None
        return inner[0] * rounds

    def _scoped(self, body: GraphView) -> Size:
        inside = _Counter(self.shapes.of(body), self.unknown, self._calls)
        total = inside._graph(body)
        self.unknown = inside.unknown
        return total

    def _call(self, view: GraphView, node: Node) -> Size | None:
        """Counted once for calls that look alike: functions that call each other twice would take for ever else."""
        alike = (
            call_key(node.proto),
            tuple(self.shapes.dims(name) for name in node.inputs),
            tuple(attribute_key(attribute) for attribute in node.proto.attribute),
        )
        if alike not in self._calls:
            before, body = self.unknown, view.call(node)
            count = self._scoped(body) if body is not None else 0
            self._calls[alike] = (count, self.unknown - before)
            return count
        count, unknown = self._calls[alike]
        self.unknown += unknown
        return count
