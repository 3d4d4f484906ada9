"""The search for the fewest nodes: record, open, localise, narrow."""

from __future__ import annotations

import itertools
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from onnx import TypeProto

from onnxbench.core.compare import Difference
from onnxbench.core.counts import is_endless
from onnxbench.core.graph import GraphView, Node, draws
from onnxbench.core.model import Model
from onnxbench.core.subgraph import Piece, carve
from onnxbench.core.types import infer
from onnxbench.core.values import Value
from onnxbench.errors import AnswerIsNo
from onnxbench.recording import record
from onnxbench.reducers.along import cumulative
from onnxbench.reducers.course import Course
from onnxbench.reducers.engine import Engine
from onnxbench.reducers.flatten import flatten, openings
from onnxbench.reducers.journal import Journal
from onnxbench.reducers.localize import Localizer, Suspicion
from onnxbench.reducers.oracle import BudgetSpent, Oracle
from onnxbench.reducers.patience import impatient, patience, third
from onnxbench.reducers.prove import Proof
from onnxbench.reducers.request import Request
from onnxbench.reducers.stretches import Stretches, in_stretches
from onnxbench.reducers.unroll import rounds

#: `If` inside `If`, functions inside functions: levels that are opened.
_LEVELS = 16
#: Functions and branches that are opened one by one, at most, before one is opened and all are tried again.
_SINGLY = 32
#: Suspects that are asked about before the search goes its own way.
_HINTS = 3
#: Bytes of a network's values, and nodes, up to which all nodes are compared first, and the error along it is measured.
#: Above, halving is cheaper: its candidates are as much work as one run of the whole network.
_LIGHT = 32 << 20
_FEW = 4096


