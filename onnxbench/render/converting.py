"""Conversions in text: one model, the plan for one, certificates run again, the table of many."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from onnxbench.converters.hidden import told
from onnxbench.errors import escape
from onnxbench.render.progress import clock

if TYPE_CHECKING:
    from rich.console import Console

    from onnxbench.converters.plan import Plan
    from onnxbench.converters.recheck import Rechecked
    from onnxbench.converters.report import Certificate, Conversion
    from onnxbench.converters.summary import Row, Summary

_NARROW = 80
_MOST = 20  # refusals of one model, kinds of refusals of many


def print_conversion(report: Conversion, out: Console) -> None:
    """What was done to one model, or why nothing was."""
    from rich.text import Text

    after, ir_after = report.after or report.before, report.ir_after or report.ir_before  # neither, if it was refused
    headline = f"{opsets(report.before, after)}, {versions('IR', report.ir_before, ir_after)}"
    out.print(Text(f"{escape(report.model)}: ") + Text(headline, "bold red" if report.refusals else "bold green"))
    rewritten = len(report.rewrites)
    unchanged = max(0, report.nodes - rewritten - len(report.refusals))
    refused = f", {len(report.refusals)} refused" if report.refusals else ""
    if report.state != "unchanged":
        out.print(f"  {counted(report.nodes, 'node')}: {unchanged} unchanged, {rewritten} rewritten{refused}")
    for step, count in report.by_step().items():
        out.print(f"  {escape(step):<32} {count}")
    for entry in report.refusals[:_MOST]:
        place = f" in {escape(entry.where)}" if entry.where else ""
        out.print(f"  refused {escape(entry.node)}{place}: {escape(entry.step)}: {escape(entry.reason)}")
    if len(report.refusals) > _MOST:
        out.print(f"  and {len(report.refusals) - _MOST} more that are refused")
    if verified := proof(report):
        out.print(f"  {verified}")
    if compared := certificates(report.certificates):
        out.print(f"  {compared}")
    for piece in report.certificates:
        if piece.state == "differs":
            out.print(f"  differs: {_named(piece)}: {escape(piece.reason)}")
    for note in report.notes:
        out.print(f"  note: {escape(note)}")
    if report.output:
        out.print(f"  written to {report.output}")


def print_plan(plan: Plan, out: Console) -> None:
    """What would become of a model: each kind of step, each refusal, and the range that all of them allow."""
    from rich.text import Text

    rewritten: dict[str, int] = {}
    counts = {"unchanged": 0, "rewritten": 0, "refused": 0}
    for row in plan.rows:
        counts[row.action] += 1
        if row.action == "rewritten":
            for step in row.steps:
                rewritten[step] = rewritten.get(step, 0) + 1
    said = ", ".join(f"{count} {action}" for action, count in counts.items() if count or action != "refused")
    style = "bold red" if counts["refused"] else "bold green"
    ir = versions("IR", plan.ir_before, plan.ir_after or plan.ir_before)
    out.print(
        Text(f"{escape(plan.model)}: {opsets(plan.before, plan.after)}, {ir}, ")
        + Text(f"{counted(len(plan.rows), 'node')}: {said}", style)
    )
    for step, count in rewritten.items():
        out.print(f"  {escape(step):<32} {count}")
    for row in plan.rows:
        if row.action == "refused":
            place = f" in {escape(row.where)}" if row.where else ""
            steps = f": {escape(', '.join(row.steps))}" if row.steps else ""
            out.print(f"  refused {escape(row.node)}{place}{steps}: {escape(row.reason)}")
    if plan.lowest is not None and plan.highest is not None:
        allowed = (
            f"every opset from {plan.lowest} to {plan.highest}" if plan.lowest <= plan.highest else "no single opset"
        )
        out.print(f"  its nodes allow {allowed}")
    for note in plan.notes:
        out.print(f"  note: {escape(note)}")


def print_explained(plan: Plan, out: Console) -> None:
    """What would become of each node, and why."""
    for row in plan.asked:
        place = f" in {escape(row.where)}" if row.where else ""
        out.print(f"{escape(row.node)}{place}: {row.action}")
        for step in row.steps:
            out.print(f"  {escape(step)}")
        if row.reason:
            out.print(f"  {escape(row.reason)}")
        if row.lowest is not None:
            out.print(f"  it has a form in every opset from {row.lowest} to {row.highest}")


def print_rechecked(found: Rechecked, out: Console) -> None:
    """What came of certificates that were run again."""
    for entry in found.rows:
        if entry.state != "same":
            out.print(f"{entry.state}: {_named(entry)}: {escape(entry.reason)}")
    out.print(certificates(found.rows) or "no certificates: no node was rewritten")


def print_summary(summary: Summary, out: Console) -> None:
    """A row a model, then totals."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("model", "state", "opset", "rewritten", "seconds", "why"):
        right = title in ("rewritten", "seconds")
        table.add_column(title, justify="right" if right else "left", overflow="fold")
    for row in summary.rows:
        table.add_row(*(Text(escape(cell)) for cell in cells(row)))
    out.print(table, width=max(out.width, _NARROW))
    for line in totals(summary):
        out.print(escape(line))


