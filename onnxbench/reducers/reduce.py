"""Reduce a failing model: prove, record, open, search, confirm, hand back."""

from __future__ import annotations

import dataclasses
import signal
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from onnx import TypeProto

from onnxbench.core.counts import count_nodes
from onnxbench.core.graph import GraphView, Node, draws
from onnxbench.core.model import Model
from onnxbench.core.saving import refuse_losses, refuse_target
from onnxbench.core.slimming import slim
from onnxbench.core.types import infer
from onnxbench.core.values import Value
from onnxbench.errors import AnswerIsNo, MachineError
from onnxbench.recording import record
from onnxbench.reducers import bundle
from onnxbench.reducers.engine import Engine, Found
from onnxbench.reducers.flatten import flatten
from onnxbench.reducers.handing import hand_back
from onnxbench.reducers.oracle import Oracle
from onnxbench.reducers.prove import Proof, prove
from onnxbench.reducers.reproducer import stored_bytes
from onnxbench.reducers.request import Request
from onnxbench.reducers.result import Culprit, Reduction
from onnxbench.reducers.shrinking import Shrunk, choose_passes, shrink
from onnxbench.runtimes.base import Limits, Runtime

#: A candidate of a hanging model waits this share of the timeout, at least so many seconds; the confirmation waits it all.
_HANG_SHARE, _HANG_S = 1 / 12, 2.0
#: Characters of a runtime's message that are reported.
_LONGEST = 20_000
#: `If` inside `If`, functions inside functions: levels that are opened.
_LEVELS = 16


def reduce(request: Request) -> Reduction:
    """Find the fewest nodes that still fail the same way.

    Returns:
        The report; `status` is "not-reproduced" if the original does not fail. After Ctrl-C the best reproducer so far.

    Raises:
        AnswerIsNo: OB104 if the nodes of `within` alone do not fail.
        UsageError: OB202 if an output is there already, OB203 if its format would lose something of the original.
        MachineError: OB401 if the suspect is not there.
        ModelError: OB308 if nobody trusted runs the model.
        SafetyStop: OB501 if the result does not fail again in a fresh process.
    """
    if request.bundle is not None:
        bundle.refuse_taken(request.bundle, request.force)
    if request.output is not None and request.output != "-":
        refuse_target(Path(request.output).absolute(), request.force)
    choose_passes(request.passes, ())  # before the search: a name may be none
    started = time.monotonic()
    model = slim(request.model)
    if request.output is not None and request.output != "-" and not request.allow_lossy:
        refuse_losses(model.proto, Path(request.output))  # now, not when the search is over
    with tempfile.TemporaryDirectory(prefix="onnxbench-") as workspace:
        run = _Run(request, Path(workspace), model)
        report = run.start()
        if report.status != "not-reproduced":
            run.search(report)
            report.seconds = round(time.monotonic() - started, 3)
            run.hand_back(report)
    return report


