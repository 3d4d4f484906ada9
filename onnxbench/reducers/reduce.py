"""Reduce a failing model: prove, record, open, search, confirm, hand back."""

from __future__ import annotations

import dataclasses
import signal
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from onnx import TypeProto

from onnxbench.core.compare import Tolerance
from onnxbench.core.counts import count_nodes
from onnxbench.core.graph import RANDOM, GraphView, Node
from onnxbench.core.model import Model, save
from onnxbench.core.saving import refuse_target
from onnxbench.core.slimming import slim
from onnxbench.core.types import infer
from onnxbench.core.values import Value
from onnxbench.errors import AnswerIsNo, MachineError
from onnxbench.recording import record
from onnxbench.reducers import bundle
from onnxbench.reducers.engine import Engine, Found
from onnxbench.reducers.flatten import flatten
from onnxbench.reducers.oracle import Oracle, trust
from onnxbench.reducers.prove import Proof, prove
from onnxbench.reducers.repro import script
from onnxbench.reducers.result import Culprit, Reduction
from onnxbench.runtimes.base import Limits, Runtime

#: A candidate of a hanging model waits this share of the timeout, at least so many seconds; the confirmation waits it all.
_HANG_SHARE, _HANG_S = 1 / 12, 2.0
#: Characters of a runtime's message that are reported.
_LONGEST = 20_000
#: `If` inside `If`, functions inside functions: levels that are opened.
_LEVELS = 16


@dataclass(frozen=True, slots=True)
class Request:
    """What to reduce, and how.

    Attributes:
        model: the failing model.
        feeds: a value for each of its inputs.
        suspect: the runtime that fails.
        trusted: who tells right values, most trusted first; they should not optimize.
        tolerance: for numbers.
        limits: timeout and memory cap of one run.
        within: search only among these nodes, chosen from a view of `model`; None for all.
        bundle: folder to write the reproducer to, or None.
        output: file to write the reduced model to, or None; formats as `core.model.save` has them.
        force: replace what is there.
        allow_lossy: write `output` in a format that loses something.
        documents: texts to add to the bundle, made from the report.
        progress: told what begins, in a line.
        tick: told how far it is, in a line, after each candidate.
    """

    model: Model
    feeds: Mapping[str, Value]
    suspect: Runtime
    trusted: Sequence[Runtime]
    tolerance: Tolerance = field(default_factory=Tolerance)
    limits: Limits = field(default_factory=Limits)
    within: Callable[[GraphView], Sequence[Node]] | None = None
    bundle: Path | None = None
    output: str | None = None
    force: bool = False
    allow_lossy: bool = False
    documents: Mapping[str, Callable[[Reduction, Model], str]] = field(default_factory=dict)
    progress: Callable[[str], None] = lambda line: None
    tick: Callable[[str], None] = lambda line: None


def reduce(request: Request) -> Reduction:
    """Find the fewest nodes that still fail the same way.

    Returns:
        The report; `status` is "not-reproduced" if the original does not fail. After Ctrl-C the best reproducer so far.

    Raises:
        AnswerIsNo: OB104 if the nodes of `within` alone do not fail.
        UsageError: OB202 if an output is there already.
        MachineError: OB401 if the suspect is not there.
        ModelError: OB308 if nobody trusted runs the model.
        SafetyStop: OB501 if the result does not fail again in a fresh process.
    """
    if request.bundle is not None:
        bundle.refuse_taken(request.bundle, request.force)
    if request.output not in (None, "-"):
        refuse_target(Path(request.output).absolute(), request.force)
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="onnxbench-") as workspace:
        run = _Run(request, Path(workspace), slim(request.model))
        report = run.start()
        if report.status != "not-reproduced":
            run.search(report)
            run.hand_back(report)
    report.seconds = round(time.monotonic() - started, 3)
    return report


