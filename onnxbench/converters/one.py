"""Convert one file: read it, convert it, write what may be written."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from onnxbench.converters.feeding import Feeding
from onnxbench.converters.options import ConvertOptions
from onnxbench.converters.report import Conversion
from onnxbench.converters.verdict import verdict
from onnxbench.core.model import Model, save
from onnxbench.core.saving import refuse_losses, refuse_target
from onnxbench.core.slimming import load_slim
from onnxbench.core.tensors import is_external, tensors
from onnxbench.errors import BenchError, escape
from onnxbench.verify import Feeds


@dataclass(frozen=True, slots=True)
class Job:
    """One model to convert, and where to.

    Attributes:
        source: the file to read, or `-`.
        output: the file to write, or `-`.
        options: of the conversion.
        feeding: the inputs to verify with.
        force: replace what is there.
        require_verified: write nothing that was not verified.
        allow_lossy: write a format even if it cannot hold all of the model.
        runtime: one that has to load the result; none if it is empty.
        one_of_many: whether options may name inputs and symbols that this model does not have.
    """

    source: str
    output: str
    options: ConvertOptions
    feeding: Feeding = field(default_factory=Feeding)
    force: bool = False
    require_verified: bool = False
    allow_lossy: bool = False
    runtime: str = ""
    one_of_many: bool = False


@dataclass(slots=True)
class Answer:
    """What came of a job, in a form that leaves a worker process.

    Attributes:
        state: that of the conversion, or "failed" if there was none.
        report: as `Conversion.to_dict()`; empty if it failed.
        error: why nothing was written.
        code: what a command for this model alone would end with.
        wrote: the files that were written.
    """

    state: str
    report: dict[str, Any] = field(default_factory=dict)
    error: dict[str, str] | None = None
    code: int = 0
    wrote: tuple[str, ...] = ()


def convert_file(job: Job) -> tuple[Conversion, BenchError | None]:
    """Convert one model and write it, or say why it is not written.

    Raises:
        BenchError: if the model cannot be read or the result not be written.
    """
    report, stopped, _ = _convert(job)
    return report, stopped


def convert_one(job: Job) -> Answer:
    """`convert_file` for a worker process: nothing that is known to go wrong raises here."""
    try:
        report, stopped, written = _convert(job)
    except BenchError as error:
        return Answer("failed", error=error.to_dict(), code=error.exit_code)
    said = report.to_dict()
    if stopped is not None or written is None:
        return Answer(report.state, said, stopped.to_dict() if stopped else None, stopped.exit_code if stopped else 0)
    return Answer(report.state, said, None, report.exit_code, (job.output, *_data_beside(written, Path(job.output))))


def _convert(job: Job) -> tuple[Conversion, BenchError | None, Model | None]:
    from onnxbench.converters.run import convert_model

    started = time.monotonic()
    model = load_slim(job.source)
    if job.output != "-":
        refuse_target(Path(job.output).absolute(), job.force)
        if not job.allow_lossy:
            refuse_losses(model.proto, Path(job.output))
    converted, report = convert_model(model, job.options, _feeds(job, model))
    if job.runtime and report.state not in ("refused", "mismatch"):
        _refuse_unloaded(converted or model, report, job)
    stopped = verdict(report, require_verified=job.require_verified)
    result = None if stopped is not None else converted or model
    if result is not None:
        save(result, job.output, force=job.force, allow_lossy=job.allow_lossy)
        report.output = escape(job.output) if job.output != "-" else ""
    report.seconds = time.monotonic() - started
    return report, stopped, result


def _refuse_unloaded(result: Model, report: Conversion, job: Job) -> None:
    """Refuse what the runtime that it is for does not load. Without values for its inputs no time goes into a run."""
    from onnxbench.runtimes.find import find

    outcome = find(job.runtime).run(result, {}, limits=job.options.limits)
    if outcome.kind == "crash" or (outcome.kind in ("error", "unsupported") and outcome.phase == "load"):
        report.state, report.reason = "refused", f"{job.runtime} {outcome.sentence()}"


def _feeds(job: Job, model: Model) -> Callable[[Model], Iterable[Feeds]]:
    feeding = replace(job.feeding.among(model), seed=job.options.seed) if job.one_of_many else job.feeding
    return feeding.of


def _data_beside(model: Model, target: Path) -> list[str]:
    """The data file that a model was written with."""
    if not any(is_external(tensor) for tensor in tensors(model.proto)):
        return []
    ours = re.compile(re.escape(target.stem[:200]) + r"-[0-9a-f]{12}\.data")
    return sorted(entry.path for entry in os.scandir(target.parent) if ours.fullmatch(entry.name))
