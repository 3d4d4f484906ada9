"""`onnxbench convert --dry-run` and `--explain`: what would be done."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import typer

from onnxbench.commands._targets import Target
from onnxbench.errors import AnswerIsNo, escape

if TYPE_CHECKING:
    from rich.console import Console

    from onnxbench.converters.options import ConvertOptions
    from onnxbench.converters.plan import Plan
    from onnxbench.converters.survey import Look
    from onnxbench.render.progress import Progress


@dataclass(frozen=True, slots=True)
class Planned:
    """What would become of one model: a plan, or a reason to leave it as it is."""

    model: str
    plan: Plan | None = None
    reason: str = ""

    @property
    def exit_code(self) -> int:
        return self.plan.exit_code if self.plan is not None else 0

    @property
    def verdict(self) -> AnswerIsNo | None:
        """What stops it."""
        from onnxbench.converters.verdict import others, way_out

        if self.plan is None or not (refused := self.plan.refused):
            return None
        first = refused[0]
        place = f" in {first.where}" if first.where else ""
        step = f"{', '.join(first.steps)}: " if first.steps else ""
        also = others(len(refused) - 1)
        fact = f"{self.model} cannot be converted: {first.node}{place}: {step}{first.reason}{also}"
        return AnswerIsNo(
            "OB107", fact, hint=way_out(self.model, [(row.where, row.reason) for row in refused], self.plan.furthest)
        )

    def to_dict(self) -> dict[str, Any]:
        if self.plan is None:
            return {"schema": "onnxbench.convert-plan/1", "model": self.model, "nodes": [], "reason": self.reason}
        stopped = self.verdict
        return {**self.plan.to_dict(), **({"error": stopped.to_dict()} if stopped is not None else {})}


def plan(
    models: Sequence[str],
    asked: ConvertOptions,
    explain: Sequence[str],
    out: Console,
    progress: Progress,
    *,
    exact: bool,
    from_: int | None,
    json: bool,
) -> int:
    """Say what would become of each model, or of some nodes of one."""
    from onnxbench.commands._each import each
    from onnxbench.converters.hidden import search, told
    from onnxbench.converters.plan import plan_model
    from onnxbench.converters.survey import look
    from onnxbench.core.files import is_plural
    from onnxbench.core.model import load
    from onnxbench.render.converting import print_explained, print_plan

    plural = is_plural(models)
    found = {text: search(text) for text in models}
    raised = {path: is_plural([text]) and not exact for text, led in found.items() for path in led.models}
    if left_out := told([path for led in found.values() for path in led.hidden]):
        typer.echo(escape(left_out), err=True)

    def work(job: Target) -> Planned:
        progress.step(f"planning {job.source}")
        try:
            if plural or asked.at_least:
                reason = _stays(look(job.source), asked, from_, raised=asked.at_least or raised[job.source])
                if reason:
                    return Planned(escape(job.source), reason=reason)
            made = plan_model(load(job.source), asked, explain)
        finally:
            progress.close()
        return Planned(made.model, made)

    def show(planned: Planned) -> None:
        if planned.plan is None:
            out.print(f"{planned.model}: stays as it is: {planned.reason}")
            return
        (print_explained if explain else print_plan)(planned.plan, out)
        if (stopped := planned.verdict) is not None:
            typer.echo(f"error[{stopped.code}]: {escape(stopped.message)}", err=True)

    jobs = [Target(path, "", False) for path in raised]
    return each(jobs, work, show, plural=plural, json=json, schema="onnxbench.convert-plans/1")


def _stays(look: Look, asked: ConvertOptions, from_: int | None, *, raised: bool) -> str:
    """Why a model would not be converted; empty if it would be, or cannot be read."""
    from onnxbench.converters.survey import opset_of

    if look.error is not None:
        return ""
    if from_ is not None and opset_of(look) != from_:
        return f"it is not at opset {from_}"
    return look.stays(asked.targets) if raised and not asked.expand and asked.ir is None else ""
