"""`onnxbench inspect`."""

from __future__ import annotations

import json as json_format
import shlex
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from onnxbench.commands import _options as options

if TYPE_CHECKING:
    from rich.console import Console

    from onnxbench.core.model import Model
    from onnxbench.core.shapes import Shapes
    from onnxbench.inspecting.inspection import Inspection
    from onnxbench.inspecting.zoo import Zoo
    from onnxbench.render.progress import Progress
    from onnxbench.runtimes.base import Limits

ASK = "What to ask"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("inspect", short_help="Say what is in a model, what it costs, what is wrong with it.")(inspect)


def inspect(
    models: Annotated[list[str], typer.Argument(metavar="MODEL...", help="Model files, folders, patterns, or -.")],
    shape: options.Shapes = None,
    dim: options.Dims = None,
    depth: Annotated[
        int, typer.Option("--depth", metavar="N", min=0, rich_help_panel=ASK, help="Levels of the block view.")
    ] = 2,
    find: Annotated[
        str | None,
        typer.Option("--find", metavar="SELECTION", rich_help_panel=ASK, help="What a selection selects."),
    ] = None,
    node: Annotated[
        str | None, typer.Option("--node", metavar="NAME", rich_help_panel=ASK, help="Everything about one node.")
    ] = None,
    value: Annotated[
        str | None,
        typer.Option("--value", metavar="NAME", rich_help_panel=ASK, help="Who makes a value, who reads it, its type."),
    ] = None,
    text: Annotated[
        bool, typer.Option("--text", rich_help_panel=ASK, help="The model as ONNX text, large tensors left out.")
    ] = False,
    diff: Annotated[
        str | None,
        typer.Option("--diff", metavar="OTHER", rich_help_panel=ASK, help="What is different in another model."),
    ] = None,
    fail_on: Annotated[
        str | None,
        typer.Option(
            "--fail-on", metavar="CODE,...", rich_help_panel=ASK, help="Exit with 1 if such a problem is there."
        ),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", rich_help_panel=options.SHOW, help="Every row, not only the first ones.")
    ] = False,
    timeout: options.Timeout = 60.0,
    max_memory: options.MaxMemory = "80%",
    json: options.Json = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
    color: options.Color = "auto",
) -> int:
    """Say what is in a model, what it costs, and what is wrong with it.

    Reads no external weights, and works on what ONNX's checker refuses. Several models, or a folder, give a table.
    """
    from onnxbench import isolate

    isolate.warm_up()  # before anything heavy is imported here
    from onnxbench.commands import _inspect_options, _parse
    from onnxbench.core.files import find_models, is_plural
    from onnxbench.render.console import console
    from onnxbench.render.progress import Progress

    asked = [
        name
        for name, given in (("--find", find), ("--node", node), ("--value", value), ("--diff", diff))
        if given is not None
    ]
    asked += ["--text"] if text else []
    plural = is_plural(models)
    _inspect_options.refuse_mixture(asked, plural, fail_on)
    ask = _Ask(
        _parse.sizes(shape, dim),
        depth,
        _parse.limits(timeout, max_memory),
        _inspect_options.problem_codes(fail_on),
        everything,
        json,
        console(color),
    )
    if plural:
        return _table(ask, find_models(models), Progress(quiet, verbose))
    if asked:
        return _answer(ask, models[0], find=find, node=node, value=value, diff=diff)
    return _whole(ask, models[0])


@dataclass(frozen=True)
class _Ask:
    sizes: tuple[dict[str, tuple[int, ...]], dict[str, int]]
    depth: int
    limits: Limits
    fail_on: tuple[str, ...]
    everything: bool
    json: bool
    out: Console
    taken: set[str] = field(default_factory=set)

    def inspect(self, model: Model) -> Inspection:
        from onnxbench.inspecting.inspect import inspect as run

        return run(
            model,
            dims=self.sizes[1],
            input_shapes=self.sizes[0],
            depth=self.depth,
            timeout=self.sixth,
            memory=self.limits.memory,
            fail_on=self.fail_on,
        )

    def inspect_as_far_as_it_fits(self, model: Model) -> Inspection:
        """One of many models: sizes for what it does not have are for others; what it has is noted in `taken`."""
        from onnxbench.core.sizes import symbols

        shapes, dims = self.sizes
        inputs, known = (
            {value.name for value in model.proto.graph.input},
            symbols(value.type for value in model.proto.graph.input),
        )
        fitting = (
            {name: shape for name, shape in shapes.items() if name in inputs},
            {name: size for name, size in dims.items() if name in known},
        )
        self.taken.update(*fitting)
        return replace(self, sizes=fitting).inspect(model)

    def shapes(self, model: Model) -> Shapes:
        from onnxbench.core.shapes import propagate

        return propagate(model, dims=self.sizes[1], shapes=self.sizes[0], timeout=self.sixth, memory=self.limits.memory)

    @property
    def sixth(self) -> float | None:
        """Seconds for inference, and for the checker: together a third of what a run may take."""
        return self.limits.timeout / 6 if self.limits.timeout is not None else None

    def say(self, data: dict[str, Any]) -> None:
        typer.echo(json_format.dumps(data, indent=1, allow_nan=False))


