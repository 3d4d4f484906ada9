"""Find a way around a failure for the whole model: settings of the suspect, and rewritten models; each is verified."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from onnx import TypeProto

from onnxbench.core import check
from onnxbench.core.compare import differ_all
from onnxbench.core.model import Model
from onnxbench.core.subgraph import Piece
from onnxbench.core.types import infer
from onnxbench.core.values import Value
from onnxbench.reducers.engine import Found
from onnxbench.reducers.normalise import normalise
from onnxbench.reducers.oracle import Oracle
from onnxbench.reducers.prove import Proof
from onnxbench.reducers.request import Request
from onnxbench.reducers.result import Reduction, Workaround
from onnxbench.reducers.signature import names_in
from onnxbench.reducers.workarounds import Fault, Way, rewrites, rewritten, ways
from onnxbench.runtimes.base import Runtime

#: Settings that are tried on the whole model, each of which costs a run of it.
_MOST = 4
#: Failures that take long to see, as a command may; other models are tried only if somebody wants one.
_DEAR = frozenset({"timeout", "memory", "slow"})


@dataclass(slots=True)
class WayAround:
    """Tries ways around the failure of one request.

    Attributes:
        request, proof: what failed, and how.
        model: the whole model, its weights out of the way.
        report: what the reduction found.
        found: the nodes at fault, as the search left them.
        oracle: answers.
        wanted: right outputs of the whole model, None if nobody can tell.
    """

    request: Request
    proof: Proof
    model: Model
    report: Reduction
    found: Found
    oracle: Oracle
    wanted: Mapping[str, Value] | None = None

    def find(self) -> Model | None:
        """Note in the report what passes; the first rewritten model that passes, if one was asked for."""
        self.wanted = self._right_outputs()
        for runtime in self._settings():
            if self._passes(runtime, self.model):
                self.report.workarounds.append(Workaround("setting", str(runtime), self.wanted is not None))
                break
        if self.request.workaround is not None:
            model = self._first(self._models())
            if model is None:
                self.report.notes.append("no rewritten model was found that does not fail")
            return model
        if not self.report.workarounds and not self._is_dear():
            self._first(self._proposed(entry for entry in ways() if entry.by_command))
        return None

    def _is_dear(self) -> bool:
        """Whether each model that is tried may cost more than a hint is worth."""
        return self.request.suspect.decides or self.report.signature["kind"] in _DEAR

    def _first(self, models: Iterable[tuple[str, str, Model]]) -> Model | None:
        """The first that passes, noted in the report."""
        for name, sentence, model in models:
            self.request.progress(f"trying a way around: {name}")
            if self._is_valid(model) and self._passes(self.request.suspect, model):
                self.report.workarounds.append(Workaround("model", f"{name}: {sentence}", self.wanted is not None))
                return model
        return None

    def _is_valid(self, model: Model) -> bool:
        """Whether the checker has no complaint that it did not have of the original."""
        limits = self.request.limits
        fault = check.fault(check.declared(model), timeout=limits.timeout, memory=limits.memory)
        return fault is None or normalise(fault, names_in(model.proto)) == self.proof.fault

    def _settings(self) -> Iterator[Runtime]:
        """One optimizer off before a lower level: it costs less speed."""
        suspect = self.request.suspect
        cures = [suspect.without([name]) for name in self.report.cured_by_disabling]
        yield from [*cures[:_MOST], *list(suspect.levels())[-2::-1][:_MOST]]

    def _models(self) -> Iterator[tuple[str, str, Model]]:
        yield from self._proposed(entry for entry in ways() if entry.first)
        made = {name for culprit in self.report.culprits for name in culprit.outputs}
        types: Mapping[str, TypeProto] = infer(self.model, memory=self.request.limits.memory)
        for entry in rewrites():
            proto = rewritten(self.model.proto, entry, made, types)
            if proto is not None:
                yield entry.name, entry.sentence, dataclasses.replace(self.model, proto=proto)
        yield from self._proposed(entry for entry in ways() if not entry.first)

    def _proposed(self, entries: Iterable[Way]) -> Iterator[tuple[str, str, Model]]:
        piece, right = self.found.piece, self.found.answer.expected

        def passes(model: Model) -> bool:
            return self.oracle.passes(Piece(model, dict(piece.feeds), (), ()), right)

        fault = Fault(self.model, piece.model, passes, self.request.suspect, self.request.limits)
        for entry in entries:
            for sentence, model in entry.propose(fault):
                yield entry.name, sentence, model

    def _right_outputs(self) -> Mapping[str, Value] | None:
        return self.proof.expected or self._trusted_outputs(self.model)

    def _trusted_outputs(self, model: Model) -> Mapping[str, Value] | None:
        for runtime in self.request.trusted:
            outcome = runtime.run(model, self.request.feeds, limits=self.request.limits)
            if outcome.ok:
                return outcome.outputs
        return None

    def _passes(self, runtime: Runtime, model: Model) -> bool:
        """Whether the whole model runs and, as far as anybody can tell, is right; as often as a flaky failure needs."""
        for _ in range(self.proof.repeats):
            outcome = runtime.run(model, self.request.feeds, limits=self.request.limits)
            if not outcome.ok:
                return False
            got = self._trusted_outputs(model) if runtime.decides else outcome.outputs  # a check gives no numbers
            if self.wanted is not None and (got is None or differ_all(self.wanted, got, self.request.tolerance)):
                return False
        return True
