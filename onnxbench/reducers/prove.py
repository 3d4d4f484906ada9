"""Prove that the original fails, how, and how often."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field

from onnxbench.core import check
from onnxbench.core.compare import Tolerance, differ_all
from onnxbench.core.model import Model
from onnxbench.core.values import Value
from onnxbench.errors import ModelError
from onnxbench.reducers.normalise import normalise
from onnxbench.reducers.signature import Signature, names_in, of_differences, of_outcome
from onnxbench.runtimes.base import Limits, Runtime
from onnxbench.runtimes.outcome import Outcome

#: Runs of the original that tell a steady failure from a flaky one, and runs that measure the rate of a flaky one.
STEADY, MEASURED = 3, 20
#: A hang is proven by one run, and a slow model by two: each costs its whole time again.
_SLOW_S = 10.0
#: How sure a flaky candidate must be of passing, before it counts as passing.
_DOUBT = 0.01


@dataclass(slots=True)
class Proof:
    """What was seen of the original.

    Attributes:
        signature: the failure; None if it did not fail.
        failed: runs that failed that way, of `runs`.
        expected: what the trusted runtime computed, where the suspect gave numbers.
        fault: what the checker says of the model, normalised.
        names: of the model's nodes and values.
        judge: the trusted runtime that gave `expected`.
        slowest: seconds of the longest run.
        node: the node that the suspect's message names, if it names one.
    """

    signature: Signature | None = None
    failed: int = 0
    runs: int = 0
    expected: Mapping[str, Value] = field(default_factory=dict)
    fault: str | None = None
    names: Set[str] = frozenset()
    judge: str = ""
    slowest: float = 0.0
    node: str = ""

    @property
    def hangs(self) -> bool:
        """Whether the failure is that there is no answer."""
        return self.signature is not None and self.signature.kind == "timeout"

    @property
    def repeats(self) -> int:
        """How often a candidate must pass before it counts as passing."""
        if self.failed >= self.runs:
            return 1
        return max(1, math.ceil(math.log(_DOUBT) / math.log1p(-self.failed / self.runs)))


def prove(
    suspect: Runtime,
    trusted: Sequence[Runtime],
    model: Model,
    feeds: Mapping[str, Value],
    tolerance: Tolerance,
    limits: Limits,
) -> Proof:
    """Run the original a few times, and compare with a trusted runtime where it gives numbers.

    Raises:
        ModelError: OB308 if the suspect runs and nobody trusted does.
    """
    proof, wanted = Proof(names=frozenset(names_in(model.proto))), STEADY
    while proof.runs < wanted:
        outcome = suspect.run(model, feeds, limits=limits)
        proof.runs += 1
        proof.slowest = max(proof.slowest, outcome.seconds)
        _note(proof, outcome, trusted, model, feeds, tolerance, limits)
        if outcome.kind in ("timeout", "memory"):
            break
        if proof.slowest > _SLOW_S:
            wanted = min(wanted, 2)
        if proof.runs == STEADY and 0 < proof.failed < STEADY:
            wanted = MEASURED
    if proof.signature is not None:
        complaint = check.fault(check.declared(model), timeout=limits.timeout, memory=limits.memory)
        proof.fault = normalise(complaint, proof.names) if complaint is not None else None
    return proof


def _note(
    proof: Proof,
    outcome: Outcome,
    trusted: Sequence[Runtime],
    model: Model,
    feeds: Mapping[str, Value],
    tolerance: Tolerance,
    limits: Limits,
) -> None:
    if outcome.ok:
        if not proof.judge:
            proof.judge, proof.expected = _trusted_outputs(trusted, model, feeds, limits)
        differences = differ_all(proof.expected, outcome.outputs, tolerance)
        seen = of_differences(differences) if differences else None
    else:
        seen = of_outcome(outcome, proof.names)
    if seen is not None and proof.signature in (None, seen):
        proof.signature = seen
        proof.node = proof.node or outcome.node
        proof.failed += 1


def _trusted_outputs(
    trusted: Sequence[Runtime], model: Model, feeds: Mapping[str, Value], limits: Limits
) -> tuple[str, Mapping[str, Value]]:
    reasons: list[str] = []
    for runtime in trusted:
        outcome = runtime.run(model, feeds, limits=limits)
        if outcome.ok:
            return str(runtime), outcome.outputs
        reasons.append(f"{runtime} {outcome.sentence()}")
    raise ModelError(
        "OB308",
        f"{model.label} runs on the suspect, and nobody tells what is right: {'; '.join(reasons) or 'nobody was asked'}",
        hint="--against another runtime, such as python:model.py:function",
    )
