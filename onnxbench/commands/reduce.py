"""`onnxbench reduce`."""

from __future__ import annotations

import json as json_format
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from onnxbench.commands import _options as options
from onnxbench.commands import _reduce_options as own

if TYPE_CHECKING:
    from rich.console import Console

    from onnxbench.core.graph import GraphView, Node
    from onnxbench.core.values import Value
    from onnxbench.reducers.request import Request
    from onnxbench.reducers.result import Reduction
    from onnxbench.runtimes.base import Limits, Runtime


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("reduce", short_help="Find the few nodes at fault, and hand back a reproducer.")(reduce)


def reduce(
    context: typer.Context,
    models: own.Sources,
    runtime: own.Suspect = "onnxruntime",
    against: own.Against = None,
    expected: own.Expected = None,
    slower_than: own.SlowerThan = None,
    check: own.Check = None,
    fail_code: own.FailCode = None,
    fail_regex: own.FailRegex = None,
    fail_any: own.FailAny = False,
    inputs: options.Inputs = None,
    shape: options.Shapes = None,
    dim: options.Dims = None,
    range_: options.Ranges = None,
    seed: options.Seed = 0,
    rtol: options.Rtol = None,
    atol: options.Atol = None,
    timeout: options.Timeout = 60.0,
    max_memory: options.MaxMemory = "80%",
    within: own.Within = None,
    prove: own.OnlyProve = False,
    git_bisect: own.GitBisect = False,
    localize_only: own.LocalizeOnly = False,
    time_limit: own.TimeLimit = None,
    max_checks: own.MaxChecks = None,
    resume: own.Resume = False,
    jobs: own.Jobs = 1,
    passes: own.Passes = None,
    skip_pass: own.SkipPass = None,
    list_passes: own.ListPasses = False,
    anonymize: own.Anonymize = False,
    no_explain: own.NoExplain = False,
    bundle: options.Folder = None,
    output: options.Output = None,
    versions: own.Versions = None,
    workaround: own.WorkaroundFile = None,
    force: options.Force = False,
    allow_lossy: options.AllowLossy = False,
    json: own.Json = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
    color: options.Color = "auto",
) -> int:
    """Reduce a failing model to the fewest nodes that still fail the same way.

    Takes wrong numbers (against a trusted runtime), load errors, run errors, crashes and hangs, and whatever a command
    of yours calls a failure (--check). Writes a folder with the reduced model, its inputs, a report, and repro.py, which
    fails again by itself. Of several models, or a folder, each distinct failure is reduced once.
    """
    from onnxbench import isolate
    from onnxbench.commands import _parse
    from onnxbench.commands._reduce_many import reduce_many
    from onnxbench.core.compare import Tolerance
    from onnxbench.core.files import is_plural
    from onnxbench.core.graph import GraphView
    from onnxbench.core.slimming import load_slim
    from onnxbench.reducers.journal import beside
    from onnxbench.reducers.request import Budget, Request
    from onnxbench.reducers.shrinking import choose_passes
    from onnxbench.render import console, html, markdown
    from onnxbench.render.progress import Progress

    if git_bisect and not prove:
        raise _usage("--git-bisect is for --prove")
    if no_explain and (versions or workaround):
        raise _usage("--versions and --workaround explain the failure, which --no-explain leaves out")
    _parse.refuse_json_beside_stream(json, output)
    out = console.console(color)
    if is_plural(models):
        return reduce_many(context, models, json, out)
    isolate.warm_up(isolate.HERE)
    (model,) = models
    progress = Progress(quiet, verbose)

    def request() -> Request:
        shrinking = choose_passes(None if passes is None else passes.split(",") if passes else [], skip_pass or ())
        suspect = _suspect(runtime, check, fail_code, fail_regex, fail_any)
        limits = _parse.limits(timeout, max_memory)
        loaded = load_slim(model)
        view = GraphView(loaded.proto, loaded.proto.graph)
        told_inputs = inputs is not None or bool(shape or dim or range_)
        feeds = _feeds(suspect, told_inputs, lambda: _parse.feeds(view, inputs, shape, dim, range_, seed))
        trusted, told = _trusted(suspect, against or [], feeds, limits)
        folder = None if prove or localize_only else _bundle(model, bundle, output, resume)
        return Request(
            model=loaded,
            feeds=feeds,
            suspect=suspect,
            trusted=trusted,
            expected=_expected(expected, told, view),
            slower_than=slower_than,
            tolerance=Tolerance(rtol, atol),
            limits=limits,
            jobs=jobs,
            budget=Budget(time_limit, max_checks),
            within=_chosen(within, view),
            localize_only=localize_only,
            only_prove=prove,
            passes=[entry.name for entry in shrinking],
            anonymize=anonymize,
            bundle=folder,
            journal=beside(folder) if folder is not None else None,
            resume=resume,
            output=output,
            releases=_releases(suspect, versions, progress.step),
            explain=not no_explain,
            workaround=workaround,
            force=force or resume,
            allow_lossy=allow_lossy,
            documents={
                "REPORT.md": markdown.reduction,
                "report.html": html.reduction,
                "report.json": lambda finding: _json(finding.report),
            },
            progress=progress.step,
            tick=progress.state,
        )

    return _run(request, progress.close, json, out, git_bisect)


