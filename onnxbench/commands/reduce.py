"""`onnxbench reduce`."""

from __future__ import annotations

import json as json_format
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from onnxbench.commands import _options as options

if TYPE_CHECKING:
    from rich.console import Console

    from onnxbench.reducers.request import Request
    from onnxbench.reducers.result import Reduction

#: The panel of `--help` for the shrinking passes.
SHRINK = "How to shrink"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("reduce", short_help="Find the few nodes at fault, and hand back a reproducer.")(reduce)


def reduce(
    model: options.Source,
    runtime: Annotated[
        str,
        typer.Option("-r", "--runtime", metavar="SUSPECT", rich_help_panel=options.RUN, help="The runtime that fails."),
    ] = "onnxruntime",
    against: Annotated[
        list[str] | None,
        typer.Option(
            "--against",
            metavar="TRUSTED",
            rich_help_panel=options.RUN,
            help="Who is right (default: the suspect without optimizations, then the reference).",
        ),
    ] = None,
    within: Annotated[
        str | None,
        typer.Option(
            "--within",
            metavar="SELECTION",
            rich_help_panel=options.RUN,
            help="Search only here: scope=/layer3, op=Conv, ...",
        ),
    ] = None,
    inputs: options.Inputs = None,
    shape: options.Shapes = None,
    dim: options.Dims = None,
    range_: options.Ranges = None,
    seed: options.Seed = 0,
    rtol: options.Rtol = None,
    atol: options.Atol = None,
    timeout: options.Timeout = 60.0,
    max_memory: options.MaxMemory = "80%",
    passes: Annotated[
        str | None,
        typer.Option("--passes", metavar="NAME,...", rich_help_panel=SHRINK, help="Shrink by these passes only."),
    ] = None,
    skip_pass: Annotated[
        list[str] | None,
        typer.Option("--skip-pass", metavar="NAME", rich_help_panel=SHRINK, help="Shrink without this pass."),
    ] = None,
    list_passes: Annotated[
        bool,
        typer.Option(
            "--list-passes",
            rich_help_panel=SHRINK,
            callback=lambda ctx, given: _list_passes(ctx) if given else given,
            help="Say what the passes are, and end.",
        ),
    ] = False,
    anonymize: Annotated[
        bool,
        typer.Option(
            "--anonymize",
            rich_help_panel=SHRINK,
            help="Drop names, docs and values that the failure does not need.",
        ),
    ] = False,
    bundle: options.Folder = None,
    output: options.Output = None,
    force: options.Force = False,
    allow_lossy: options.AllowLossy = False,
    json: Annotated[
        bool,  # read before --list-passes, which answers at once
        typer.Option("--json", is_eager=True, rich_help_panel=options.SHOW, help="Print one JSON object."),
    ] = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
    color: options.Color = "auto",
) -> int:
    """Reduce a failing model to the fewest nodes that still fail the same way.

    Takes wrong numbers (against a trusted runtime), load errors, run errors, crashes and hangs. Writes a folder with
    the reduced model, its inputs, a report, and repro.py, which fails again by itself.
    """
    from onnxbench.commands import _parse
    from onnxbench.core.compare import Tolerance
    from onnxbench.core.graph import GraphView
    from onnxbench.core.model import load
    from onnxbench.core.select import select
    from onnxbench.reducers.reduce import reduce as run_reduction
    from onnxbench.reducers.request import Request
    from onnxbench.reducers.shrinking import choose_passes
    from onnxbench.reducers.trusted import trusted_by_default
    from onnxbench.render import console, markdown
    from onnxbench.runtimes.find import find

    _parse.refuse_json_beside_stream(json, output)
    out = console.console(color)
    chosen_passes = choose_passes(passes.split(",") if passes is not None else None, skip_pass or ())
    suspect = find(runtime)
    trusted = [find(text) for text in against] if against else trusted_by_default(suspect)
    loaded = load(model)
    view = GraphView(loaded.proto, loaded.proto.graph)
    folder = bundle or (_default_bundle(model) if output is None else None)
    chosen = {node.index for node in select(view, within).node_set(view)} if within is not None else set()
    progress = console.Progress(quiet, verbose)
    request = Request(
        model=loaded,
        feeds=_parse.feeds(view, inputs, shape, dim, range_, seed),
        suspect=suspect,
        trusted=trusted,
        tolerance=Tolerance(rtol, atol),
        limits=_parse.limits(timeout, max_memory),
        within=(lambda v: [node for node in v.order if node.index in chosen]) if within is not None else None,
        passes=[entry.name for entry in chosen_passes],
        anonymize=anonymize,
        bundle=folder,
        output=output,
        force=force,
        allow_lossy=allow_lossy,
        documents={"REPORT.md": markdown.reduction, "report.json": lambda report, _: _json(report)},
        progress=progress.step,
        tick=progress.tick,
    )
    try:
        report = run_reduction(request)
    finally:
        progress.close()
    return _finish(report, request, json, out)


def _list_passes(context: typer.Context) -> None:
    """Print the passes in their order, and end."""
    from onnxbench.reducers.passes import catalogue

    passes = list(catalogue().values())
    if context.params.get("json"):
        rows = [{"name": entry.name, "sentence": entry.sentence} for entry in passes]
        typer.echo(json_format.dumps({"schema": "onnxbench.passes/1", "passes": rows}))
    else:
        typer.echo("\n".join(f"{entry.name:<14}{entry.sentence}" for entry in passes))
    raise typer.Exit


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
    judge = request.trusted[0] if request.trusted else None
    if judge is None or judge.name != "reference":
        return (
            "--inputs feeds the values that failed; --against names another runtime to compare with, such as reference"
        )
    return "--inputs feeds the values that failed"


def _json(report: Reduction) -> str:
    return json_format.dumps(report.to_dict(), indent=1, allow_nan=False) + "\n"


def _default_bundle(model: str) -> Path:
    """MODEL.repro in the working folder; with a number if that is there, for nobody asked for that very name."""
    from onnxbench.reducers.bundle import numbered

    stem = "model" if model == "-" else Path(model).stem
    places = numbered(Path(f"{stem}.repro"))
    return next(place for place in places if not os.path.lexists(place))  # unlike Path.exists, for any name