def _whole(ask: _Ask, path: str) -> int:
    from onnxbench.core.model import load
    from onnxbench.render.inspection import print_inspection

    report = ask.inspect(load(path))
    verdict = _verdict(report)
    if ask.json:
        ask.say({**report.to_dict(), **({"error": verdict} if verdict else {})})
    else:
        print_inspection(report, ask.out, everything=ask.everything)
        if verdict:
            _say(verdict)
    return report.exit_code


def _say(verdict: dict[str, str]) -> None:
    from onnxbench.errors import escape

    typer.echo(f"error[{verdict['code']}]: {escape(verdict['message'])}", err=True)


def _verdict(report: Inspection) -> dict[str, str] | None:
    if report.invalid:
        first = report.invalid[0]
        message = f"{report.model} is invalid: {first.code}, {first.place}: {first.message}"
        return {"code": "OB305", "message": message, "hint": first.hint}
    if report.failing:
        codes = ", ".join(dict.fromkeys(problem.code for problem in report.failing))
        return {"code": "OB105", "message": f"{report.model} has problems that --fail-on names: {codes}", "hint": ""}
    return None


def _table(ask: _Ask, paths: list[str], progress: Progress) -> int:
    from onnxbench.inspecting.zoo import inspect_all
    from onnxbench.render.zoo import print_zoo

    def tell(done: int, total: int, path: str) -> None:
        filled = 20 * done // total
        progress.tick(f"[{'#' * filled}{'.' * (20 - filled)}] {done + 1} of {total}: {path}")

    zoo = inspect_all(paths, ask.inspect_as_far_as_it_fits, tell)
    progress.close()
    verdict = _zoo_verdict(zoo) or _untaken(ask, zoo)
    if ask.json:
        ask.say({**zoo.to_dict(), **({"error": verdict} if verdict else {})})
    else:
        print_zoo(zoo, ask.out, everything=ask.everything)
        if verdict:
            _say(verdict)
    return zoo.exit_code or (3 if verdict else 0)


def _zoo_verdict(zoo: Zoo) -> dict[str, str] | None:
    if not zoo.exit_code:
        return None
    wrong = [model for model in zoo.models if model.exit_code == zoo.exit_code]
    first = wrong[0].path or "standard input"
    code, what = {
        1: ("OB105", "have problems that --fail-on names"),
        2: ("OB206", "do not take the sizes that were given"),
    }.get(zoo.exit_code, ("OB305", "are invalid, or cannot be read"))
    return {"code": code, "message": f"{len(wrong)} of {len(zoo.models)} models {what}, first {first}", "hint": ""}


def _untaken(ask: _Ask, zoo: Zoo) -> dict[str, str] | None:
    """A size that is for none of the models is a slip of the pen."""
    from onnxbench.core.nearest import not_found
    from onnxbench.inspecting.header import Interface

    inputs: list[Interface] = [value for report in zoo.shown for value in report.header.inputs]
    symbols = {dim for value in inputs for dim in value.dims or () if isinstance(dim, str)}
    known = (("input", ask.sizes[0], {value.name for value in inputs}), ("symbolic dim", ask.sizes[1], symbols))
    for kind, given, there in known:
        for name in given:
            if name not in ask.taken:
                return not_found(kind, name, sorted(there), where="these models").to_dict()
    return None


def _answer(ask: _Ask, path: str, *, find: str | None, node: str | None, value: str | None, diff: str | None) -> int:
    from onnxbench.core.graph import GraphView
    from onnxbench.core.model import load
    from onnxbench.inspecting import look
    from onnxbench.render.look import print_diff, print_look

    model = load(path)
    if diff is not None:
        from onnxbench.inspecting.diff import diff as compare

        difference = compare(model, load(diff), ask.shapes)
        message = f"{difference.before} and {difference.after} differ"
        verdict = {} if difference.same else {"error": {"code": "OB106", "message": message, "hint": ""}}
        if ask.json:
            ask.say({**difference.to_dict(), **verdict})
        else:
            print_diff(difference, ask.out, everything=ask.everything)
            if verdict:
                _say(verdict["error"])
        return difference.exit_code
    if find is None and node is None and value is None:
        return _text(ask, model, path)
    view, shapes = GraphView(model.proto, model.proto.graph), ask.shapes(model)
    if find is not None:
        found = look.look_for(view, shapes, find)
    elif node is not None:
        found = look.look_at_node_named(view, shapes, node)
    else:
        found = look.look_at_value(view, shapes, value or "")
    if ask.json:
        ask.say(found.to_dict())
    else:
        print_look(found, ask.out, everything=ask.everything)
    return 0


def _text(ask: _Ask, model: Model, path: str) -> int:
    from onnxbench.errors import ModelError, escape
    from onnxbench.inspecting.elided import elided_text

    text = elided_text(model.proto, timeout=ask.limits.timeout, memory=ask.limits.memory)
    if text is None:
        hint = f"onnxbench inspect {shlex.quote(path)} says what is wrong with it, --find '?*' lists what is in it"
        raise ModelError("OB305", f"ONNX cannot print {model.label}", hint=hint)
    if ask.json:
        ask.say({"schema": "onnxbench.text/1", "text": text})
    else:
        if count := len(model.proto.graph.sparse_initializer):
            typer.echo(f"note: ONNX text cannot show sparse initializers, and there are {count}", err=True)
        typer.echo("\n".join(escape(line) for line in text.splitlines()))  # names must not steer a terminal
    return 0
