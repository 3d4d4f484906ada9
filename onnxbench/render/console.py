"""Text for a terminal, or for a pipe: coloured and wrapped where somebody looks, plain and whole where not."""

from __future__ import annotations

import shlex
import sys
from typing import TYPE_CHECKING, Any

from onnxbench.errors import UsageError, escape
from onnxbench.render import telling

if TYPE_CHECKING:
    from rich.console import Console

    from onnxbench.reducers.result import Reduction


def console(color: str) -> Console:
    """A console on standard output.

    Raises:
        UsageError: OB201 for a `--color` that is none of auto, always, never.
    """
    from rich.console import Console

    if color not in ("auto", "always", "never"):
        raise UsageError("OB201", f"--color is auto, always or never, not {color!r}")
    forced = {"auto": None, "always": True, "never": False}[color]
    out = sys.stdout
    wide = None if out.isatty() else 10_000  # nothing is cut off in a pipe
    plain = False if color == "always" else None  # who asks for colours in so many words has them, NO_COLOR or not
    return Console(
        file=out, force_terminal=forced, no_color=plain, width=wide, highlight=False, markup=False, soft_wrap=True
    )


def print_reduction(report: Reduction, out: Console) -> None:
    """The finding first, then where it is and how to run it."""
    from rich.text import Text

    if report.status in ("proven", "localized"):
        _print_proof(report, out)
        return
    found = "1-minimal (verified)" if report.status == "minimal" else "best so far (stopped)"
    out.print(Text(failure(report), "bold red"))
    out.print(f"  on {escape(report.suspect)} {report.versions.get(report.suspect, '')}".rstrip() + rate(report))
    if pace := telling.pace(report):
        out.print(escape(f"  compared with {report.judge} it takes {pace}"))
    out.print(
        Text(f"{report.nodes_before} nodes -> {report.nodes_after}", "bold green")
        + Text(f"  {found}, {report.checks} checks, {report.seconds:.1f} s")
    )
    for culprit in report.culprits[:20]:
        out.print(f"  {escape(culprit.operator):<24} {escape(culprit.name or culprit.output)}")
    if len(report.culprits) > 20:
        out.print(f"  and {len(report.culprits) - 20} more")
    for kind, count in report.by_products.items():
        out.print(f"  met on the way, {count} times: {escape(kind)}")
    for note in report.notes:
        out.print(f"  note: {escape(note)}")
    if report.output:
        out.print(f"model:  {escape(report.output)}")
    if report.lowest_failing:
        out.print(f"lowest level that fails: {escape(report.lowest_failing)}")
    for name in report.cured_by_disabling:
        out.print(f"cured by switching off:  {name}")
    for release in report.releases:
        out.print(f"on {escape(release.runtime)} {release.version}: {telling.VERDICTS[release.verdict]}")
    if report.since:
        out.print(f"so it {report.since}")
    for known in report.known:
        out.print(f"this looks like {escape(known.issue)}: {escape(known.title)}")
    for way in report.workarounds:
        doubt = "" if way.verified else " (it runs; nobody tells whether it is right)"
        out.print(f"way around: {escape(way.how)}{doubt}")
    if report.workaround:
        out.print(f"rewritten model: {escape(report.workaround)}")
    if report.bundle:
        out.print(f"bundle: {escape(report.bundle)}")
        out.print(f"  python {escape(shlex.quote(f'{report.bundle}/repro.py'))}   # exits 1 while the failure is there")


def _print_proof(report: Reduction, out: Console) -> None:
    from rich.text import Text

    out.print(Text(f"it fails: {escape(str(report.signature['sentence']))}", "bold red"))
    out.print(f"  on {escape(report.suspect)} {report.versions.get(report.suspect, '')}".rstrip() + rate(report))
    if report.status == "proven":
        return
    for suspect in report.suspects[:20]:
        names = " and ".join(escape(f"{node.operator} {node.name or node.output}") for node in suspect.nodes)
        out.print(
            f"  {names}: {_error(suspect.isolated)} by itself, {_error(suspect.cumulative)} with what comes before"
        )
    for note in report.notes:
        out.print(f"  note: {escape(note)}")
    if not report.suspects and report.signature["kind"] == "numbers":
        out.print("  no node, and no two nodes that follow each other, are wrong by themselves")


def _error(difference: dict[str, Any] | None) -> str:
    if difference is None:
        return "right"
    error = difference["norm_rel"]
    return f"off by {error:.3g}" if isinstance(error, float) else f"wrong {difference['kind']}"


def failure(report: Reduction) -> str:
    """The failure in a line, in the runtime's own words where it has any."""
    signature = report.signature
    if not report.message:
        return escape(str(signature["sentence"]))
    return escape(f"{signature['phase']} error, {signature['detail']}: {' '.join(report.message.split())[:400]}")


def rate(report: Reduction) -> str:
    """How often the original failed, where that is not always."""
    return f", {report.failed} of {report.runs} runs" if report.failed < report.runs else ""


def not_reproduced(report: Reduction) -> str:
    """What was run, and that it passed."""
    against = f" and agrees with {report.judge}" if report.judge else ""
    return escape(f"{report.model} runs on {report.suspect}{against} ({report.runs} runs)")
