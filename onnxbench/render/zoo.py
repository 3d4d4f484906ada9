"""The table of many models, for a terminal or a pipe."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from onnxbench.errors import escape
from onnxbench.inspecting.zoo import rows
from onnxbench.render.inspection import counted

if TYPE_CHECKING:
    from rich.console import Console

    from onnxbench.inspecting.zoo import Zoo

_TOP = 12
_NARROW = 80


def print_zoo(zoo: Zoo, out: Console, *, everything: bool = False) -> None:
    """A row a model, then totals."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("model", "opset", "nodes", "parameters", "MACs", "producer", "problems"):
        right = title in ("opset", "nodes", "parameters", "MACs")
        table.add_column(title, justify="right" if right else "left", overflow="fold")
    for path, opset, nodes, parameters, macs, producer, problems in rows(zoo):
        cells = (_near(path), opset, nodes, _amount(parameters), _amount(macs), producer, problems)
        table.add_row(*(Text(escape(cell)) for cell in cells))
    out.print(table, width=max(out.width, _NARROW))  # below that, cells of four letters are no table
    top = 10**9 if everything else _TOP
    for name, counts in zoo.totals().items():
        listed = ", ".join(f"{escape(key)}: {count}" for key, count in list(counts.items())[:top])
        more = f" and {len(counts) - top} more (--all)" if len(counts) > top else ""
        out.print(f"{name}: {listed}{more}")


def _near(path: str) -> str:
    """A path from the working folder, where it lies below."""
    here = Path.cwd()
    return str(Path(path).relative_to(here)) if Path(path).is_relative_to(here) else path


def _amount(text: str) -> str:
    if text.isdecimal():
        return counted(int(text))
    return text if len(text) <= 30 else "(an expression)"
