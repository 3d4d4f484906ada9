"""Prove that the original fails, how, and how often."""

from __future__ import annotations

import math
from collections.abc import Mapping, Set
from dataclasses import dataclass, field

from onnxbench.core import check
from onnxbench.core.compare import differ_all
from onnxbench.core.model import Model
from onnxbench.core.values import Value
from onnxbench.errors import MachineError, ModelError
from onnxbench.reducers.normalise import normalise
from onnxbench.reducers.request import Request
from onnxbench.reducers.signature import Signature, names_in, of_differences, of_outcome
from onnxbench.reducers.slowness import slowness
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
        expected: right outputs, where the suspect gave numbers: the trusted runtime's, or what the request expects.
        fault: what the checker says of the model, normalised.
        names: of the model's nodes and values.
        judge: the trusted runtime that gave `expected`, or gives the same.
        slowest: seconds of the longest run.
        cheap: whether it fails the same way under the suspect's cheap settings.
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
    cheap: bool = False
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


def prove(request: Request, model: Model) -> Proof:
    """Run the original a few times, and compare with a trusted runtime, or with what is expected, where it gives numbers.

    Args:
        request: what to run, on what.
        model: the request's model, made cheap to run again and again.

    Raises:
        ModelError: OB308 if the suspect runs and nobody trusted does, or none gives what is expected.
        MachineError: OB405 if a check cannot start, or cannot tell.
    """
    limits = request.limits
    if request.slower_than is not None and (slow := _prove_slow(request, model, request.slower_than)) is not None:
        return slow
    proof, wanted = Proof(names=frozenset(names_in(model.proto))), STEADY
    cheap = request.suspect.cheap()
    while proof.runs < wanted:
        trial = 0 < proof.runs == proof.failed and cheap is not request.suspect
        runtime = cheap if trial else request.suspect
        outcome = runtime.run(model, request.feeds, limits=limits)
        seen = _seen(proof, request, model, outcome)
        if trial and seen != proof.signature:
            cheap = request.suspect  # they hide it, or it is flaky: only runs without them tell which
            proof.runs = proof.failed = 1
            continue
        proof.runs += 1
        proof.slowest = max(proof.slowest, outcome.seconds)
        if seen is not None and proof.signature in (None, seen):
            proof.signature = seen
            proof.node = proof.node or outcome.node
            proof.failed += 1
        if outcome.kind in ("timeout", "memory"):
            break
        if proof.slowest > _SLOW_S:
            wanted = min(wanted, 2)
        if proof.runs == STEADY and 0 < proof.failed < STEADY:
            wanted = MEASURED
    proof.cheap = proof.runs > 1 and proof.failed == proof.runs and cheap is not request.suspect
    if proof.signature is not None:
        complaint = check.fault(check.declared(model), timeout=limits.timeout, memory=limits.memory)
        proof.fault = normalise(complaint, proof.names) if complaint is not None else None
    return proof


def _prove_slow(request: Request, model: Model, times: float) -> Proof | None:
    """The proof that the model is slow, or not; None if a run fails, which is another failure."""
    proof = Proof(names=frozenset(names_in(model.proto)), runs=1)
    proof.judge, proof.expected = _judge(request, model)
    judge = next(runtime for runtime in request.trusted if str(runtime) == proof.judge)
    ratio = slowness(request.suspect, judge, model, request.feeds, request.limits)
    if ratio is None:
        return None
    if ratio > times:
        proof.signature, proof.failed = Signature("slow"), 1
    return proof


def _seen(proof: Proof, request: Request, model: Model, outcome: Outcome) -> Signature | None:
    """The failure of one run, if it is one."""
    if outcome.kind == "unknown":
        raise MachineError(
            "OB405", f"the check says nothing of {model.label}: {outcome.message}", hint="run it by hand on the model"
        )
    if not outcome.ok:
        return of_outcome(outcome, proof.names)
    if request.suspect.decides:
        return None
    if not proof.judge:
        proof.judge, proof.expected = _judge(request, model)
    differences = differ_all(proof.expected, outcome.outputs, request.tolerance)
    return of_differences(differences) if differences else None


def _judge(request: Request, model: Model) -> tuple[str, Mapping[str, Value]]:
    """The first trusted runtime that runs the model and, if something is expected, gives that."""
    reasons: list[str] = []
    for runtime in request.trusted:
        outcome = runtime.run(model, request.feeds, limits=request.limits)
        if not outcome.ok:
            reasons.append(f"{runtime} {outcome.sentence()}")
        elif request.expected is None:
            return str(runtime), outcome.outputs
        elif not (wrong := differ_all(request.expected, outcome.outputs, request.tolerance)):
            return str(runtime), request.expected
        else:
            reasons.append(f"{runtime} gives {wrong[0].sentence()}")
    what = "gives the expected outputs" if request.expected is not None else "tells what is right"
    raise ModelError(
        "OB308",
        f"{model.label} runs on the suspect, and nobody trusted {what}: {'; '.join(reasons) or 'nobody was asked'}",
        hint="--against another runtime, such as python:model.py:function",
    )
