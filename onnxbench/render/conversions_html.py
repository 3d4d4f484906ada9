"""The report on conversions as one HTML file: no script, nothing from the net, light and dark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from onnxbench.render import svg
from onnxbench.render.conversions_markdown import difference, refusal
from onnxbench.render.converting import cells, totals
from onnxbench.render.html import document

if TYPE_CHECKING:
    from onnxbench.converters.summary import Row, Summary

_MOST = 50  # nodes of one model


def page(summary: Summary) -> str:
    """The page of many conversions, or of one."""
    parts = [
        "<h1>Conversion</h1>",
        "<ul>" + "".join(f"<li>{svg.text(line)}</li>" for line in totals(summary)) + "</ul>",
        _table("Models", ["model", "state", "opset", "rewritten", "seconds", "why"], [_row(r) for r in summary.rows]),
        _table(
            "Refused, by operator and reason",
            ["operator", "step", "reason", "nodes", "models"],
            [
                [
                    *(_code(entry["op"]), svg.text(entry["step"]), svg.text(entry["reason"]), str(entry["nodes"])),
                    "<br>".join(_code(model) for model in entry["models"][:_MOST]),
                ]
                for entry in summary.by_refusal()
            ],
        ),
        _table("Steps", ["step", "nodes"], [[svg.text(step), str(n)] for step, n in summary.by_step().items()]),
        _table(
            "Other files",
            ["file", "state", "why"],
            [[_code(f.place), f.state, svg.text(f.error["message"] if f.error else "")] for f in summary.files],
        ),
    ]
    return document("Conversion", parts)


def _row(row: Row) -> list[str]:
    model, state, opset, rewritten, seconds, why = (svg.text(cell) for cell in cells(row))
    mark = f'<b class="bad">{state}</b>' if row.code else state
    return [f"<code>{model}</code>", mark, opset, rewritten, seconds, why + _details(row)]


def _details(row: Row) -> str:
    """Steps, refused and differing nodes and notes of one model, folded away."""
    refused = [f"refused {refusal(entry)}" for entry in row.refusals[:_MOST]]
    differing = [f"differs: {difference(entry)}" for entry in row.differing[:_MOST]]
    steps = [f"{step}: {count}" for step, count in row.by_step.items()]
    same, certified = row.certified
    proven = [f"nodes compared alone: {same} of {certified} the same"] if certified else []
    lines = [*refused, *differing, *steps, *proven, *row.report.get("notes", [])]
    if not lines:
        return ""
    items = "".join(f"<li>{svg.text(line)}</li>" for line in lines)
    return f"<details><summary>{len(lines)} more</summary><ul>{items}</ul></details>"


def _table(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A section with a table of cells that are HTML already."""
    if not rows:
        return ""
    first = "".join(f"<th>{name}</th>" for name in head)
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>\n" for row in rows)
    return f"<h2>{title}</h2>\n<table><tr>{first}</tr>\n{body}</table>"


def _code(text: str) -> str:
    return f"<code>{svg.text(text)}</code>"
