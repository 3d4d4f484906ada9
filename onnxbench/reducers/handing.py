"""Hand back what a reduction found: a bundle that was seen to fail, a model file."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass

from onnxbench.core.model import save
from onnxbench.core.outline import Outline
from onnxbench.core.values import Value
from onnxbench.reducers import bundle
from onnxbench.reducers.engine import Found
from onnxbench.reducers.finding import Finding
from onnxbench.reducers.journal import Journal
from onnxbench.reducers.naming import anonymous, names_map
from onnxbench.reducers.normalise import normalise
from onnxbench.reducers.passing import Near
from onnxbench.reducers.prove import Proof
from onnxbench.reducers.repro import script
from onnxbench.reducers.request import Request
from onnxbench.reducers.result import Passing, Reduction


@dataclass(frozen=True, slots=True)
class Extras:
    """What goes into a bundle besides the reproducer.

    Attributes:
        journal: the verdicts of the search.
        near: a neighbour that passes, if one is known.
        outline: the original's graph, None if it is not to be shown.
    """

    journal: Journal
    near: Near | None = None
    outline: Outline | None = None


def hand_back(request: Request, proof: Proof, best: Found, report: Reduction, more: Extras) -> None:
    """Confirm the best candidate in a fresh process, and write what was asked for; says so in the report.

    Raises:
        SafetyStop: OB501 if it does not fail again.
    """
    if request.bundle is not None:
        with bundle.Draft(request.bundle) as draft:
            draft.write(_contents(request, proof, best))
            request.progress("confirming in a fresh process")
            tries = 1 if proof.failed == proof.runs else 3
            timeout = ((request.limits.timeout or 600.0) + 10) * proof.repeats
            if not draft.confirm(request.suspect.interpreter.executable, timeout, tries):
                raise bundle.unconfirmed(request.model.label, draft.said)
            report.confirmed = True
            if report.status == "minimal":
                more.journal.copy(draft.folder / "journal.jsonl")
            if more.near is not None:
                draft.add_passing(more.near)
                report.passing = Passing(more.near.differs, not more.near.fed_alike)
            _publish(request, draft, report, best, more.outline)
            if report.status == "minimal":
                more.journal.discard()
    if request.output is not None:
        save(best.piece.model, request.output, force=request.force, allow_lossy=request.allow_lossy)
        report.output = request.output
        if request.bundle is None and report.status == "minimal":
            more.journal.discard()


def _contents(request: Request, proof: Proof, best: Found) -> bundle.Contents:
    assert proof.signature is not None
    piece = best.piece
    text = script(
        request.suspect,
        piece.model.proto,
        proof.signature,
        request.tolerance,
        request.limits,
        tries=proof.repeats,
        names=_said_names(proof, best),
        judge=next((runtime for runtime in request.trusted if str(runtime) == proof.judge), None),
        slower_than=request.slower_than,
    )
    return bundle.Contents(piece.model, piece.feeds, _expected(request, best), text)


def _said_names(proof: Proof, best: Found) -> set[str]:
    """The original's names that are words of the reproducer's message, too: the script reads it as the search did."""
    message = best.answer.outcome.message if best.answer.outcome is not None else ""
    plain = normalise(message)
    return {name for name in proof.names if name and name in message and normalise(message, {name}) != plain}


def _publish(request: Request, draft: bundle.Draft, report: Reduction, best: Found, outline: Outline | None) -> None:
    """Put the bundle where it was asked for, or beside it if that was taken while the search went on."""
    assert request.bundle is not None
    model = best.piece.model
    for place in bundle.numbered(request.bundle):
        beside = place.with_name(f"{place.name}.names.json")
        if request.anonymize and beside.exists() and not request.force:
            continue
        report.bundle = str(place)
        told = anonymous(report, model) if request.anonymize else report
        for name, document in request.documents.items():
            draft.add(name, document(Finding(told, model, best.piece.feeds, outline)))
        if not request.anonymize:
            draft.add("names.json", names_map(report.model, best))
        if request.force:
            draft.replace(place)
        elif not draft.publish(place):
            continue
        if request.anonymize:
            bundle.write_text(beside, names_map(report.model, best))
        return


def _expected(request: Request, best: Found) -> Mapping[str, Value]:
    """Right outputs: what the search compared with, else what a trusted runtime says of the piece, if any can run it."""
    if best.answer.expected:
        return best.answer.expected
    limits = request.limits
    patience = dataclasses.replace(limits, timeout=limits.timeout / 3 if limits.timeout is not None else None)
    for runtime in request.trusted:
        outcome = runtime.run(best.piece.model, best.piece.feeds, limits=patience)
        if outcome.ok:
            return outcome.outputs
    return {}
