"""The report of `inspect`, for a terminal or a pipe."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from onnxbench.errors import escape, quote

if TYPE_CHECKING:
    from rich.console import Console

    from onnxbench.inspecting.blocks import Block
    from onnxbench.inspecting.header import Interface
    from onnxbench.inspecting.inspection import Inspection
    from onnxbench.inspecting.made_up import MadeUp

_WIDE = 80  # characters of a cell; longer ones stand out of their column, which need not be as wide for all
_LONG = 160  # characters of an expression
_LEGEND = 3  # symbols that are explained
_NO_MACS = "no multiply-accumulates"
_TOP = 12  # rows of a long list, without --all


def print_inspection(report: Inspection, out: Console, *, everything: bool = False) -> None:
    """Every section that has something to say, the problems last, where the eye ends."""
    top = 10**9 if everything else _TOP
    _head(report, out)
    _interface(report, out, top)
    _operators(report, out, top)
    _cost(report, out, top)
    _tensors(report, out, top)
    _structure(report, out, top)
    _blocks(report.blocks, out, top)
    _problems(report, out, top)


def _head(report: Inspection, out: Console) -> None:
    head = report.header
    size = f", {amount(head.size)}B" if head.size is not None else ""
    out.print(_title(f"{report.model}{size}"))
    opsets = ", ".join(f"{domain or 'ai.onnx'} {version}" for domain, version in head.opsets) or "none imported"
    out.print(
        f"  IR {head.ir_version}, opset {escape(opsets)}" + (f", by {escape(head.producer)}" if head.producer else "")
    )
    inner = f" ({head.all_nodes} with bodies and functions)" if head.all_nodes != head.nodes else ""
    out.print(f"  {head.nodes} nodes{inner}, {counted(head.parameters)} parameters in {head.initializers} initializers")
    if head.bytes_by_type:
        out.print("  " + ", ".join(f"{name.lower()} {amount(count)}B" for name, count in head.bytes_by_type.items()))
    for key, value in head.metadata[:_TOP]:
        out.print(f"  {escape(key)}: {escape(value)[:200]}")


def _interface(report: Inspection, out: Console, top: int) -> None:
    for title, values in (("inputs", report.header.inputs), ("outputs", report.header.outputs)):
        out.print(_title(title))
        _rows(
            out, ([value.name, shape(value) + (" overridable" if value.overridable else "")] for value in values), top
        )


def shape(value: Interface) -> str:
    """float[N, 3, 224, 224]; an anonymous dimension is `?`, an unknown rank `...`."""
    if value.dims is None:
        return f"{value.type.lower()}[...]" if "(" not in value.type else value.type.lower()
    return f"{value.type.lower()}[{', '.join(map(_declared, value.dims))}]"


def _declared(dim: int | str | None) -> str:
    """A dim as the file says it, in quotes if it is no arithmetic of plain names."""
    from onnxbench.core.size_text import parse

    if dim is None:
        return "?"
    return str(dim) if isinstance(dim, int) else escape(dim if parse(dim) is not None else repr(dim))


def _operators(report: Inspection, out: Console, top: int) -> None:
    total = sum(o.parameters for o in report.operators) or 1
    out.print(_title("operators"))
    rows = []
    for o in report.operators:
        name = f"{o.domain}::{o.name}" if o.domain else o.name
        where = ", ".join(f"{n} {w}" for n, w in ((o.in_bodies, "in bodies"), (o.in_functions, "in functions")) if n)
        version = f"-{o.since}" if o.since else f" ({o.kind})"
        share = f"{100 * o.parameters / total:.0f} % of parameters" if o.parameters * 200 >= total else ""
        rows.append([f"{name}{version}", str(o.count), where, share])
    _rows(out, rows, top)


def _cost(report: Inspection, out: Console, top: int) -> None:
    cost = report.cost
    out.print(_title("cost"))
    out.print(f"  {_macs(cost.macs, cost.unknown)}")
    unsized = f"; {cost.unsized} values have no known size" if cost.unsized else ""
    at = f" at {escape(cost.peak_at)}" if cost.peak_at else ""
    out.print(f"  {amount(cost.peak_bytes)}B of live activations at the peak{at}{unsized}")
    printed = {word for text in (amount(cost.macs), amount(cost.peak_bytes)) for word in re.findall(r"\w+", text)}
    print_made_up([symbol for symbol in report.made_up if symbol.symbol in printed], out)
    dear = sorted(
        (row for row in cost.nodes if isinstance(row.macs, int) and row.macs), key=lambda row: -int(row.macs or 0)
    )
    _rows(out, ([f"{row.operator} {row.name}", counted(row.macs)] for row in dear), min(top, 5) if top == _TOP else top)
    values = report.values
    out.print(
        f"  of {values.all} values {values.typed} have a type, {values.ranked} a rank, {values.shaped} a full shape"
    )


def _macs(macs: int | str, unknown: int) -> str:
    """The cost in a sentence; `unknown` nodes are not in it."""
    nodes = f"{counted(unknown)} node{'s' if unknown != 1 else ''}"
    if not macs:
        return f"no multiply-accumulates known: the cost of {nodes} cannot be told" if unknown else _NO_MACS
    return f"{counted(macs)} multiply-accumulates" + (f", without {nodes} whose cost cannot be told" if unknown else "")


def print_made_up(symbols: Sequence[MadeUp], out: Console) -> None:
    """What the symbols stand for that no file declares, in a line."""
    told = []
    for symbol in symbols[:_LEGEND]:
        what = f"dimension {symbol.axis} of {quote(symbol.value)}" if symbol.value is not None else "a size"
        told.append(
            f"{symbol.symbol} is {what}, which {'only a run tells' if symbol.run else 'the model does not name'}"
        )
    more = f"; {len(symbols) - _LEGEND} more (--json)" if len(symbols) > _LEGEND else ""
    if told:
        out.print(f"  {'; '.join(told)}{more}")


def _tensors(report: Inspection, out: Console, top: int) -> None:
    stored = report.tensors
    if not stored.largest:
        return
    out.print(_title("largest tensors"))
    rows = (
        [t.name, f"{t.type.lower()}{t.dims}", f"{amount(t.bytes)}B", f"in {t.file}" if t.file else ""]
        for t in stored.largest
    )
    _rows(out, rows, min(top, 5) if top == _TOP else top)
    for file in stored.files:
        size = f"{amount(file.bytes)}B" if file.bytes is not None else "not there"
        out.print(f"  data file {escape(file.location)}: {size}, {file.tensors} tensors use {amount(file.used)}B")


def _structure(report: Inspection, out: Console, top: int) -> None:
    from onnxbench.inspecting.structure import Control, walk

    found = report.structure
    if found.control:
        out.print(_title("control flow"))
        lines = []
        for depth, item in walk(found.control):
            text = (
                f"{item.operator} {item.node}" if isinstance(item, Control) else f"{item.attribute}: {item.nodes} nodes"
            )
            held = (
                f", captures {', '.join(item.captures[:6])}" if not isinstance(item, Control) and item.captures else ""
            )
            lines.append(["  " * depth + text + held])
        _rows(out, lines, top)
    if found.functions:
        out.print(_title("functions"))
        rows = ([f"{f.domain}::{f.name}", f"{f.calls} calls", f"{f.nodes} nodes"] for f in found.functions)
        _rows(out, rows, top)
    if found.quantization is not None:
        q = found.quantization
        out.print(_title("quantization"))
        out.print(
            f"  {q.quantize} quantize, {q.dequantize} dequantize ({q.pairs} pairs), {q.quantized_operators} integer operators"
        )
        out.print(
            f"  {q.per_tensor} per tensor, {q.per_channel} per channel; weights by bits: {_counts(q.weights_by_bits)}"
        )
    if found.random:
        out.print(f"  random: {escape(', '.join(found.random[:top]))}")
    if found.casts:
        out.print(f"  precision changes: {_counts(found.casts)}")


def _counts(counts: dict[Any, int]) -> str:
    return ", ".join(f"{key}: {counted(count)}" for key, count in counts.items()) or "none"


def _blocks(root: Block, out: Console, top: int) -> None:
    if not root.blocks:
        return
    out.print(_title("blocks"))
    rows: list[list[str]] = []

    def add(block: Block, depth: int) -> None:
        for inner in block.blocks:
            costs = f"{counted(inner.parameters)} parameters"
            rows.append(
                [
                    "  " * depth + inner.name,
                    f"{inner.nodes} nodes",
                    costs,
                    f"{counted(inner.macs if isinstance(inner.macs, int) else str(inner.macs))} MACs",
                    inner.line,
                ]
            )
            add(inner, depth + 1)

    add(root, 0)
    _rows(out, rows, top)


def _problems(report: Inspection, out: Console, top: int) -> None:
    from rich.text import Text

    if not report.problems:
        out.print(Text("no problems found", "bold green"))
        return
    out.print(_title("problems"))
    styles = {"error": "bold red", "warning": "yellow", "info": "dim"}
    for problem in report.problems[:top]:
        line = Text(f"  {problem.code} ", styles[problem.severity]) + Text(
            f"{escape(problem.place)}: {escape(problem.message)}"
        )
        out.print(line + Text(f"  ({escape(problem.hint)})" if problem.hint else "", "dim"))
    if len(report.problems) > top:
        out.print(f"  and {len(report.problems) - top} more (--all)")


def _title(text: str) -> Any:
    from rich.text import Text

    return Text(escape(text), "bold")


def _rows(out: Console, rows: Iterable[Sequence[str]], top: int) -> None:
    """Columns as wide as their cells, the last one and very long cells free; the rest is counted."""
    listed = [[escape(cell) for cell in row] for row in rows]
    shown_rows = listed[:top]
    columns = list(zip(*shown_rows, strict=True))
    widths = [max((len(cell) for cell in column if len(cell) <= _WIDE), default=0) for column in columns]
    for row in shown_rows:
        out.print("  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    if len(listed) > top:
        out.print(f"  and {len(listed) - top} more (--all)")


def amount(number: int | str | None) -> str:
    """1234 as 1.23 k, in powers of 1000; an expression as it is, unless it is long."""
    if not isinstance(number, int):
        text = "?" if number is None else escape(number)
        return f"{text} " if len(text) <= _LONG else f"(an expression of {len(text)} characters, see --json) "
    for factor, unit in ((10**12, "T"), (10**9, "G"), (10**6, "M"), (10**3, "k")):
        if number >= factor:
            return f"{number / factor:.3g} {unit}"
    return f"{number} "


def counted(number: int | str | None) -> str:
    """The same before a word of its own; a unit would follow the amount at once."""
    return amount(number).rstrip()
