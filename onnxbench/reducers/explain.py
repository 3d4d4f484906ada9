"""What is known of a failure once its reproducer is small: what cures it, since when it is there, who has reported it."""

from __future__ import annotations

import dataclasses

from onnxbench.core.model import Model
from onnxbench.errors import BenchError
from onnxbench.reducers import catalogue
from onnxbench.reducers.catalogue import Known
from onnxbench.reducers.cures import find_cures
from onnxbench.reducers.engine import Found
from onnxbench.reducers.oracle import Oracle, Verdict
from onnxbench.reducers.releases import summary, survey
from onnxbench.reducers.request import Request
from onnxbench.reducers.result import Reduction, Slowness
from onnxbench.reducers.slowness import race
from onnxbench.runtimes.base import Runtime


def explain(report: Reduction, request: Request, best: Found, oracle: Oracle) -> None:
    """Ask the reproducer under other settings and on other releases, and write into the report what makes a difference."""
    request.progress("looking for the optimization at fault")
    cures = find_cures(oracle.suspect, lambda runtime: ask_on(runtime, best, oracle))
    report.lowest_failing = str(cures.lowest) if cures.lowest is not None else ""
    report.cured_by_disabling = list(cures.optimizers)
    report.releases = survey(request.releases, lambda runtime: ask_on(runtime, best, oracle))
    report.since = summary(report.releases)


def how_slow(report: Reduction, request: Request, original: Model, best: Found) -> Slowness | None:
    """Race the suspect once more on the original and on the reproducer; None where slowness is not the failure."""
    judge = next((runtime for runtime in request.trusted if str(runtime) == report.judge), None)
    if report.signature["kind"] != "slow" or judge is None:
        return None
    request.progress("measuring how slow it is")
    piece = best.piece
    return Slowness(
        race(request.suspect, judge, original, request.feeds, request.limits),
        race(request.suspect, judge, piece.model, piece.feeds, request.limits),
    )


def known_failures(report: Reduction, suspect: Runtime, best: Found) -> list[Known]:
    """Reported failures that a candidate looks like, before shrinking has put other operators in."""
    version = report.versions.get(str(suspect), "")
    return catalogue.lookup(best.piece.model.proto, suspect.name, version, report.signature["kind"])


def ask_on(runtime: Runtime, best: Found, oracle: Oracle) -> Verdict:
    """What the reproducer does on another runtime, or with other settings of this one."""
    try:
        return dataclasses.replace(oracle, suspect=runtime, patience=None).look(best.piece).verdict
    except BenchError:
        return "unsure"
