"""Find a way around a failure for the whole model: settings of the suspect, and rewritten models; each is verified."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from onnx import TypeProto

from onnxbench.core import check
from onnxbench.core.compare import differ_all
from onnxbench.core.model import Model
from onnxbench.core.types import infer
from onnxbench.core.values import Value
from onnxbench.folding.options import FoldOptions
from onnxbench.folding.simplify import simplify
from onnxbench.reducers.normalise import normalise
from onnxbench.reducers.prove import Proof
from onnxbench.reducers.request import Request
from onnxbench.reducers.result import Reduction, Workaround
from onnxbench.reducers.signature import names_in
from onnxbench.reducers.workarounds import rewrites, rewritten
from onnxbench.runtimes.base import Runtime

#: Settings that are tried on the whole model, each of which costs a run of it.
_MOST = 4


@dataclass(slots=True)
class WayAround:
    """Tries ways around the failure of one request.

    Attributes:
        request, proof: what failed, and how.
        model: the whole model, its weights out of the way.
        report: what the reduction found.
        wanted: right outputs of the whole model, None if nobody can tell.
    """

    request: Request
    proof: Proof
    model: Model
    report: Reduction
    wanted: Mapping[str, Value] | None = None

    def find(self) -> Model | None:
        """Note in the report what passes; the first rewritten model that passes, if one was asked for."""
        self.wanted = self._right_outputs()
        for runtime in self._settings():
            if self._passes(runtime, self.model):
                self.report.workarounds.append(Workaround("setting", str(runtime), self.wanted is not None))
                break
        if self.request.workaround is None:
            return None
        for name, sentence, model in self._models():
            self.request.progress(f"trying a way around: {name}")
            if self._is_valid(model) and self._passes(self.request.suspect, model):
                self.report.workarounds.append(Workaround("model", f"{name}: {sentence}", self.wanted is not None))
                return model
        self.report.notes.append("no rewritten model was found that does not fail")
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
        made = {name for culprit in self.report.culprits for name in culprit.outputs}
        types: Mapping[str, TypeProto] = infer(self.model, memory=self.request.limits.memory)
        for entry in rewrites():
            proto = rewritten(self.model.proto, entry, made, types)
            if proto is not None:
                yield entry.name, entry.sentence, dataclasses.replace(self.model, proto=proto)
        folded, report = simplify(self.model, FoldOptions(limits=self.request.limits))
        if report.removals:
            yield "folded", "what is constant was computed, what does nothing removed (onnxbench fold)", folded

    def _right_outputs(self) -> Mapping[str, Value] | None:
        if self.proof.expected:
            return self.proof.expected
        for runtime in self.request.trusted:
            outcome = runtime.run(self.model, self.request.feeds, limits=self.request.limits)
            if outcome.ok:
                return outcome.outputs
        return None

    def _passes(self, runtime: Runtime, model: Model) -> bool:
        """Whether the whole model runs and, as far as anybody can tell, is right; as often as a flaky failure needs."""
        for _ in range(self.proof.repeats):
            outcome = runtime.run(model, self.request.feeds, limits=self.request.limits)
            if not outcome.ok:
                return False
            if self.wanted is not None and differ_all(self.wanted, outcome.outputs, self.request.tolerance):
                return False
        return True
