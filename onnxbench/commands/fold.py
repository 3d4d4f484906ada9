"""`onnxbench fold`."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from onnxbench.commands import _options as options

if TYPE_CHECKING:
    from onnxbench.commands._targets import Target
    from onnxbench.core.model import Model
    from onnxbench.folding.options import FoldOptions
    from onnxbench.folding.report import Folding
    from onnxbench.verify import Feeds

WHAT = "What to fold"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("fold", short_help="Compute what is constant, remove what does nothing, prove it.")(fold)


def fold(
    models: options.Sources,
    max_size: Annotated[
        str,
        typer.Option("--max-size", metavar="SIZE", rich_help_panel=WHAT, help="Largest constant to leave behind: 10M."),
    ] = "10M",
    freeze_initializers: Annotated[
        bool,
        typer.Option(
            "--freeze-initializers", rich_help_panel=WHAT, help="Make the defaults of overridable initializers final."
        ),
    ] = False,
    fold_qdq: Annotated[
        bool, typer.Option("--fold-qdq", rich_help_panel=WHAT, help="Fold quantized constants too.")
    ] = False,
    pin: Annotated[
        bool, typer.Option("--pin", rich_help_panel=WHAT, help="Write the sizes of --shape and --dim into the model.")
    ] = False,
    skip_pass: Annotated[
        list[str] | None,
        typer.Option("--skip-pass", metavar="NAME", rich_help_panel=WHAT, help="Leave a pass out."),
    ] = None,
    list_passes: Annotated[
        bool,
        typer.Option(
            "--list-passes",
            is_eager=True,
            callback=lambda given: _list() if given else given,
            rich_help_panel=WHAT,
            help="Say what the passes are, and end.",
        ),
    ] = False,
    inputs: options.Inputs = None,
    shape: options.Shapes = None,
    dim: options.Dims = None,
    range_: options.Ranges = None,
    seed: options.Seed = 0,
    timeout: options.Timeout = 60.0,
    max_memory: options.MaxMemory = "80%",
    require_verified: options.RequireVerified = False,
    output: options.OutputOrFolder = None,
    in_place: options.InPlace = False,
    dry_run: options.DryRun = False,
    force: options.Force = False,
    allow_lossy: options.AllowLossy = False,
    explain: Annotated[
        bool, typer.Option("--explain", rich_help_panel=options.SHOW, help="Each removed node, and why.")
    ] = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
    color: options.Color = "auto",
) -> int:
    """Fold a model: fewer nodes, the same numbers, verified before anything is written.

    Random operators, overridable initializers and quantization stay as they are, and so do the names and types of all
    inputs and outputs. Several models, or a folder, go into a folder.
    """
    from onnxbench import isolate

    isolate.warm_up(isolate.HERE)  # while everything else is imported
    from onnxbench.commands import _parse
    from onnxbench.commands._each import each
    from onnxbench.commands._targets import Target, targets
    from onnxbench.core.files import find_models, is_plural
    from onnxbench.render.console import console
    from onnxbench.render.folding import print_folding
    from onnxbench.render.progress import Progress

    _parse.refuse_json_beside_stream(json, output)
    if dry_run:
        jobs = [Target(path, "", False) for path in find_models(models)]
    else:
        jobs = targets(models, output, in_place=in_place, force=force)
    asked = _asked(
        max_size, freeze_initializers, fold_qdq, pin, skip_pass, shape, dim, timeout, max_memory, require_verified
    )
    progress = Progress(quiet, verbose)
    out = console(color)

    def work(job: Target) -> Folding:
        progress.step(f"folding {job.source}")
        wanted = (None, None) if pin else (shape, dim)  # what is pinned, the model says by itself
        feeds = _Feeds(inputs, *wanted, range_, seed)
        try:
            return _fold(job, asked, feeds, require_verified=require_verified, allow_lossy=allow_lossy)
        finally:
            progress.close()

    def show(report: Folding) -> None:
        if output != "-":
            print_folding(report, out, explain=explain)

    return each(jobs, work, show, plural=is_plural(models), json=json, schema="onnxbench.folds/1")


@dataclasses.dataclass(frozen=True)
class _Feeds:
    """What the command line says of inputs."""

    inputs: str | None
    shape: list[str] | None
    dim: list[str] | None
    range: list[str] | None
    seed: int

    def of(self, model: Model) -> Iterable[Feeds]:
        """Inputs for each run of a model.

        Raises:
            NameNotFound: OB303 for an input or symbol that the model has not.
            UsageError: OB206 for sizes that do not fit it: made-up inputs of other sizes would verify something else.
        """
        from onnxbench.commands import _parse
        from onnxbench.core.dims import parse_dims, parse_ranges, parse_shapes
        from onnxbench.core.feeds import refuse_misfits
        from onnxbench.core.graph import GraphView
        from onnxbench.verify import feed_sets

        view = GraphView(model.proto, model.proto.graph)
        if self.inputs is not None:
            return [_parse.feeds(view, self.inputs, self.shape, self.dim, self.range, self.seed)]
        shapes, dims = parse_shapes(self.shape or []), parse_dims(self.dim or [])
        ranges = parse_ranges(self.range or [])
        refuse_misfits(view, shapes, dims, ranges)
        return feed_sets(model, shapes=shapes, dims=dims, ranges=ranges, seed=self.seed)


def _asked(
    max_size: str,
    freeze: bool,
    fold_qdq: bool,
    pin: bool,
    skip: list[str] | None,
    shape: list[str] | None,
    dim: list[str] | None,
    timeout: float,
    max_memory: str,
    whole: bool,
) -> FoldOptions:
    from onnxbench.commands import _parse
    from onnxbench.core.dims import parse_dims, parse_shapes
    from onnxbench.core.nearest import nearest
    from onnxbench.errors import UsageError, quote
    from onnxbench.folding.options import FoldOptions
    from onnxbench.folding.passes import passes

    known = [*(entry.name for entry in passes()), "unused"]
    for name in skip or []:
        if name not in known:
            close = nearest(name, known)
            hint = f"did you mean {close}?" if close else "onnxbench fold --list-passes"
            raise UsageError("OB201", f"fold has no pass {quote(name)}", hint=hint)
    dims = parse_dims(dim or [])
    if pin and not (dims or shape):
        raise UsageError("OB201", "--pin writes sizes into the model: give them by --shape or --dim")
    if pin and any(len(sizes) > 1 for sizes in dims.values()):
        raise UsageError("OB201", "--pin wants one size for each --dim")
    return FoldOptions(
        max_size=_parse.size(max_size, "--max-size"),
        freeze_initializers=freeze,
        fold_qdq=fold_qdq,
        pin=pin,
        shapes=parse_shapes(shape or []) if pin else {},
        dims={name: sizes[0] for name, sizes in dims.items()} if pin else {},
        skip=skip or (),
        whole=whole,
        limits=_parse.limits(timeout, max_memory),
    )


def _fold(job: Target, asked: FoldOptions, feeds: _Feeds, *, require_verified: bool, allow_lossy: bool) -> Folding:
    from onnxbench.core.model import save
    from onnxbench.core.saving import refuse_losses, refuse_target
    from onnxbench.core.slimming import load_slim
    from onnxbench.errors import SafetyStop, escape
    from onnxbench.folding.run import fold_model

    model = load_slim(job.source)
    if job.output not in ("", "-"):
        refuse_target(Path(job.output).absolute(), job.force)
        if not allow_lossy:
            refuse_losses(model.proto, Path(job.output))
    folded, report = fold_model(model, asked, feeds.of)
    if require_verified and report.state not in ("verified", "unchanged"):
        raise SafetyStop("OB501", f"{model.label} was not verified, and nothing was written: {report.reason}")
    if job.output:
        save(folded, job.output, force=job.force, allow_lossy=allow_lossy)
        report.output = escape(job.output) if job.output != "-" else ""
    return report


def _list() -> None:
    from onnxbench.folding.passes import passes

    for entry in passes():
        typer.echo(f"{entry.name:<12} {entry.sentence}")
    typer.echo(f"{'unused':<12} remove what nobody reads any more")
    raise typer.Exit
