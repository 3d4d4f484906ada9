"""`onnxbench convert`."""

from __future__ import annotations

import dataclasses
import json as json_format
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from onnxbench.commands import _convert_options as own
from onnxbench.commands import _options as options

if TYPE_CHECKING:
    from rich.console import Console

    from onnxbench.converters.feeding import Feeding
    from onnxbench.converters.one import Job
    from onnxbench.converters.options import ConvertOptions
    from onnxbench.errors import BenchError, UsageError
    from onnxbench.render.progress import Progress
    from onnxbench.runtimes.base import Limits


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("convert", short_help="Bring a model, or a thousand, to another opset, and prove it.")(convert)


def convert(
    models: own.Sources = None,
    to: own.To = None,
    at_least: own.AtLeast = None,
    to_runtime: own.ToRuntime = None,
    ir: own.Ir = None,
    expand: own.Expand = None,
    from_: own.From = None,
    exact: own.Exact = False,
    others: own.Others = "copy",
    jobs: own.Jobs = 1,
    inputs: options.Inputs = None,
    shape: options.Shapes = None,
    dim: options.Dims = None,
    range_: options.Ranges = None,
    seed: options.Seed = 0,
    timeout: options.Timeout = 60.0,
    max_memory: options.MaxMemory = "80%",
    no_verify: own.NoVerify = False,
    require_verified: options.RequireVerified = False,
    recheck: own.Recheck = None,
    output: options.OutputOrFolder = None,
    in_place: options.InPlace = False,
    dry_run: options.DryRun = False,
    force: options.Force = False,
    allow_lossy: options.AllowLossy = False,
    explain: own.Explain = None,
    report: own.Report = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
    color: options.Color = "auto",
) -> int:
    """Convert models to another opset, up or down, and compare each with its source before it is written.

    A node that has no form in the target that is known to mean the same is named with the reason, and nothing is written.
    Several models, folders and patterns go into a folder: what lies below the target is raised, the rest is copied; a run
    that was stopped goes on where it was when the same command is given again.
    """
    from onnxbench.commands import _opsets, _parse
    from onnxbench.core.files import is_plural

    _parse.refuse_json_beside_stream(json, output)
    _refuse_odd_reports(report or [])
    if recheck is not None:
        return _recheck(recheck, _parse.limits(timeout, max_memory), models, color, json=json)
    if not models:
        raise _wrong("no model is named", "onnxbench convert model.onnx --to 13 -o out.onnx")
    plural = is_plural(models)
    if others not in ("copy", "skip"):
        raise _wrong(f"--others is copy or skip, not {others!r}")
    if no_verify and require_verified:
        raise _wrong("--no-verify and --require-verified contradict each other")
    if plural and explain:
        raise _wrong("--explain is for one model", "name one model")
    if not plural and from_ is not None:
        raise _wrong("--from chooses among several models, and one is named")
    if report and (dry_run or explain):
        raise _wrong("--report is of a conversion, and none is asked for", "--json")
    _opsets.refuse_unclear(to, at_least, to_runtime, changes_more=ir is not None or bool(expand))
    _warm_up(plural=plural, runs=not no_verify)  # while everything else is imported

    from onnxbench.commands._convert_many import Many, convert_many
    from onnxbench.commands._convert_plan import plan
    from onnxbench.converters import header
    from onnxbench.converters.options import ConvertOptions
    from onnxbench.render.console import console
    from onnxbench.render.progress import Progress

    out = console(color)
    asked = ConvertOptions(
        targets=_opsets.targets(to, at_least),
        at_least=at_least is not None,
        ir=ir,
        expand=frozenset(expand or ()),
        verify=not no_verify,
        whole=require_verified,
        limits=_parse.limits(timeout, max_memory),
        seed=seed,
    )
    if to_runtime is not None:
        asked = _for_runtime(asked, to_runtime)
    header.refuse_unknown(asked.targets)
    header.refuse_unheard(asked)
    progress = Progress(quiet, verbose)
    if dry_run or explain:
        return plan(models, asked, explain or [], out, progress, exact=exact, from_=from_, json=json)
    job = _job(asked, _feeding(inputs, shape, dim, range_, seed), require_verified, allow_lossy, force)
    job = dataclasses.replace(job, runtime=to_runtime or "")
    if plural:
        many = Many(models, output, in_place, exact, others, from_, jobs, tuple(report or ()), max_memory.endswith("%"))
        return convert_many(many, job, out, progress, json=json)
    return _single(models[0], output, job, out, progress, report or [], in_place=in_place, json=json)


