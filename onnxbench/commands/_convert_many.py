"""`onnxbench convert` of several models, folders or patterns."""

from __future__ import annotations

import dataclasses
import json as json_format
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast

import typer

from onnxbench import interrupts
from onnxbench.errors import UsageError, escape

if TYPE_CHECKING:
    from rich.console import Console

    from onnxbench.converters.one import Job
    from onnxbench.converters.summary import Summary
    from onnxbench.converters.tree import Tree
    from onnxbench.render.progress import Progress

_LEAST = 256 << 20
_PAUSE = 5.0  # seconds between two lines of a log


@dataclass(frozen=True, slots=True)
class Many:
    """What the command line says of many models."""

    models: list[str]
    output: str | None
    in_place: bool
    exact: bool
    others: str
    from_: int | None
    jobs: int
    reports: tuple[Path, ...]
    shared_memory: bool


def convert_many(many: Many, job: Job, out: Console, progress: Progress, *, json: bool) -> int:
    """Convert models into a folder, or over themselves; write the reports and print a table.

    Raises:
        UsageError: OB201 if it is not told where to, OB202 if a report would take the place of something.
        ModelError: OB301 if there is no model.
        MachineError: OB402 if the disk has no room.
    """
    from onnxbench.commands._convert_reports import refuse_taken, write_summary
    from onnxbench.converters.asked import Asked
    from onnxbench.converters.batch import Batch
    from onnxbench.converters.journal import Journal, stamp
    from onnxbench.converters.tree import REPORTS
    from onnxbench.render.converting import print_summary

    tree = tree_of(many)
    journal = Journal(tree.output)
    journal.open()
    try:
        foreign = [path for path in many.reports if not journal.owns(str(path.absolute()))]
        refuse_taken(foreign, force=job.force)
        reports = [tree.output / name for name in REPORTS] if tree.output is not None else []
        refuse_taken(reports, force=job.force or journal.is_old)
        others = cast(Literal["copy", "skip"], many.others)
        asked = Asked(_shared(job, many), many.exact, others, many.from_, many.jobs)
        summary = Batch(tree, asked, journal, _Teller(progress)).run()
        progress.close()
        summary.asked = _words(many, job)
        with interrupts.finishing(progress.step):
            write_summary([*reports, *many.reports], summary)
            for path in many.reports:
                journal.copied(str(path.absolute()), stamp(path))
    finally:
        progress.close()
        journal.close()
    if json:
        typer.echo(json_format.dumps(summary.to_dict(), indent=1, allow_nan=False))
    else:
        print_summary(summary, out)
    _say_verdict(summary)
    return summary.exit_code


def tree_of(many: Many) -> Tree:
    """What goes where.

    Raises:
        UsageError: OB201 if that cannot be told.
        ModelError: OB301 if there is no model.
    """
    from onnxbench.converters.tree import in_place, plan_tree

    if many.in_place and many.output is not None:
        raise UsageError("OB201", "--in-place writes over the model itself: leave out -o")
    if many.in_place:
        return in_place(many.models)
    if many.output is None:
        raise UsageError("OB201", "it is not said where to write: give -o FOLDER, or --in-place")
    if many.output == "-":
        raise UsageError("OB201", "several models go into a folder, and '-' is none", hint="-o FOLDER")
    return plan_tree(many.models, Path(many.output))


def _shared(job: Job, many: Many) -> Job:
    """A share of the machine's memory is for all models that are converted at a time."""
    limits = job.options.limits
    if not many.shared_memory or limits.memory is None:
        return job
    fair = dataclasses.replace(limits, memory=max(_LEAST, limits.memory // many.jobs))
    return dataclasses.replace(job, options=dataclasses.replace(job.options, limits=fair))


def _words(many: Many, job: Job) -> dict[str, object]:
    """What was asked, for the report."""
    options = job.options
    return {
        "models": many.models,
        "to": {domain or "ai.onnx": version for domain, version in options.targets.items()},
        "at_least": options.at_least,
        "ir": options.ir,
        "expand": sorted(options.expand),
        "exact": many.exact,
        "from": many.from_,
        "others": many.others,
        "verify": options.verify,
        "require_verified": job.require_verified,
        "seed": options.seed,
    }


class _Teller:
    """How far it is: always on a terminal, now and then in a log."""

    def __init__(self, progress: Progress) -> None:
        self._progress, self._last = progress, time.monotonic()

    def __call__(self, summary: Summary, line: str) -> None:
        states = ", ".join(f"{state} {count}" for state, count in summary.by_state().items())
        text = f"{len(summary.rows)} of {summary.total}" + (f": {states}" if states else "")
        if time.monotonic() - self._last >= _PAUSE:
            self._last = time.monotonic()
            self._progress.step(text)
        else:
            self._progress.tick(f"{text}; converting {line}" if line else text)


def _say_verdict(summary: Summary) -> None:
    """Each model without a result, as the command for it alone would say it; then the interrupt."""
    for row in summary.rows:
        if row.error is not None:
            hint = f"\n  hint: {escape(row.error['hint'])}" if row.error["hint"] else ""
            said = f"error[{row.error['code']}]: {escape(row.model)}: {escape(row.error['message'])}{hint}"
            typer.echo(said, err=True)
    for file in summary.files:
        if file.error is not None:
            said = f"error[{file.error['code']}]: {escape(file.place)}: {escape(file.error['message'])}"
            typer.echo(said, err=True)
    if summary.interrupted:
        left = summary.total - len(summary.rows)
        typer.echo(f"error[OB801]: interrupted with {left} of {summary.total} models left", err=True)
        typer.echo("  hint: the same command goes on where it was", err=True)
