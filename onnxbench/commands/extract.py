"""`onnxbench extract`."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from onnxbench.commands import _options as options
from onnxbench.errors import UsageError

if TYPE_CHECKING:
    from onnx import TypeProto

    from onnxbench.commands._targets import Target
    from onnxbench.core.model import Model
    from onnxbench.extracting.recorder import Feeds
    from onnxbench.extracting.report import Extraction
    from onnxbench.extracting.request import ExtractRequest

WHAT, BLOCK = "Between values", "Or a block of nodes"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("extract", short_help="Cut a part out, as a valid model of its own.")(extract)


def extract(
    models: options.Sources,
    to: Annotated[
        list[str] | None,
        typer.Option("--to", metavar="SELECTION", rich_help_panel=WHAT, help="Where it ends: values, or nodes."),
    ] = None,
    from_: Annotated[
        list[str] | None,
        typer.Option(
            "--from", metavar="SELECTION", rich_help_panel=WHAT, help="Where it starts; without, nothing is cut off."
        ),
    ] = None,
    auto_inputs: Annotated[
        bool,
        typer.Option("--auto-inputs", rich_help_panel=WHAT, help="Add inputs that are needed and not listed."),
    ] = False,
    node: Annotated[
        list[str] | None,
        typer.Option("--node", metavar="SELECTION", rich_help_panel=BLOCK, help="These nodes."),
    ] = None,
    op: Annotated[
        list[str] | None,
        typer.Option("--op", metavar="OPERATOR", rich_help_panel=BLOCK, help="Nodes of an operator."),
    ] = None,
    scope: Annotated[
        list[str] | None,
        typer.Option("--scope", metavar="PREFIX", rich_help_panel=BLOCK, help="Nodes of a block, by its name."),
    ] = None,
    around: Annotated[
        list[str] | None,
        typer.Option("--around", metavar="NODE", rich_help_panel=BLOCK, help="A node with its neighbours."),
    ] = None,
    hops: Annotated[
        int | None,
        typer.Option(
            "--hops", metavar="N", min=0, rich_help_panel=BLOCK, help="How far --around reaches; 1 if not said."
        ),
    ] = None,
    value_type: Annotated[
        list[str] | None,
        typer.Option(
            "--value-type",
            metavar="NAME=TYPE",
            rich_help_panel=options.OUTPUT,
            help="Type of a value that nobody tells: h=float32[1,3].",
        ),
    ] = None,
    weights_as_inputs: Annotated[
        bool,
        typer.Option("--weights-as-inputs", rich_help_panel=options.OUTPUT, help="Make inputs of initializers."),
    ] = False,
    with_data: Annotated[
        bool,
        typer.Option(
            "--with-data",
            rich_help_panel=options.OUTPUT,
            help="Run the model, and write what the piece took and gave beside it, as test_data_set_0/.",
        ),
    ] = False,
    inputs: options.Inputs = None,
    shape: options.Shapes = None,
    dim: options.Dims = None,
    range_: options.Ranges = None,
    seed: options.Seed = 0,
    timeout: options.Timeout = 60.0,
    max_memory: options.MaxMemory = "80%",
    output: options.OutputOrFolder = None,
    in_place: options.InPlace = False,
    dry_run: options.DryRun = False,
    force: options.Force = False,
    allow_lossy: options.AllowLossy = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
    color: options.Color = "auto",
) -> int:
    """Cut a part out of a model, as a valid model of its own with everything it needs.

    Either between values (--from, --to), or a block of nodes (--node, --op, --scope, --around). Values inside branches and loop
    bodies can be named too; what the body captures becomes an input. The model is run only for --with-data, or where
    nothing else tells the type of a value.
    """
    from onnxbench import isolate
    from onnxbench.core.native import BARE

    isolate.warm_up(BARE)  # while everything else is imported
    if with_data:
        isolate.warm_up(isolate.HERE)
    from onnxbench.commands import _parse
    from onnxbench.commands._each import each
    from onnxbench.commands._targets import Target, targets
    from onnxbench.core.files import find_models, is_plural
    from onnxbench.extracting.request import ExtractRequest
    from onnxbench.render.console import console
    from onnxbench.render.extracting import print_extraction
    from onnxbench.render.progress import Progress

    _parse.refuse_json_beside_stream(json, output)
    request = ExtractRequest(
        to=to or (),
        from_=from_ or (),
        nodes=node or (),
        ops=op or (),
        scopes=scope or (),
        around=around or (),
        hops=1 if hops is None else hops,
        auto_inputs=auto_inputs,
        value_types=_types(value_type or []),
        weights_as_inputs=weights_as_inputs,
        with_data=with_data,
        limits=_parse.limits(timeout, max_memory),
    )
    request.validate()
    if hops is not None and not around:
        raise UsageError("OB201", "--hops says how far --around reaches", hint="--around NODE")
    if dry_run:
        jobs = [Target(path, "", False) for path in find_models(models)]
    else:
        jobs = targets(models, output, in_place=in_place, force=force)
    if with_data:
        _refuse_shared_data(jobs)

    def feeds(model: Model) -> Feeds:
        from onnxbench.core.graph import GraphView

        view = GraphView(model.proto, model.proto.graph)
        return _parse.feeds(view, inputs, shape, dim, range_, seed)

    progress = Progress(quiet, verbose)
    out = console(color)

    def work(job: Target) -> Extraction:
        progress.step(f"extracting from {job.source}")
        try:
            return _extract(job, request, feeds, allow_lossy=allow_lossy)
        finally:
            progress.close()

    def show(report: Extraction) -> None:
        if output != "-":
            print_extraction(report, out)

    return each(jobs, work, show, plural=is_plural(models), json=json, schema="onnxbench.extractions/1")


def _types(texts: Sequence[str]) -> dict[str, TypeProto]:
    from onnxbench.core.type_text import parse_type
    from onnxbench.errors import quote

    found: dict[str, TypeProto] = {}
    for text in texts:
        name, equals, kind = text.rpartition("=")  # names may hold `=`, types do not
        if not equals or not name:
            raise UsageError("OB201", f"--value-type {quote(text)} cannot be read", hint="NAME=float32[1,3]")
        found[name] = parse_type(kind)
    return found


def _refuse_shared_data(jobs: Sequence[Target]) -> None:
    """One folder holds the data of one model."""
    if any(job.output == "-" for job in jobs):
        raise UsageError("OB201", "--with-data writes beside the output, and a stream has no folder", hint="-o FILE")
    folders = [Path(job.output).parent for job in jobs if job.output]
    if len(set(folders)) < len(folders):
        raise UsageError(
            "OB201", "--with-data writes one data set into a folder, and several models go there", hint="one by one"
        )


def _refuse_data(job: Target) -> None:
    from onnxbench.extracting.data import Data, refuse_folder

    refuse_folder(Path(job.output).absolute().parent / Data.FOLDER, job.force)


def _extract(job: Target, request: ExtractRequest, feeds: Callable[[Model], Feeds], *, allow_lossy: bool) -> Extraction:
    from onnxbench.core.model import load, save
    from onnxbench.core.saving import refuse_losses, refuse_target
    from onnxbench.errors import escape
    from onnxbench.extracting.embedding import embed_few
    from onnxbench.extracting.extract import extract_model

    model = load(job.source)
    written = job.output not in ("", "-")
    if written:
        refuse_target(Path(job.output).absolute(), job.force)
        if request.with_data:
            _refuse_data(job)
    made = extract_model(model, request, feeds)
    report = made.report
    if written:
        embed_few(made.model, Path(job.output))
    if written and not allow_lossy:
        refuse_losses(made.model.proto, Path(job.output))
    with contextlib.ExitStack() as around:
        if made.data is not None and written:
            folder = Path(job.output).parent / made.data.FOLDER
            around.enter_context(made.data.written(folder.absolute(), made.model))
            report.data = escape(str(folder))
        if job.output:
            save(made.model, job.output, force=job.force, allow_lossy=allow_lossy)
            report.output = escape(job.output) if written else ""
    return report
