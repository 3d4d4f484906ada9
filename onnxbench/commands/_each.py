"""Do one thing to each of several models: one bad model never stops the rest."""

from __future__ import annotations

import json as json_format
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

import typer

from onnxbench.commands._targets import Target
from onnxbench.errors import BenchError, escape


class Report(Protocol):
    """What a service says of one model."""

    @property
    def exit_code(self) -> int: ...

    def to_dict(self) -> dict[str, Any]: ...


def each(
    jobs: Sequence[Target],
    work: Callable[[Target], Report],
    show: Callable[[Any], None],
    *,
    plural: bool,
    json: bool,
    schema: str,
) -> int:
    """Work on every model and show what came of it; the exit code: that of the worst.

    A single model's error is the command's own. Of several each error is told at its model, and in JSON stands in its row.

    Args:
        jobs: what to read and to write.
        work: does it, and returns a report.
        show: prints a report for people.
        plural: whether the answer is a list, whatever its length.
        json: whether one JSON object is printed instead.
        schema: of that object, for several models.
    """
    if not plural:
        report = work(jobs[0])
        if json:
            typer.echo(_dump(report.to_dict()))
        else:
            show(report)
        return report.exit_code
    rows: list[dict[str, Any]] = []
    worst = 0
    for job in jobs:
        if job.output not in ("-", job.source):
            Path(job.output).parent.mkdir(parents=True, exist_ok=True)
        try:
            report = work(job)
        except BenchError as error:
            worst = max(worst, error.exit_code)
            rows.append({"model": escape(job.source), "error": error.to_dict()})
            if not json:
                hint = f"\n  hint: {escape(error.hint)}" if error.hint else ""
                typer.echo(f"error[{error.code}]: {escape(_at(job.source, error.message))}{hint}", err=True)
            continue
        worst = max(worst, report.exit_code)
        rows.append({**report.to_dict(), "model": escape(job.source)})  # models of two folders may have one name
        if not json:
            show(report)
    if json:
        typer.echo(_dump({"schema": schema, "models": rows}))
    return worst


def _at(source: str, message: str) -> str:
    """The message with the model that it is about, by its path, in front; it may name the file there already."""
    name = Path(source).name
    return source + message.removeprefix(name) if message.startswith(f"{name} ") else f"{source}: {message}"


def _dump(report: dict[str, Any]) -> str:
    return json_format.dumps(report, indent=1, allow_nan=False)