def _run(request: Callable[[], Request], close: Callable[[], None], json: bool, out: Console, git_bisect: bool) -> int:
    from onnxbench.errors import BenchError
    from onnxbench.reducers.reduce import reduce as run_reduction

    try:
        asked = request()
        report = run_reduction(asked)
    except BenchError as error:
        if not git_bisect:
            raise
        typer.echo(f"cannot tell: error[{error.code}]: {error.message}", err=True)
        return 125
    finally:
        close()
    code = _finish(report, asked, json, out)
    return {0: 1, 1: 0}.get(code, code) if git_bisect else code


def _suspect(runtime: str, check: str | None, codes: list[int] | None, pattern: str | None, anything: bool) -> Runtime:
    from onnxbench.runtimes.command import Command, Criterion
    from onnxbench.runtimes.find import find

    if check is None:
        if codes or pattern is not None or anything:
            raise _usage("--fail-code, --fail-regex and --fail-any are for --check")
        return find(runtime)
    if anything and (codes or pattern is not None):
        raise _usage("--fail-any takes every failure; leave out --fail-code and --fail-regex")
    if runtime != "onnxruntime":
        raise _usage("--check tells what fails, and so does -r: give one of them")
    return Command(check, Criterion(tuple(codes or ()), pattern or "", anything))


def _releases(suspect: Runtime, versions: str | None, tell: Callable[[str], None]) -> list[Runtime]:
    from onnxbench.runtimes.environments import environment

    asked = [text for text in (versions or "").split(",") if text]
    return [suspect.in_environment(environment(text, suspect.package, tell)) for text in asked]


def _usage(message: str) -> Exception:
    from onnxbench.errors import UsageError

    return UsageError("OB201", message, hint="onnxbench reduce --help")


def _feeds(suspect: Runtime, told: bool, read: Callable[[], dict[str, Value]]) -> dict[str, Value]:
    """The inputs; none if nothing is told of them, they cannot be made up, and the suspect needs none."""
    from onnxbench.errors import BenchError

    try:
        return read()
    except BenchError:
        if told or suspect.needs_feeds:
            raise
        return {}


def _trusted(
    suspect: Runtime, against: Sequence[str], feeds: dict[str, Value], limits: Limits
) -> tuple[list[Runtime], dict[str, Value] | None]:
    """Who is right, and what another model gives, if one is named."""
    from onnxbench.core.model import load
    from onnxbench.errors import ModelError
    from onnxbench.reducers.trusted import trusted_by_default
    from onnxbench.runtimes.find import find

    models = [text for text in against if text.endswith(".onnx") and Path(text).is_file()]
    named = [suspect if text == "itself" else find(text) for text in against if text not in models]
    told: dict[str, Value] | None = None
    for text in models:
        plain = find("onnxruntime:opt=disable")
        outcome = plain.run(load(text), feeds, limits=limits)
        if not outcome.ok:
            raise ModelError("OB308", f"{text} tells nothing of what is right: it {outcome.sentence()}")
        told = outcome.outputs
    return named or trusted_by_default(suspect), told


def _expected(text: str | None, told: dict[str, Value] | None, view: GraphView) -> dict[str, Value] | None:
    from onnxbench.core.expected import read_expected

    if text is None:
        return told
    if told is not None:
        raise _usage("--expected gives right outputs, and so does another model: give one of them")
    return read_expected(text, view)


def _chosen(within: str | None, view: GraphView) -> Callable[[GraphView], list[Node]] | None:
    from onnxbench.core.select import select

    if within is None:
        return None
    chosen = {node.index for node in select(view, within).node_set(view)}
    return lambda seen: [node for node in seen.order if node.index in chosen]


def _bundle(model: str, bundle: Path | None, output: str | None, resume: bool) -> Path | None:
    """Where the bundle goes: MODEL.repro in the working folder, with a number if that is there, unless a search goes on."""
    from onnxbench.reducers.bundle import numbered

    if bundle is not None or output is not None:
        if resume and bundle is None:
            raise _usage("--resume goes on with a bundle's search: give --bundle")
        return bundle
    stem = "model" if model == "-" else Path(model).stem
    places = numbered(Path(f"{stem}.repro"))
    if resume:
        return next(places)
    return next(place for place in places if not os.path.lexists(place))  # unlike Path.exists, for any name


def _finish(report: Reduction, request: Request, json: bool, out: Console) -> int:
    from onnxbench.errors import AnswerIsNo
    from onnxbench.render import console

    if report.status == "not-reproduced":
        verdict = AnswerIsNo("OB101", console.not_reproduced(report), hint=_not_reproduced_hint(request))
        if json:
            typer.echo(json_format.dumps({**report.to_dict(), "error": verdict.to_dict()}))
        else:
            typer.echo(f"error[OB101]: it does not fail: {verdict.message}\n  hint: {verdict.hint}", err=True)
    elif json:
        typer.echo(_json(report), nl=False)
    elif request.output != "-":
        console.print_reduction(report, out)
    return report.exit_code


def _not_reproduced_hint(request: Request) -> str:
    if request.suspect.decides:
        return "exit code 0 of the command says that the failure is gone, any other but 125 that it is there"
    judge = request.trusted[0] if request.trusted else None
    if judge is None or judge.name != "reference":
        return (
            "--inputs feeds the values that failed; --against names another runtime to compare with, such as reference"
        )
    return "--inputs feeds the values that failed"


def _json(report: Reduction) -> str:
    return json_format.dumps(report.to_dict(), indent=1, allow_nan=False) + "\n"
