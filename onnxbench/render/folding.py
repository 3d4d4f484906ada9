"""A fold in text: counts and verification in a line, what each pass did, each node with its reason if that is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onnxbench.errors import escape
from onnxbench.render.progress import size

if TYPE_CHECKING:
    from rich.console import Console

    from onnxbench.folding.report import Folding

_VERBS = {
    "input": "removed input",
    "node": "removed",
    "rewritten": "rewritten",
    "initializer": "removed initializer",
    "function": "removed function",
}


def print_folding(report: Folding, out: Console, *, explain: bool) -> None:
    """What was done to one model."""
    from rich.text import Text

    counts = f"{report.nodes_before} nodes -> {report.nodes_after}"
    if report.all_nodes_before != report.nodes_before:
        counts += f" ({report.all_nodes_before} -> {report.all_nodes_after} with bodies and functions)"
    sizes = f"{size(report.bytes_before)} -> {size(report.bytes_after)}"
    out.print(Text(f"{escape(report.model)}: ") + Text(counts, "bold green") + Text(f", {sizes}"))
    for rule, count in report.by_rule().items():
        out.print(f"  {rule:<12} {count}")
    out.print(f"  {verified(report)}")
    for note in report.notes:
        out.print(f"  note: {escape(note)}")
    if explain:
        for removal in report.removals:
            verb = _VERBS.get(removal.kind, removal.kind)
            op = f" {removal.op}" if removal.op and removal.op not in removal.name else ""
            out.print(f"  {verb} {escape(removal.name)}{escape(op)}: {escape(removal.reason)} ({removal.rule})")
    if report.output:
        out.print(f"  written to {escape(report.output)}")


def verified(report: Folding) -> str:
    """How sure it is that nothing else has changed."""
    match report.state:
        case "unchanged":
            return "nothing to fold"
        case "verified":
            pieces = f", and {report.certificates} constants computed again" if report.certificates else ""
            return f"verified: the same outputs in {report.runs} run{'s' * (report.runs != 1)}{pieces}"
        case "certified":
            return f"certified: {report.certificates} constants computed again are the same; {escape(report.reason)}"
    return f"not verified: {escape(report.reason)}"
