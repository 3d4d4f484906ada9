"""An extraction in text: counts, what goes in and comes out, what a reader should know."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from onnxbench.errors import escape
from onnxbench.render.progress import size

if TYPE_CHECKING:
    from rich.console import Console

    from onnxbench.extracting.report import Extraction, Port

#: Inputs, or outputs, that are listed.
_MOST = 30
_SOURCES = {"weight": "a weight", "default": "has a default"}
_TELLERS = {"recorded": "type from a run", "user": "type as given"}


def print_extraction(report: Extraction, out: Console) -> None:
    """What was cut out of one model."""
    from rich.text import Text

    counts = f"{report.nodes_before} nodes -> {report.nodes_after}"
    if (report.all_nodes_before, report.all_nodes_after) != (report.nodes_before, report.nodes_after):
        counts += f" ({report.all_nodes_before} -> {report.all_nodes_after} with bodies and functions)"
    sizes = f"{size(report.bytes_before)} -> {size(report.bytes_after)}"
    out.print(Text(f"{escape(report.model)}: ") + Text(counts, "bold green") + Text(f", {sizes}"))
    if report.where:
        out.print(Text(f"  cut out of {escape(report.where)}"))
    _print_ports("in ", report.inputs, out)
    _print_ports("out", report.outputs, out)
    for note in report.notes:
        out.print(Text(f"  note: {escape(note)}"))
    if report.output:
        out.print(Text(f"  written to {escape(report.output)}"))
    if report.data:
        out.print(Text(f"  data in {escape(report.data)}"))


def _print_ports(word: str, ports: Sequence[Port], out: Console) -> None:
    from rich.text import Text

    for port in ports[:_MOST]:
        facts = [_SOURCES.get(port.source, ""), _TELLERS.get(port.told_by, "")]
        told = ", ".join(filter(None, facts))
        out.print(Text(f"  {word}  {escape(port.name)}  {escape(port.type)}{f'  ({told})' if told else ''}"))
    if len(ports) > _MOST:
        out.print(Text(f"  {word}  ... and {len(ports) - _MOST} more"))
