"""The report on conversions as Markdown."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from onnxbench.errors import escape
from onnxbench.render.converting import cells, counted, totals

if TYPE_CHECKING:
    from onnxbench.converters.summary import Row, Summary

_MOST = 50  # refusals of one model


def page(summary: Summary) -> str:
    """The page of many conversions, or of one."""
    sections = [
        ["# Conversion", "", *(f"- {prose(line)}" for line in totals(summary))],
        _table(
            "## Models", ["model", "state", "opset", "rewritten", "seconds", "why"], [cells(r) for r in summary.rows]
        ),
        _refusals(summary),
        _table("## Steps", ["step", "nodes"], [(step, str(count)) for step, count in summary.by_step().items()]),
        *(_model(row) for row in summary.rows),
        _table(
            "## Other files",
            ["file", "state", "why"],
            [(f.place, f.state, f.error["message"] if f.error else "") for f in summary.files],
        ),
    ]
    return "\n\n".join("\n".join(section) for section in sections if section) + "\n"


def _refusals(summary: Summary) -> list[str]:
    rows = [
        (entry["op"], entry["step"], entry["reason"], str(entry["nodes"]), counted(len(entry["models"]), "model"))
        for entry in summary.by_refusal()
    ]
    return _table("## Refused, by operator and reason", ["operator", "step", "reason", "nodes", "in"], rows)


def _model(row: Row) -> list[str]:
    """What there is to say of one model beyond its row."""
    lines = [
        *(f"- refused {prose(refusal(entry))}" for entry in row.refusals[:_MOST]),
        *([f"- and {len(row.refusals) - _MOST} more"] if len(row.refusals) > _MOST else []),
        *(f"- differs: {prose(difference(entry))}" for entry in row.differing),
        *(f"- {prose(step)}: {count}" for step, count in row.by_step.items()),
        *(f"- note: {prose(note)}" for note in row.report.get("notes", [])),
    ]
    return [f"### {prose(row.model)}", "", *lines] if lines else []


def refusal(entry: dict[str, str]) -> str:
    """A node that has no form in the target, the step that it cannot take, and why."""
    place = f" in {entry['where']}" if entry["where"] else ""
    return f"{entry['node']}{place}: {entry['step']}: {entry['reason']}"


def difference(entry: dict[str, str]) -> str:
    """A node that gives something else now, and how."""
    place = f" in {entry['where']}" if entry["where"] else ""
    return f"{entry['node']}{place}: {entry['reason']}"


def _table(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    if not rows:
        return []
    lines = ["| " + " | ".join(prose(cell) for cell in row) + " |" for row in rows]
    return [title, "", "| " + " | ".join(head) + " |", "|" + "---|" * len(head), *lines]


def prose(text: str) -> str:
    """Text that is neither Markdown nor HTML, whatever it holds."""
    return re.sub(r"([\\`*_\[\]<>|#])", r"\\\1", escape(text))