def _warm_up(*, plural: bool, runs: bool) -> None:
    from onnxbench import isolate

    if plural:
        from onnxbench.converters import workers

        workers.warm_up()
    else:
        isolate.warm_up(isolate.HERE if runs else isolate.LIGHT)


def _for_runtime(asked: ConvertOptions, runtime: str) -> ConvertOptions:
    from onnxbench.converters.runtime_target import target_of

    found = target_of(runtime, asked.limits)
    return dataclasses.replace(asked, targets=dict(found.opsets), ir_most=found.ir)


def _wrong(message: str, hint: str = "") -> UsageError:
    from onnxbench.errors import UsageError

    return UsageError("OB201", message, hint=hint)


def _feeding(
    inputs: str | None, shape: list[str] | None, dim: list[str] | None, range_: list[str] | None, seed: int
) -> Feeding:
    from onnxbench.converters.feeding import Feeding
    from onnxbench.core.dims import parse_dims, parse_ranges, parse_shapes

    if inputs is not None:
        for option, given in (("--shape", shape), ("--dim", dim), ("--range", range_)):
            if given:
                raise _wrong(f"{option} is for generated inputs, and --inputs gives them")
    return Feeding(inputs, parse_shapes(shape or []), parse_dims(dim or []), parse_ranges(range_ or []), seed)


def _job(asked: ConvertOptions, feeding: Feeding, require_verified: bool, allow_lossy: bool, force: bool) -> Job:
    from onnxbench.converters.one import Job

    return Job("", "", asked, feeding, force, require_verified, allow_lossy)


def _single(
    model: str,
    output: str | None,
    job: Job,
    out: Console,
    progress: Progress,
    reports: Sequence[Path],
    *,
    in_place: bool,
    json: bool,
) -> int:
    from onnxbench.commands._convert_reports import refuse_taken, write_single
    from onnxbench.commands._targets import targets
    from onnxbench.converters.one import convert_file
    from onnxbench.render.converting import print_conversion

    refuse_taken(reports, force=job.force)
    (target,) = targets([model], output, in_place=in_place, force=job.force)
    progress.step(f"converting {target.source}")
    try:
        report, stopped = convert_file(
            dataclasses.replace(job, source=target.source, output=target.output, force=target.force)
        )
    finally:
        progress.close()
    error = {"error": stopped.to_dict()} if stopped is not None else {}
    said = {**report.to_dict(), **error}
    if json:
        typer.echo(_dump(said))
    elif output != "-":
        print_conversion(report, out)
    if stopped is not None:
        _say(stopped)
    code = stopped.exit_code if stopped is not None else report.exit_code
    write_single(reports, said, target.source, code)
    return code


def _recheck(path: Path, limits: Limits, models: list[str] | None, color: str, *, json: bool) -> int:
    from onnxbench.converters.recheck import recheck
    from onnxbench.errors import SafetyStop
    from onnxbench.render.console import console
    from onnxbench.render.converting import print_rechecked

    if models:
        raise _wrong("--recheck reads a report, and needs no model", f"onnxbench convert --recheck {path}")
    found = recheck(str(path), limits)
    differing = [row for row in found.rows if row.state == "differs"]
    stopped = None
    if differing:
        fact = f"{len(differing)} of {len(found.rows)} certificates of {path} do not hold: {differing[0].reason}"
        stopped = SafetyStop("OB501", fact)
    if json:
        typer.echo(_dump({**found.to_dict(), **({"error": stopped.to_dict()} if stopped else {})}))
    else:
        print_rechecked(found, console(color))
    if stopped is not None:
        _say(stopped)
    return found.exit_code


def _refuse_odd_reports(reports: Sequence[Path]) -> None:
    from onnxbench.errors import quote

    for path in reports:
        if path.suffix not in (".json", ".md", ".html"):
            raise _wrong(f"--report {quote(str(path))} ends with none of .json, .md, .html")


def _say(error: BenchError) -> None:
    from onnxbench.errors import escape

    hint = f"\n  hint: {escape(error.hint)}" if error.hint else ""
    typer.echo(f"error[{error.code}]: {escape(error.message)}{hint}", err=True)


def _dump(report: object) -> str:
    return json_format.dumps(report, indent=1, allow_nan=False)
