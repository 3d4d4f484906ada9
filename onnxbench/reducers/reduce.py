"""Reduce a failing model: prove, search, explain, confirm, hand back."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from onnxbench import interrupts
from onnxbench.core.counts import count_inlined, count_nodes, is_endless, stored_bytes
from onnxbench.core.graph import draws
from onnxbench.core.model import Model, save
from onnxbench.core.saving import refuse_losses, refuse_target
from onnxbench.core.scratch import Scratch
from onnxbench.core.slimming import slim
from onnxbench.errors import BenchError, MachineError
from onnxbench.reducers import bundle
from onnxbench.reducers.along import series
from onnxbench.reducers.around import WayAround
from onnxbench.reducers.course import Course
from onnxbench.reducers.engine import Engine, Found
from onnxbench.reducers.explain import explain, how_slow, known_failures
from onnxbench.reducers.finding import drawn
from onnxbench.reducers.handing import Extras, hand_back
from onnxbench.reducers.journal import Journal, key_of
from onnxbench.reducers.oracle import BudgetSpent
from onnxbench.reducers.passing import Near, find_passing
from onnxbench.reducers.prove import Proof, prove
from onnxbench.reducers.reproducer import Reproducer
from onnxbench.reducers.request import Request
from onnxbench.reducers.result import Culprit, Reduction, Suspect
from onnxbench.reducers.searching import Search
from onnxbench.reducers.shrinking import Shrunk, choose_passes, shrink
from onnxbench.runtimes.base import Runtime

#: Characters of a runtime's message that are reported.
_LONGEST = 20_000


def reduce(request: Request) -> Reduction:
    """Find the fewest nodes that still fail the same way.

    Returns:
        The report; `status` is "not-reproduced" if the original does not fail. After Ctrl-C, or when the budget is spent, the
        best reproducer so far.

    Raises:
        AnswerIsNo: OB104 if the nodes of `within` alone do not fail.
        UsageError: OB202 if an output is there already, OB203 if its format would lose something of the original, OB207 if
            there is no journal to go on with.
        MachineError: OB401 if the suspect is not there, OB405 if a check cannot start.
        ModelError: OB308 if nobody trusted runs the model.
        SafetyStop: OB501 if the result does not fail again in a fresh process.
    """
    _refuse_outputs(request)
    started = time.monotonic()
    model = slim(request.model)
    with Scratch.temporary() as workspace:
        run = _Run(request, workspace.path, model)
        report = run.start()
        if report.status != "not-reproduced" and not request.only_prove:
            try:
                run.search(report)
                report.seconds = round(time.monotonic() - started, 3)
                if report.status != "localized":
                    with interrupts.finishing(request.progress) as heard:
                        run.hand_back(report)
                    report.interrupted = report.interrupted or heard.number
            except MachineError:  # a disk that was full has room again, and --resume goes on
                run.journal.discard_empty()
                raise
            except BenchError:  # nothing to go on with; after Ctrl-C there is
                run.journal.discard()
                raise
    return report


def _refuse_outputs(request: Request) -> None:
    """Say now what cannot be written, not when the search is over."""
    if request.bundle is not None:
        bundle.refuse_taken(request.bundle, request.force)
    for target in (request.output, request.workaround):
        if target is not None and target != "-":
            refuse_target(Path(target).absolute(), request.force)
            if not request.allow_lossy:
                refuse_losses(request.model.proto, Path(target))
    choose_passes(request.passes)


@dataclass(slots=True)
class _Run:
    request: Request
    workspace: Path
    model: Model
    proof: Proof = field(default_factory=Proof)
    journal: Journal = field(default_factory=Journal)
    engine: Engine | None = None
    shrunk: Shrunk | None = None
    began: float = field(default_factory=time.monotonic)
    around: Model | None = None
    near: Near | None = None
    asked: int = 0

    def start(self) -> Reduction:
        """Prove the failure."""
        request = self.request
        request.suspect.version()  # a runtime that is not there is no failure of the model
        request.progress(f"running {request.model.label} on {request.suspect}")
        self.proof = prove(request, self.model)
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
            bytes_before=stored_bytes(self.model),
        )
        report.judge = self.proof.judge
        report.versions = versions([request.suspect, *request.trusted])
        signature = self.proof.signature
        if signature is not None:
            report.status = "proven" if request.only_prove else "best"
            report.signature = {**signature.to_dict(), "sentence": signature.sentence()}
            request.progress(f"it fails, {self.proof.failed} of {self.proof.runs} runs: {signature.sentence()}")
        return report

    def search(self, report: Reduction) -> None:
        """Shrink as far as it goes, or until Ctrl-C or the end of the budget; fills the report."""
        self.journal = Journal(self.request.journal)
        self.journal.open(self._head(report), self.request.resume)
        course = Course(report.all_nodes_before, report.bytes_before, self.request.tick, self.began, report.curve)
        search = Search(self.request, self.proof, self.model, self.workspace, course, self.journal)
        try:
            search.run()
            report.status = "localized" if self.request.localize_only else "minimal"
            if self.request.localize_only and report.signature["kind"] != "numbers":
                report.notes.append(
                    "only wrong numbers are told node by node; a search finds the nodes of this failure"
                )
            if report.status == "minimal":
                self._shrink(search, course)
        except KeyboardInterrupt as stop:
            report.interrupted = interrupts.number_of(stop)
        except BudgetSpent:
            report.notes.append("the search has taken what it was given, and was stopped")
        finally:
            self.journal.close()
            self.engine = search.engine
        if self.engine is None or self.engine.best is None:
            self.journal.discard_empty()
            raise KeyboardInterrupt(report.interrupted)
        with interrupts.finishing(self.request.progress) as heard:
            self._look_again(self.engine, self._best(self.engine))
            self._describe(report, search)
        report.interrupted = report.interrupted or heard.number
        if not report.interrupted:
            self._go_along(report, search)
        if self.request.explain and not report.interrupted and report.status == "minimal":
            self._explain(report, self.engine)

    def _head(self, report: Reduction) -> dict[str, object]:
        """What a journal's verdicts depend on."""
        limits = self.request.limits
        return {
            "model": key_of(self.model, self.request.feeds),
            "suspect": [report.suspect, report.versions.get(report.suspect, "")],
            "judge": [report.judge, report.versions.get(report.judge, "")],
            "signature": report.signature,
            "tolerance": [self.request.tolerance.rtol, self.request.tolerance.atol],
            "limits": [limits.timeout, limits.memory],
        }

    def _look_again(self, engine: Engine, best: Found) -> None:
        """What is remembered of a candidate is that it fails; its report needs to know how."""
        if best.answer.outcome is None:
            best.answer = engine.oracle.look(best.piece)

    def _best(self, engine: Engine) -> Found:
        assert engine.best is not None
        return self.shrunk.found if self.shrunk is not None else engine.best

    def _shrink(self, search: Search, course: Course) -> None:
        """Make what is left smaller in every other way."""
        engine, request = search.engine, self.request
        assert engine is not None
        found = self._best(engine)
        self._look_again(engine, found)
        self.shrunk = Shrunk(found)
        self.asked = engine.oracle.checks
        passes = choose_passes(request.passes, anonymize=request.anonymize, loadable=bool(request.releases))
        shrink(found, engine.oracle, passes, course, time.monotonic() - self.began, self.shrunk)

    def _go_along(self, report: Reduction, search: Search) -> None:
        try:
            if report.suspects:
                _add_along(report, search)
        except KeyboardInterrupt as stop:
            report.interrupted = interrupts.number_of(stop)

    def _explain(self, report: Reduction, engine: Engine) -> None:
        try:
            report.slowness = how_slow(report, self.request, self.model, self._best(engine))
            explain(report, self.request, self._best(engine), engine.oracle)
            assert engine.best is not None
            report.known = known_failures(report, self.request.suspect, engine.best)
            self.near = self._nearest_passing(engine)
            self.around = WayAround(self.request, self.proof, self.model, report, engine.best, engine.oracle).find()
        except KeyboardInterrupt as stop:  # the reproducer is there, and goes back
            report.interrupted = interrupts.number_of(stop)

    def _nearest_passing(self, engine: Engine) -> Near | None:
        if self.request.bundle is None or self.request.anonymize or self.shrunk is None:
            return None
        self.request.progress("looking for the nearest model that passes")
        gone = [Reproducer(piece.model, dict(piece.feeds), ()) for piece in engine.gone]
        passes = choose_passes(self.request.passes)
        return find_passing(self.shrunk.found, [*gone, *self.shrunk.gone], engine.oracle, passes)

    def hand_back(self, report: Reduction) -> None:
        """Write what was asked for."""
        assert self.engine is not None
        shown = self.request.bundle is not None and not self.request.anonymize
        outline = drawn(self.request.model, report.culprits, self.engine) if shown else None
        extras = Extras(self.journal, self.near, outline)
        hand_back(self.request, self.proof, self._best(self.engine), report, extras)
        if self.around is not None and self.request.workaround is not None:
            _save_workaround(self.request, self.around, report)

    def _describe(self, report: Reduction, search: Search) -> None:
        assert search.engine is not None
        best, oracle = self._best(search.engine), search.engine.oracle
        report.nodes_after, report.all_nodes_after = count_nodes(best.piece.model.proto)
        report.bytes_after = stored_bytes(best.piece.model)
        search.course.ended(best.piece.model, oracle.checks)
        report.passes = self.shrunk.records if self.shrunk is not None else []
        report.notes += self.shrunk.notes if self.shrunk is not None else []
        report.checks = self.asked or oracle.checks
        report.shrink_checks = oracle.checks - report.checks
        report.suspects = [Suspect.of(suspicion.nodes, suspicion.isolated) for suspicion in search.suspicions]
        report.culprits = [Culprit.of(node) for node in best.nodes]
        report.differences = [difference.to_dict() for difference in best.answer.differences]
        if best.answer.outcome is not None and not best.answer.outcome.ok:
            report.message = best.answer.outcome.message[:_LONGEST]
        report.by_products = dict(search.engine.by_products)
        if is_endless(best.piece.model.proto):
            nodes = f"{count_inlined(best.piece.model.proto):,} nodes"
            report.notes.append(f"its functions call each other: written out they are {nodes}, and were not all opened")
        random = sorted({node.proto.op_type for node in best.nodes if draws(node.proto)})
        if random and self.proof.signature is not None and self.proof.signature.kind == "numbers":
            report.notes.append(f"{', '.join(random)} draws random numbers, which two runtimes draw differently")
        if self.proof.failed < self.proof.runs:
            report.notes.append(f"flaky: the original failed {self.proof.failed} of {self.proof.runs} runs")


def _add_along(report: Reduction, search: Search) -> None:
    along = search.errors_along()
    if search.localized is not None:
        report.along = series(search.localized.view, search.suspicions, along)
    for suspect, suspicion in zip(report.suspects, search.suspicions, strict=True):
        difference = along.get(suspicion.nodes[-1].index)
        suspect.cumulative = difference.to_dict() if difference is not None else None


def _save_workaround(request: Request, model: Model, report: Reduction) -> None:
    assert request.workaround is not None
    save(model, request.workaround, force=request.force, allow_lossy=request.allow_lossy)
    report.workaround = request.workaround


def versions(runtimes: Sequence[Runtime]) -> dict[str, str]:
    """Releases by runtime as typed; those that cannot be told are left out."""
    found: dict[str, str] = {}
    for runtime in runtimes:
        try:
            found[str(runtime)] = runtime.version()
        except MachineError:
            continue
    return found
