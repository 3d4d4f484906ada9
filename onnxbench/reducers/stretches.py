"""Record what a search asks for, stretch by stretch: halving a large network needs few of its values.

One run of the network exposes what crosses the places where the first halvings cut. A stretch between two of them is run again,
by itself, when something inside it is asked for.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from onnx import TypeProto

from onnxbench.core.graph import GraphView, Node, draws
from onnxbench.core.model import Model
from onnxbench.core.subgraph import carve
from onnxbench.core.values import Value, dtype_of, tensor_type
from onnxbench.errors import AnswerIsNo
from onnxbench.recording import record
from onnxbench.runtimes.base import Limits, Runtime

#: A stretch is halved so many times in one run, and recorded whole where it has no more nodes than this.
_HALVINGS, _SHORT = 3, 64


@dataclass(slots=True)
class Stretches:
    """The values of a network, of which only some are known yet.

    Attributes:
        runtimes: most trusted first.
        model, view, types: the network: without bodies, functions and random operators.
        values: what is known; grows.
        workspace: folder for large values.
        limits: of each run.
    """

    runtimes: Sequence[Runtime]
    model: Model
    view: GraphView
    types: Mapping[str, TypeProto]
    values: dict[str, Value]
    workspace: Path
    limits: Limits
    _open: list[tuple[int, int]] = field(default_factory=list)
    _place: dict[str, int] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        order = self.view.order
        self._open = [(0, len(order))]
        self._place = {name: place for place, node in enumerate(order) for name in node.outputs if name}

    def need(self, nodes: Sequence[Node]) -> None:
        """Make known what these nodes read from others, and what others read of theirs, as far as it can be had."""
        inside = {node.index for node in nodes}
        made = dict.fromkeys(name for node in nodes for name in node.outputs)  # in order: each may cost a run
        returned = set(self.view.outputs)
        read = [name for node in nodes for name in node.inputs if name not in made]
        left = [name for name in made if name in returned or not self._only_read_in(inside, name)]
        with self._lock:
            for name in (*read, *left):
                if name in self._place:
                    self._reach(name, self._place[name])

    def need_all(self) -> None:
        """Make everything known."""
        with self._lock:
            while self._open:
                self._record(*self._open.pop())

    def _only_read_in(self, inside: set[int], name: str) -> bool:
        return all(reader.index in inside for reader in self.view.consumers.get(name, ()))

    def _reach(self, name: str, maker: int) -> None:
        while name not in self.values:
            stretch = next((s for s in self._open if s[0] <= maker < s[1]), None)
            if stretch is None:
                return  # it was tried, and cannot be had
            self._open.remove(stretch)
            if stretch[1] - stretch[0] <= _SHORT or not self._divide(*stretch):
                self._record(*stretch)

    def _record(self, start: int, end: int) -> None:
        recorded = record(
            self.runtimes,
            self.model,
            self.view,
            self.values,
            workspace=self.workspace,
            types=self.types,
            limits=self.limits,
            only=self.view.order[start:end],
        )
        self.values.update(recorded.values)

    def _divide(self, start: int, end: int) -> bool:
        """Learn what crosses the places where a stretch is going to be cut; False if it does not run as a whole."""
        order = self.view.order
        ends = list(_halved(start, end, _HALVINGS))
        exposed = list(dict.fromkeys(name for cut in ends for name in self._crossing(start, cut)))
        try:
            piece = carve(self.model, self.view, order[start:end], self.values, types=self.types, outputs=exposed)
        except AnswerIsNo:
            return False
        spill = self.workspace / f"values-{id(self.view):x}-{start}-{end}.bin"
        outcome = self.runtimes[0].run(piece.model, piece.feeds, limits=self.limits, spill=spill)
        if not outcome.ok:
            return False
        self.values.update(outcome.outputs)
        self._open += zip([start, *ends[:-1]], ends, strict=True)
        return True

    def _crossing(self, start: int, cut: int) -> Iterator[str]:
        """What is made between two places and read, or returned, after the second."""
        late = {node.index for node in self.view.order[cut:]}
        for node in self.view.order[start:cut]:
            for name in node.outputs:
                if name in self.view.outputs or any(
                    reader.index in late for reader in self.view.consumers.get(name, ())
                ):
                    yield name


def in_stretches(model: Model, view: GraphView, types: Mapping[str, TypeProto], heavy: int, many: int) -> bool:
    """Whether a network is so heavy that not all of its values should be recorded, and so plain that they need not be.

    Args:
        model, view: the network.
        types: of its values.
        heavy: bytes of all values above which it is heavy.
        many: nodes above which it is heavy.
    """
    if model.proto.functions or any(draws(node.proto) or view.bodies(node) for node in view.nodes):
        return False
    if len(view.nodes) > many:
        return True
    sizes = [_bytes(types.get(name)) for node in view.nodes for name in node.outputs if name]
    return None not in sizes and sum(size or 0 for size in sizes) > heavy


def _bytes(kind: TypeProto | None) -> int | None:
    """Bytes of a tensor whose dims are all fixed; None for any other value."""
    declared = tensor_type(kind) if kind is not None else None
    dtype = dtype_of(declared.elem_type) if declared is not None else None
    if declared is None or dtype is None or not declared.HasField("shape"):
        return None
    dims = declared.shape.dim
    return dtype.itemsize * math.prod(d.dim_value for d in dims) if all(d.HasField("dim_value") for d in dims) else None


def _halved(start: int, end: int, times: int) -> Iterator[int]:
    """The ends of the parts that a stretch is halved into, in the way that the search halves."""
    middle = start + (end - start) // 2
    if not times or middle == start:
        yield end
        return
    yield from _halved(start, middle, times - 1)
    yield from _halved(middle, end, times - 1)
