"""What is known of a failure once its reproducer is small: what cures it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from onnxbench.errors import BenchError
from onnxbench.reducers.cures import find_cures
from onnxbench.reducers.engine import Found
from onnxbench.reducers.oracle import Oracle, Verdict
from onnxbench.reducers.result import Reduction
from onnxbench.runtimes.base import Runtime


def explain(report: Reduction, best: Found, oracle: Oracle, tell: Callable[[str], None]) -> None:
    """Ask the reproducer under other settings, and write into the report what makes a difference."""
    tell("looking for the optimization at fault")
    cures = find_cures(oracle.suspect, lambda runtime: ask_on(runtime, best, oracle))
    report.lowest_failing = str(cures.lowest) if cures.lowest is not None else ""
    report.cured_by_disabling = list(cures.optimizers)


def ask_on(runtime: Runtime, best: Found, oracle: Oracle) -> Verdict:
    """What the reproducer does on another runtime, or with other settings of this one."""
    try:
        return dataclasses.replace(oracle, suspect=runtime).look(best.piece).verdict
    except BenchError:
        return "unsure"