def cells(row: Row) -> tuple[str, ...]:
    """The cells of a row: model, state, opsets, rewritten nodes, seconds, why."""
    rewritten = str(len(row.report["rewrites"])) if row.report.get("rewrites") else ""
    seconds = "earlier" if row.earlier else f"{row.seconds:.1f}" if row.seconds else ""
    return row.model, row.state, opsets_of(row), rewritten, seconds, why(row)


def opsets_of(row: Row) -> str:
    """A row's opsets, before and after where there is an after."""
    before, after = row.report.get("before", {}), row.report.get("after", {})
    stopped = row.state in ("refused", "mismatch", "failed")
    return opsets(before, before if stopped or not after else after) if before else ""


def why(row: Row) -> str:
    """Why a row's state is no better."""
    if row.state == "refused" and row.refusals:
        first, more = row.refusals[0], len(row.refusals) - 1
        return f"{first['node']}: {first['step']}: {first['reason']}" + (f" and {more} more" if more else "")
    if row.state == "failed" and row.error:
        return f"{row.error['code']} {row.error['message']}"
    return row.reason


def totals(summary: Summary) -> list[str]:
    """Totals in lines: states, steps, refusals by operator and reason, files, what an earlier run did."""
    states = ", ".join(f"{state} {count}" for state, count in summary.by_state().items())
    lines = [f"{counted(summary.total, 'model')} in {clock(summary.seconds)}: {states or 'none done'}"]
    if summary.earlier:
        lines.append(f"{summary.earlier} of them were done already by an earlier run")
    if summary.interrupted:
        lines.append(f"interrupted: {summary.total - len(summary.rows)} are left")
    if steps := summary.by_step():
        lines.append("steps: " + ", ".join(f"{step}: {count}" for step, count in list(steps.items())[:_MOST]))
    for entry in summary.by_refusal()[:_MOST]:
        where = f"{counted(entry['nodes'], 'node')} in {counted(len(entry['models']), 'model')}"
        lines.append(f"refused: {entry['step']}: {entry['reason']} ({where})")
    for state in ("copied", "skipped", "failed"):
        if count := sum(file.state == state for file in summary.files):
            lines.append(f"{counted(count, 'other file')} {state}")
    return [*lines, *filter(None, [told(summary.hidden)])]


def proof(report: Conversion) -> str:
    """How sure it is that the result computes the same."""
    reason = escape(report.reason)
    match report.state:
        case "unchanged":
            return "nothing had to be done"
        case "verified":
            return f"verified: the same outputs in {counted(report.runs, 'run')}"
        case "certified":
            return f"certified: rewritten nodes alone compute the same; {reason}"
        case "mismatch":
            return f"does not compute the same: {reason}"
        case "refused":
            return ""
    return f"not verified: {reason}"


def certificates(entries: Iterable[Certificate]) -> str:
    """How many there are of each state."""
    counts: dict[str, int] = {}
    for entry in entries:
        counts[entry.state] = counts.get(entry.state, 0) + 1
    words = {"same": "the same", "differs": "different", "untold": "not run"}
    said = ", ".join(f"{counts[state]} {word}" for state, word in words.items() if state in counts)
    return f"nodes compared alone: {said}" if said else ""


def opsets(before: Mapping[str, int], after: Mapping[str, int]) -> str:
    """Opsets in words: those that change, else all."""
    changed = [name for name in {**before, **after} if before.get(name) != after.get(name)]
    if not changed:
        return ", ".join(_opset(name, version) for name, version in before.items()) or "no opset"
    return ", ".join(_change(name, before.get(name), after.get(name)) for name in changed)


def versions(what: str, before: int, after: int) -> str:
    """A version before and after; once if they are the same."""
    return f"{what} {before}" if before == after else f"{what} {before} -> {after}"


def counted(count: int, noun: str) -> str:
    """A count with its noun."""
    return f"{count} {noun}{'s' * (count != 1)}"


def _opset(name: str, version: int) -> str:
    return f"opset {version}" if name == "ai.onnx" else f"{escape(name)} {version}"


def _change(name: str, before: int | None, after: int | None) -> str:
    head = "opset" if name == "ai.onnx" else escape(name)
    return f"{head} {'none' if before is None else before} -> {'none' if after is None else after}"


def _named(entry: Certificate) -> str:
    place = f" in {escape(entry.where)}" if entry.where else ""
    return f"{escape(entry.node)}{place}"
