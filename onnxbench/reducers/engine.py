"""The search over candidates of one graph: cutting, asking, caching, and keeping the best so far."""

from __future__ import annotations

import dataclasses
import itertools
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field

from onnx import TypeProto

from onnxbench.core import check
from onnxbench.core.graph import GraphView, Node
from onnxbench.core.model import Model
from onnxbench.core.subgraph import Piece, carve
from onnxbench.core.values import Value
from onnxbench.errors import AnswerIsNo
from onnxbench.reducers.oracle import Answer, Oracle
from onnxbench.reducers.search import minimise
from onnxbench.reducers.stretches import Stretches

#: Candidates that passed and are remembered.
_KEPT = 4


@dataclass(slots=True)
class Found:
    """A candidate that fails the same way: its nodes in the view, the piece, and the answer that it gave."""

    nodes: list[Node]
    piece: Piece
    answer: Answer


@dataclass(slots=True)
class Engine:
    """Candidates are subsets of the nodes of one view, in depth-first topological order.

    Attributes:
        model: holds the view.
        view: the graph that is searched.
        values: recorded values of its inputs and nodes.
        types: inferred types by name.
        oracle: answers.
        progress: called after each check.
        best: the smallest candidate seen to fail.
        by_products: other failures met on the way, counted.
        gone: the last candidates that passed, for comparison.
        jobs: candidates that are judged at a time.
        expose: names that the piece returns besides its sinks, where the original returns them.
        stretches: records what a candidate needs of `values`, where they are not all recorded.
    """

    model: Model
    view: GraphView
    values: Mapping[str, Value]
    types: Mapping[str, TypeProto]
    oracle: Oracle
    progress: Callable[[Engine], None] = lambda engine: None
    best: Found | None = None
    by_products: Counter[str] = field(default_factory=Counter)
    gone: deque[Piece] = field(default_factory=lambda: deque(maxlen=_KEPT))
    expose: bool = False
    jobs: int = 1
    stretches: Stretches | None = None
    _sought: dict[frozenset[int], Future[tuple[Piece, Answer] | None]] = field(default_factory=dict)
    _symbolic: bool | None = None
    _pool: ThreadPoolExecutor | None = None
    _cache: dict[frozenset[int], bool] = field(default_factory=dict)

    @property
    def chosen(self) -> frozenset[int]:
        """The indices of the nodes that are left."""
        return frozenset(node.index for node in self.best.nodes) if self.best is not None else frozenset()

    def start(self, nodes: Sequence[Node]) -> bool:
        """Whether these nodes, cut out, still fail; with inner graph outputs hidden first, then exposed as in the original."""
        for expose in (False, True):
            self.expose = expose
            self._cache.clear()
            if self.fails(list(nodes)):
                return True
        return False

    def confirm(self) -> bool:
        """Whether the best candidate fails when the judge is asked, where what was recorded has spoken for it."""
        best, hasty = self.best, self.oracle.hasty
        assert best is not None
        if hasty and best.answer.outcome is None:
            best.answer = self.oracle.look(best.piece)
        return best.answer.verdict == "same"

    def restart(self, found: Found | None) -> None:
        """Go back to an earlier candidate, or to the beginning, and ask the judge from now on."""
        self.best = found
        self.oracle.hasty = False
        self.oracle.journal.known.clear()
        self._cache.clear()
        self._sought.clear()

    def minimise(self, likely: Callable[[], Iterable[list[Node]]] = lambda: ()) -> None:
        """Shrink the best candidate until no single node can go; `likely` is asked for when halving leads nowhere.

        Without one, all nodes are taken to fail; `likely` has to make sure of it.
        """
        nodes = self.best.nodes if self.best is not None else self.view.order
        minimise(nodes, self.fails, self.expect, likely)

    def fails(self, nodes: list[Node]) -> bool:
        """Whether a candidate fails the same way; asked once for each set of nodes."""
        key = frozenset(node.index for node in nodes)
        if key not in self._cache:
            sought = self._sought.pop(key, None)
            self._cache[key] = self._take(nodes, sought.result() if sought is not None else self._judge(nodes))
            self.progress(self)
        return self._cache[key]

    def expect(self, questions: Iterable[list[Node]]) -> None:
        """Seek answers to the first of these questions side by side, if more than one may be asked at a time."""
        if self.jobs < 2:
            return
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self.jobs)
        for nodes in itertools.islice(questions, self.jobs):
            key = frozenset(node.index for node in nodes)
            if key not in self._cache and key not in self._sought:
                self._sought[key] = self._pool.submit(self._judge, nodes)

    def close(self) -> None:
        """Seek no more."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
            self._pool = None

    def _judge(self, nodes: list[Node]) -> tuple[Piece, Answer] | None:
        try:
            piece = self.cut(nodes)
        except AnswerIsNo:
            return None
        return piece, self.oracle.ask(piece, self.values)

    def _take(self, nodes: list[Node], judged: tuple[Piece, Answer] | None) -> bool:
        if judged is None:
            return False
        piece, answer = judged
        if answer.verdict == "other" and answer.signature is not None:
            self.by_products[answer.signature.sentence()] += 1
        if answer.verdict == "gone":
            self.gone.append(piece)
        if answer.verdict != "same":
            return False
        if self.best is None or len(nodes) <= len(self.best.nodes):
            self.best = Found(nodes, piece, answer)
        return True

    def cut(self, nodes: Sequence[Node]) -> Piece:
        """The candidate as a model; whoever looks at the model itself gets one whose inputs and outputs all have types."""
        piece = self._carved(nodes)
        decides = self.oracle.suspect.decides
        return dataclasses.replace(piece, model=check.declared(piece.model)) if decides else piece

    def _carved(self, nodes: Sequence[Node]) -> Piece:
        if self._symbolic is None:
            self._symbolic = any(_is_symbolic(value.type) for value in self.view.inputs.values())
        symbolic = self._symbolic
        if self.stretches is not None:
            self.stretches.need(nodes)
        piece = carve(self.model, self.view, nodes, self.values, types=self.types, static=not symbolic)
        if not self.expose:
            return piece
        made = {name for node in nodes for name in node.outputs}
        outputs = [value.name for value in piece.model.proto.graph.output]
        outputs += [name for name in self.view.outputs if name in made and name not in outputs]
        return carve(self.model, self.view, nodes, self.values, types=self.types, outputs=outputs, static=not symbolic)


def _is_symbolic(kind: TypeProto) -> bool:
    if kind.WhichOneof("value") != "tensor_type" or not kind.tensor_type.HasField("shape"):
        return True
    return any(not dim.HasField("dim_value") for dim in kind.tensor_type.shape.dim)