@dataclass(slots=True)
class _Run:
    request: Request
    workspace: Path
    model: Model
    proof: Proof = field(default_factory=Proof)
    engine: Engine | None = None

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
        except KeyboardInterrupt as stop:
            report.interrupted = stop.args[0] if stop.args else int(signal.SIGINT)
        if self.engine is None or self.engine.best is None:
            raise KeyboardInterrupt(report.interrupted)
        self._describe(report, self.engine.best)

    def _search(self) -> None:
        request = self.request
        view = GraphView(self.model.proto, self.model.proto.graph)
        nodes = list(request.within(view)) if request.within is not None else view.order
        hangs = self.proof.signature is not None and self.proof.signature.kind == "timeout"
        engine = self._engine(self.model, view, dict(request.feeds), hangs)
        if request.within is None and engine.start(nodes):
            self.engine = engine  # from here on there is something to hand back
        self._record(engine, hangs)
        if request.within is not None:
            self._start_within(engine, nodes)
        elif self.engine is None:
            raise AnswerIsNo(
                "OB104",
                f"{request.model.label} fails as a file, but not when its nodes are cut out with all they need",
                hint="the failure may lie in what a cut leaves out, such as training information or unused initializers",
            )
        if request.within is None:
            self._open(hangs)
        assert self.engine is not None
        self._set_randomness_aside(self.engine)
        self.engine.minimise()

    def _engine(self, model: Model, view: GraphView, values: dict[str, Value], hangs: bool) -> Engine:
        request, proof = self.request, self.proof
        assert proof.signature is not None
        limits = _impatient(request.limits) if hangs else request.limits
        oracle = Oracle(
            request.suspect,
            request.trusted,
            proof.signature,
            proof.fault,
            request.tolerance,
            limits,
            proof.repeats,
        )
        types: Mapping[str, TypeProto] = infer(model, timeout=_third(request.limits), memory=request.limits.memory)
        return Engine(model, view, values, types, oracle, self._tell)

    def _record(self, engine: Engine, hangs: bool) -> None:
        recording = record(
            self.request.trusted,
            engine.model,
            engine.view,
            engine.values,
            workspace=self.workspace,
            types=engine.types,
            limits=engine.oracle.limits,
            hangs=hangs,
            progress=lambda done, total: self.request.tick(f"recorded {done} of {total} nodes"),
        )
        engine.values = recording.values

    def _start_within(self, engine: Engine, nodes: Sequence[Node]) -> None:
        if not engine.start(nodes):
            raise AnswerIsNo(
                "OB104",
                f"the {len(nodes)} chosen nodes of {self.request.model.label} do not fail by themselves",
                hint="choose more, or leave --within out",
            )
        self.engine = engine

    def _open(self, hangs: bool) -> None:
        """Inline functions and hoist taken branches, as long as the failure survives it."""
        for _ in range(_LEVELS):
            engine = self.engine
            assert engine is not None
            flat = flatten(engine.model, engine.values, self.request.limits)
            if flat is None:
                return
            view = GraphView(flat.proto, flat.proto.graph)
            opened = self._engine(flat, view, dict(engine.values), hangs)
            opened.oracle.checks, opened.oracle.runs = engine.oracle.checks, engine.oracle.runs
            opened.by_products = engine.by_products
            survives = opened.start(view.order)
            engine.oracle.checks, engine.oracle.runs = opened.oracle.checks, opened.oracle.runs
            if not survives:
                return
            self.engine = opened
            self._record(opened, hangs)

    def _set_randomness_aside(self, engine: Engine) -> None:
        """Feed what random operators drew, if the failure survives it: no two runtimes draw the same numbers."""
        assert self.proof.signature is not None
        assert engine.best is not None
        if self.proof.signature.kind != "numbers":
            return
        steady = [node for node in engine.best.nodes if not is_random(node)]
        if 0 < len(steady) < len(engine.best.nodes):
            exposed = engine.expose
            if not engine.start(steady):
                engine.expose = exposed

    def _tell(self, engine: Engine) -> None:
        left = len(engine.best.nodes) if engine.best is not None else len(engine.view.nodes)
        self.request.tick(f"{left} nodes left after {engine.oracle.checks} checks")

    def _describe(self, report: Reduction, best: Found) -> None:
        assert self.engine is not None
        report.nodes_after, report.all_nodes_after = count_nodes(best.piece.model.proto)
        report.checks = self.engine.oracle.checks
        report.culprits = [
            Culprit(node.proto.name, node.proto.op_type, next(iter(node.outputs), "")) for node in best.nodes
        ]
        report.differences = [difference.to_dict() for difference in best.answer.differences]
        if best.answer.outcome is not None and not best.answer.outcome.ok:
            report.message = best.answer.outcome.message[:_LONGEST]
        report.by_products = dict(self.engine.by_products)
        drawn = sorted({node.proto.op_type for node in best.nodes if is_random(node)})
        if drawn and self.proof.signature is not None and self.proof.signature.kind == "numbers":
            report.notes.append(f"{', '.join(drawn)} draws random numbers, which two runtimes draw differently")
        if self.proof.failed < self.proof.runs:
            report.notes.append(f"flaky: the original failed {self.proof.failed} of {self.proof.runs} runs")

    def hand_back(self, report: Reduction) -> None:
        """Confirm the best candidate in a fresh process, and write what was asked for."""
        request, engine = self.request, self.engine
        assert engine is not None
        assert engine.best is not None
        assert self.proof.signature is not None
        piece = engine.best.piece
        if request.bundle is not None:
            text = script(
                request.suspect,
                piece.model.proto,
                self.proof.signature,
                request.tolerance,
                request.limits,
                tries=self.proof.repeats,
            )
            contents = bundle.Contents(piece.model, piece.feeds, self._expected(engine.best), text)
            with bundle.Draft(request.bundle) as draft:
                draft.write(contents)
                request.progress("confirming in a fresh process")
                tries = 1 if self.proof.failed == self.proof.runs else 3
                timeout = ((request.limits.timeout or 600.0) + 10) * self.proof.repeats
                if not draft.confirm(request.suspect.interpreter.executable, timeout, tries):
                    raise bundle.unconfirmed(request.model.label)
                report.confirmed = True
                self._publish(draft, report, piece.model)
        if request.output is not None:
            save(piece.model, request.output, force=request.force, allow_lossy=request.allow_lossy)
            report.output = request.output

    def _publish(self, draft: bundle.Draft, report: Reduction, model: Model) -> None:
        """Put the bundle where it was asked for, or beside it if that was taken while the search went on."""
        assert self.request.bundle is not None
        for place in bundle.numbered(self.request.bundle):
            report.bundle = str(place)
            for name, document in self.request.documents.items():
                draft.add(name, document(report, model))
            if self.request.force:
                draft.replace(place)
                return
            if draft.publish(place):
                return

    def _expected(self, best: Found) -> Mapping[str, Value]:
        if best.answer.expected:
            return best.answer.expected
        limits = dataclasses.replace(self.request.limits, timeout=_third(self.request.limits))
        outcome = trust(self.request.trusted, best.piece.model, best.piece.feeds, limits)
        return outcome.outputs if outcome is not None else {}


def is_random(node: Node) -> bool:
    """Whether it draws its results; Dropout does in training, which its third input asks for."""
    drawn = node.proto.domain in ("", "ai.onnx") and node.proto.op_type in RANDOM
    return drawn and (node.proto.op_type != "Dropout" or len(node.proto.input) > 2)


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