@dataclass(slots=True)
class Search:
    """One search.

    Attributes:
        request, proof: what is searched for.
        model: the request's model with its weights out of the way.
        workspace: folder for recorded values.
        course: told how far it is.
        journal: where verdicts are kept.
        oracle: judges candidates, once there is one.
        engine: holds the best candidate, once one was seen to fail.
        suspicions: nodes that are wrong by themselves, in the graph of `localized`.
        localized: the engine of the graph in which numbers were localised first.
    """

    request: Request
    proof: Proof
    model: Model
    workspace: Path
    course: Course
    journal: Journal = field(default_factory=Journal)
    oracle: Oracle | None = None
    engine: Engine | None = None
    suspicions: list[Suspicion] = field(default_factory=list)
    localized: Engine | None = None

    def run(self) -> None:
        """Search until no single node can go; with `localize_only` until it is known which nodes are wrong.

        Raises:
            AnswerIsNo: OB104 if the model, or what was chosen of it, does not fail when it is cut out.
            BudgetSpent: the search has taken what it was given.
        """
        view = GraphView(self.model.proto, self.model.proto.graph)
        engine = self._engine(self.model, view, dict(self.request.feeds))
        self.engine = engine
        self._record(engine)
        if self.request.within is not None:
            self._start_within(engine, self.request.within(view))
        elif not self._is_obvious(engine):
            self._start_whole(engine)
            self._open()
        self._limit(self.engine.oracle)
        self._narrow()
        while not self.request.localize_only and (self._enter() or self._open_one()):
            self._open()
            self._narrow()

    def _narrow(self) -> None:
        """Drop nodes of the graph at hand until no single one can go."""
        assert self.engine is not None
        engine = self.engine
        if engine.best is not None:
            self._set_randomness_aside(engine)
        if self.request.localize_only:
            self._hints(engine)
            return
        heavy = not _is_light(engine)
        if not heavy:
            any(engine.fails(nodes) for nodes in self._hints(engine))
        before = engine.best
        try:
            self._minimise(engine, heavy)
            if not engine.confirm():  # what was recorded is not what the judge says of a part
                engine.restart(before)
                self._minimise(engine, heavy)
        finally:
            engine.close()

    def _minimise(self, engine: Engine, heavy: bool) -> None:
        def likely() -> list[list[Node]]:
            if engine.best is None:
                self._start_whole(engine)
            return self._hints(engine) if heavy else []

        try:
            engine.minimise(likely)
        except BudgetSpent:
            if engine.best is None:
                self._start_whole(engine)
            raise

    def _enter(self) -> bool:
        """Go on inside the body of a Loop or Scan that is left, in a round of it that fails by itself."""
        engine = self.engine
        assert engine is not None
        assert engine.best is not None
        for node in engine.best.nodes:
            for inputs in rounds(engine, node, self.request.trusted):
                ((_, body),) = engine.view.bodies(node)
                values = {**engine.values, **inputs}
                try:
                    piece = carve(engine.model, body, body.nodes, values, types=engine.types)
                except AnswerIsNo:
                    continue
                if self._move(_apart(piece, engine.model), piece.feeds):
                    return True
        return False

    def _open_one(self) -> bool:
        """Open one thing of those that are left, where the failure does not survive that all are opened."""
        engine, signature = self.engine, self.proof.signature
        assert engine is not None
        assert engine.best is not None
        assert signature is not None
        piece = engine.best.piece
        if self.proof.hangs and is_endless(
            piece.model.proto
        ):  # each level would be waited for, and what is left hangs as well
            return False
        known = {**engine.values, **piece.feeds}
        either = signature.kind != "numbers"  # what is not run may be compiled, but its numbers nobody sees
        candidates = openings(_apart(piece, engine.model), known, self.request.limits, either=either)
        return any(self._move(opened, piece.feeds) for opened in itertools.islice(candidates, _SINGLY))

    def _move(self, model: Model, values: Mapping[str, Value]) -> bool:
        """Go on with the search in another model, if that fails too."""
        assert self.engine is not None
        view = GraphView(model.proto, model.proto.graph)
        opened = self._engine(model, view, dict(values))
        opened.by_products = self.engine.by_products
        if not opened.start(view.order):
            return False
        self.engine = opened
        self._record(opened)
        return True

    def _question(self) -> Oracle:
        request, proof = self.request, self.proof
        assert proof.signature is not None
        judge = next((runtime for runtime in request.trusted if str(runtime) == proof.judge), None)
        if judge is not None and proof.signature.kind != "slow":
            judge = judge.cheap()
        return Oracle(
            request.suspect.cheap() if proof.cheap else request.suspect,
            judge,
            proof.signature,
            proof.fault,
            proof.names,
            request.tolerance,
            impatient(request.limits) if proof.hangs else request.limits,
            proof.repeats,
            patience(request.limits, proof),
            slower_than=request.slower_than or 1.0,
            hasty=proof.repeats == 1,
            journal=self.journal,
        )

    def _limit(self, oracle: Oracle) -> None:
        """Let the budget count, now that there is something to hand back."""
        budget = self.request.budget
        oracle.deadline = time.monotonic() + budget.seconds if budget.seconds is not None else None
        oracle.most = budget.checks

    def _engine(self, model: Model, view: GraphView, values: dict[str, Value]) -> Engine:
        if self.oracle is None:
            self.oracle = self._question()
        limits = self.request.limits
        types: Mapping[str, TypeProto] = infer(model, timeout=third(limits), memory=limits.memory)
        return Engine(model, view, values, types, self.oracle, self._tell, jobs=self.request.jobs)

    def _record(self, engine: Engine) -> None:
        request, runtimes = self.request, [runtime.cheap() for runtime in self.request.trusted]
        if not (request.localize_only or request.within or self.proof.hangs) and in_stretches(
            engine.model, engine.view, engine.types, _LIGHT, _FEW
        ):
            values, limits = dict(engine.values), engine.oracle.limits
            engine.stretches = Stretches(
                runtimes, engine.model, engine.view, engine.types, values, self.workspace, limits
            )
            engine.values = values
            return
        recording = record(
            runtimes,
            engine.model,
            engine.view,
            engine.values,
            workspace=self.workspace,
            types=engine.types,
            limits=engine.oracle.limits,
            hangs=self.proof.hangs,
            progress=self.course.recorded,
        )
        engine.values = recording.values

    def _is_obvious(self, engine: Engine) -> bool:
        """Whether a cut of all nodes is the model again, so that halves are asked about before the whole runs once more."""
        return (
            not self.request.localize_only
            and not _is_light(engine)
            and not any(draws(node.proto) for node in engine.view.nodes)
            and flatten(engine.model, engine.values, self.request.limits) is None
        )

    def _start_whole(self, engine: Engine) -> None:
        engine.oracle.deadline = engine.oracle.most = None
        if not engine.start(engine.view.order):
            raise AnswerIsNo(
                "OB104",
                f"{self.request.model.label} fails as a file, but not when its nodes are cut out with all they need",
                hint="the failure may lie in what a cut leaves out, such as training information or unused initializers",
            )

    def _start_within(self, engine: Engine, nodes: Sequence[Node]) -> None:
        if not engine.start(nodes):
            raise AnswerIsNo(
                "OB104",
                f"the {len(nodes)} chosen nodes of {self.request.model.label} do not fail by themselves",
                hint="choose more, or leave --within out",
            )

    def _open(self) -> None:
        """Inline functions and hoist taken branches, as long as the failure survives it."""
        for _ in range(_LEVELS):
            engine = self.engine
            assert engine is not None
            flat = flatten(engine.model, engine.values, self.request.limits)
            if flat is None or not self._move(flat, engine.values):
                return

    def _set_randomness_aside(self, engine: Engine) -> None:
        """Feed what random operators drew, if the failure survives it: no two runtimes draw the same numbers."""
        assert self.proof.signature is not None
        assert engine.best is not None
        if self.proof.signature.kind != "numbers":
            return
        steady = [node for node in engine.best.nodes if not draws(node.proto)]
        if 0 < len(steady) < len(engine.best.nodes):
            exposed = engine.expose
            if not engine.start(steady):
                engine.expose = exposed

    def _hints(self, engine: Engine) -> list[list[Node]]:
        """What is likely: nodes that are wrong by themselves, or the one that the message names."""
        assert self.proof.signature is not None
        if self.proof.signature.kind != "numbers":
            return [[node] for node in engine.view.by_name.get(self.proof.node, [])]
        self.request.progress("comparing each node by itself")
        if engine.stretches is not None:
            engine.stretches.need_all()
        found = Localizer(
            engine.oracle.suspect,
            engine.model,
            engine.view,
            engine.values,
            engine.types,
            self.request.tolerance,
            self.request.limits,
            self.workspace,
        ).find()
        if self.localized is None:
            self.localized, self.suspicions = engine, found
        chosen = engine.chosen
        hints = [list(s.nodes) for s in found if all(node.index in chosen for node in s.nodes)]
        return hints[:_HINTS]

    def errors_along(self) -> dict[int, Difference | None]:
        """How far each node of the graph in which numbers were localised is off, with all before it on the suspect."""
        engine = self.localized
        if engine is None or not (self.request.localize_only or _is_light(engine)):
            return {}
        feeds = {name: engine.values[name] for name in engine.view.inputs if name in engine.values}
        return cumulative(engine, feeds, self.request.tolerance, self.request.limits, self.workspace)

    def _tell(self, engine: Engine) -> None:
        best = engine.best.piece.model if engine.best is not None else None
        self.course.judged("searching", best, engine.oracle.checks, engine.oracle.remembered)


def _apart(piece: Piece, original: Model) -> Model:
    """A piece as a model of its own."""
    return Model(piece.model.proto, original.folder, None, original.label)


def _is_light(engine: Engine) -> bool:
    if engine.stretches is not None:
        return False
    held = sum(value.nbytes for value in engine.values.values() if isinstance(value, np.ndarray))
    return held <= _LIGHT and len(engine.view.nodes) <= _FEW