@dataclass(slots=True)
class _Run:
    request: Request
    workspace: Path
    model: Model
    proof: Proof = field(default_factory=Proof)
    oracle: Oracle | None = None
    engine: Engine | None = None
    shrunk: Shrunk | None = None
    began: float = field(default_factory=time.monotonic)

    def start(self) -> Reduction:
        """Prove the failure."""
        request = self.request
        request.suspect.version()  # a runtime that is not there is no failure of the model
        request.progress(f"running {request.model.label} on {request.suspect}")
        self.proof = prove(
            request.suspect, request.trusted, self.model, request.feeds, request.tolerance, request.limits
        )
        top, everything = count_nodes(request.model.proto)
        report = Reduction(
            request.model.label,
            str(request.suspect),
            [str(runtime) for runtime in request.trusted],
            "not-reproduced",
            failed=self.proof.failed,
            runs=self.proof.runs,
            nodes_before=top,
            all_nodes_before=everything,
            bytes_before=stored_bytes(request.model),
        )
        report.judge = self.proof.judge
        report.versions = versions([request.suspect, *request.trusted])
        signature = self.proof.signature
        if signature is not None:
            report.status = "best"
            report.signature = {**signature.to_dict(), "sentence": signature.sentence()}
            request.progress(f"it fails, {self.proof.failed} of {self.proof.runs} runs: {signature.sentence()}")
        return report

    def search(self, report: Reduction) -> None:
        """Shrink as far as it goes, or until Ctrl-C; fills the report."""
        try:
            self._search()
            report.status = "minimal"
            self._shrink()
        except KeyboardInterrupt as stop:
            report.interrupted = stop.args[0] if stop.args else int(signal.SIGINT)
        if self.engine is None or self.engine.best is None:
            raise KeyboardInterrupt(report.interrupted)
        self._describe(report, self.shrunk.found if self.shrunk is not None else self.engine.best)

    def _search(self) -> None:
        view = GraphView(self.model.proto, self.model.proto.graph)
        engine = self._engine(self.model, view, dict(self.request.feeds))
        if self.request.within is None:
            self._start_whole(engine)
            self._record(engine)
            self._open()
        else:
            self._record(engine)  # first: what enters the chosen nodes has to be known
            self._start_within(engine, self.request.within(view))
        assert self.engine is not None
        self._set_randomness_aside(self.engine)
        self.engine.minimise()

    def _shrink(self) -> None:
        """Make what is left smaller in every other way."""
        request = self.request
        assert self.engine is not None
        assert self.engine.best is not None
        self.shrunk = Shrunk(self.engine.best)
        passes = choose_passes(request.passes, (), anonymize=request.anonymize)
        spent = time.monotonic() - self.began
        shrink(self.engine.best, self.engine.oracle, passes, request.tick, spent, self.shrunk)

    def _question(self) -> Oracle:
        request, proof = self.request, self.proof
        assert proof.signature is not None
        return Oracle(
            request.suspect,
            next((runtime for runtime in request.trusted if str(runtime) == proof.judge), None),
            proof.signature,
            proof.fault,
            proof.names,
            request.tolerance,
            _impatient(request.limits) if proof.hangs else request.limits,
            proof.repeats,
        )

    def _engine(self, model: Model, view: GraphView, values: dict[str, Value]) -> Engine:
        if self.oracle is None:
            self.oracle = self._question()
        limits = self.request.limits
        types: Mapping[str, TypeProto] = infer(model, timeout=_third(limits), memory=limits.memory)
        return Engine(model, view, values, types, self.oracle, self._tell)

    def _record(self, engine: Engine) -> None:
        recording = record(
            self.request.trusted,
            engine.model,
            engine.view,
            engine.values,
            workspace=self.workspace,
            types=engine.types,
            limits=engine.oracle.limits,
            hangs=self.proof.hangs,
            progress=lambda done, total: self.request.tick(f"recorded {done} of {total} nodes"),
        )
        engine.values = recording.values

    def _start_whole(self, engine: Engine) -> None:
        if not engine.start(engine.view.order):
            raise AnswerIsNo(
                "OB104",
                f"{self.request.model.label} fails as a file, but not when its nodes are cut out with all they need",
                hint="the failure may lie in what a cut leaves out, such as training information or unused initializers",
            )
        self.engine = engine  # from here on there is something to hand back

    def _start_within(self, engine: Engine, nodes: Sequence[Node]) -> None:
        if not engine.start(nodes):
            raise AnswerIsNo(
                "OB104",
                f"the {len(nodes)} chosen nodes of {self.request.model.label} do not fail by themselves",
                hint="choose more, or leave --within out",
            )
        self.engine = engine

    def _open(self) -> None:
        """Inline functions and hoist taken branches, as long as the failure survives it."""
        for _ in range(_LEVELS):
            engine = self.engine
            assert engine is not None
            flat = flatten(engine.model, engine.values, self.request.limits)
            if flat is None:
                return
            view = GraphView(flat.proto, flat.proto.graph)
            opened = self._engine(flat, view, dict(engine.values))
            opened.by_products = engine.by_products
            if not opened.start(view.order):
                return
            self.engine = opened
            self._record(opened)

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

    def hand_back(self, report: Reduction) -> None:
        """Write what was asked for."""
        assert self.engine is not None
        assert self.engine.best is not None
        best = self.shrunk.found if self.shrunk is not None else self.engine.best
        hand_back(self.request, self.proof, best, report)

    def _tell(self, engine: Engine) -> None:
        left = len(engine.best.nodes) if engine.best is not None else len(engine.view.nodes)
        self.request.tick(f"{left} nodes left after {engine.oracle.checks} checks")

    def _describe(self, report: Reduction, best: Found) -> None:
        assert self.engine is not None
        report.nodes_after, report.all_nodes_after = count_nodes(best.piece.model.proto)
        report.bytes_after = stored_bytes(best.piece.model)
        report.checks = self.engine.oracle.checks
        report.culprits = [
            Culprit(node.proto.name, node.proto.op_type, next(iter(node.outputs), "")) for node in best.nodes
        ]
        if self.shrunk is not None:
            report.passes, report.notes = self.shrunk.records, list(self.shrunk.notes)
        report.differences = [difference.to_dict() for difference in best.answer.differences]
        if best.answer.outcome is not None and not best.answer.outcome.ok:
            report.message = best.answer.outcome.message[:_LONGEST]
        report.by_products = dict(self.engine.by_products)
        drawn = sorted({node.proto.op_type for node in best.nodes if draws(node.proto)})
        if drawn and self.proof.signature is not None and self.proof.signature.kind == "numbers":
            report.notes.append(f"{', '.join(drawn)} draws random numbers, which two runtimes draw differently")
        if self.proof.failed < self.proof.runs:
            report.notes.append(f"flaky: the original failed {self.proof.failed} of {self.proof.runs} runs")


def versions(runtimes: Sequence[Runtime]) -> dict[str, str]:
    """Releases by runtime as typed; those that cannot be told are left out."""
    found: dict[str, str] = {}
    for runtime in runtimes:
        try:
            found[str(runtime)] = runtime.version()
        except MachineError:
            continue
    return found


def _impatient(limits: Limits) -> Limits:
    if limits.timeout is None:
        return dataclasses.replace(limits, timeout=_HANG_S)
    return dataclasses.replace(limits, timeout=min(limits.timeout, max(_HANG_S, limits.timeout * _HANG_SHARE)))


def _third(limits: Limits) -> float | None:
    return limits.timeout / 3 if limits.timeout is not None else None
