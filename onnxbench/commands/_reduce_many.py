"""`onnxbench reduce` of several models, a folder or a pattern."""

from __future__ import annotations

import json as json_format
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from onnxbench.errors import UsageError, escape

if TYPE_CHECKING:
    from rich.console import Console

    from onnxbench.reducers.several import Several

#: Options that mean one model, and those that this command sees to itself.
_SINGLE = ("output", "workaround", "prove", "git_bisect", "localize_only", "within", "expected")
_OURS = {"models", "bundle", "jobs", "json", "quiet", "verbose", "color", "resume", "force", "help"}


def reduce_many(context: typer.Context, models: list[str], json: bool, out: Console) -> int:
    """Reduce each distinct failure of many models, and print a table.

    Raises:
        UsageError: OB201 for an option that is for one model.
        ModelError: OB301 if there is no model.
    """
    from onnxbench.core.files import find_models
    from onnxbench.reducers.journal import beside
    from onnxbench.reducers.several import Batch
    from onnxbench.render.progress import Progress

    given, found = context.params, find_models(models)
    for name in _SINGLE:
        if given.get(name):
            raise UsageError("OB201", f"--{name.replace('_', '-')} is for one model", hint="name one model")
    again = _again(context)
    resume, force = bool(given["resume"]), bool(given["force"])

    def command(model: str, bundle: Path | None) -> list[str]:
        start = [sys.executable, "-m", "onnxbench", "reduce", "--json", "-q", *again]
        if bundle is None:
            return [*start, "--prove", "--", model]
        more = ["--force"] if force or resume else []
        if resume and beside(bundle).exists():
            more = ["--resume"]
        return [*start, "--bundle", str(bundle), *more, "--", model]

    folder = Path(given["bundle"] or "onnxbench.repros")  # some releases of typer keep the text here
    progress = Progress(given["quiet"], given["verbose"])
    try:
        report = Batch(command, folder, given["jobs"], resume, progress.step).run(found)
    finally:
        progress.close()
    if json:
        typer.echo(json_format.dumps(report.to_dict(), indent=1))
    else:
        _print(report, out)
    return report.exit_code


def _again(context: typer.Context) -> list[str]:
    """The options that were given, for the command of one model."""
    found: list[str] = []
    for parameter in context.command.params:
        name, value = parameter.name, context.params.get(parameter.name or "")
        if name in _OURS or value in (None, False, [], ()) or value == parameter.default:
            continue
        flag = max(parameter.opts, key=len)
        values: list[Any] = list(value) if isinstance(value, list | tuple) else [value]
        found += [part for item in values for part in ([flag] if item is True else [flag, str(item)])]
    return found


def _print(report: Several, out: Console) -> None:
    for row in report.rows:
        error = row.report.get("error")
        if row.failure:
            said = f"failure {row.failure}"
        elif row.report.get("status") == "not-reproduced":
            said = "does not fail"
        elif error:
            said = f"{error['code']}: {error['message']}"
        else:
            said = str(row.report.get("status", "stopped"))
        out.print(f"{escape(row.model)}: {escape(said)}")
    for number, failure in enumerate(report.failures, 1):
        out.print(f"failure {number}: {escape(failure.sentence)} in {escape(', '.join(failure.operators))}")
        out.print(f"  in {len(failure.models)} models, bundle {escape(str(failure.bundle))}")
        for issue in failure.known:
            out.print(f"  this looks like {escape(issue)}")
