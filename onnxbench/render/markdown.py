"""Reports as Markdown, ready for an issue tracker."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from onnxbench.errors import escape

if TYPE_CHECKING:
    from onnxbench.core.model import Model
    from onnxbench.reducers.finding import Finding
    from onnxbench.reducers.result import Reduction

_LONGEST = 6000  # characters of the model's text


def reduction(finding: Finding) -> str:
    """The report of a reduction."""
    report, model = finding.report, finding.model
    return "\n".join(
        [
            f"# {_headline(report)}",
            "",
            f"Reduced by onnxbench from {report.nodes_before} nodes to {report.nodes_after}, "
            f"and from {report.bytes_before} bytes to {report.bytes_after} "
            f"({'1-minimal, verified' if report.status == 'minimal' else 'best so far, the search was stopped'}; "
            f"{report.checks} checks). The failure was seen in {report.failed} of {report.runs} runs of the original.",
            "",
            "## Reproduce",
            "",
            "```",
            "python repro.py    # exits 1 while the failure is there, 0 when it is gone, 125 if it cannot tell",
            "```",
            "",
            "## What fails",
            "",
            "| node | operator | makes |",
            "|---|---|---|",
            *(f"| {_cell(c.name)} | {_cell(c.operator)} | {_cell(c.output)} |" for c in report.culprits),
            "",
            *_naming(report, model),
            *_differences(report),
            *(line for note in report.notes for line in (f"Note: {escape(note)}.", "")),
            *_message(report),
            "## Versions",
            "",
            *(f"- {_cell(name)}: {version}" for name, version in report.versions.items()),
            *_platform(),
            "",
            "## The model",
            "",
            *_fenced(_text(model)),
            "",
        ]
    )


def _naming(report: Reduction, model: Model) -> list[str]:
    """Where the original's names are not those of the reproducer, how to tell which is which."""
    ours = {node.name for node in model.proto.graph.node}
    if all(culprit.name in ours for culprit in report.culprits):
        return []
    return ["The nodes are called as in the original; `names.json` says which node of `model.onnx` is which.", ""]


def _headline(report: Reduction) -> str:
    operators = ", ".join(dict.fromkeys(c.operator for c in report.culprits[:6]))
    what = report.signature["sentence"]
    if report.signature["kind"] in ("error", "unsupported"):
        what = f"{report.signature['phase']} error"
    return escape(f"{report.suspect} {report.versions.get(report.suspect, '')}: {what} in {operators}")


def _message(report: Reduction) -> list[str]:
    return ["## Message", "", *_fenced(escape_lines(report.message)), ""] if report.message else []


def _fenced(text: str) -> list[str]:
    """The text as a code block, which no backticks in it end."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return [fence, text, fence]


def _differences(report: Reduction) -> list[str]:
    if not report.differences:
        return []
    rows = [
        f"| {_cell(str(d['name']))} | {d['kind']} | {_number(d['max_abs'])} | {_number(d['max_rel'])} | {_number(d['share'])} |"
        for d in report.differences
    ]
    return ["| output | differs in | max abs | max rel | share |", "|---|---|---|---|---|", *rows, ""]


def _number(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _cell(text: str) -> str:
    """As code, with a fence that it does not hold: a name may be Markdown or HTML."""
    if not text:
        return "(unnamed)"
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", text)), default=0))
    padding = " " if text.strip("`") != text else ""
    return fence + padding + escape(text).replace("|", "\\|") + padding + fence


def _platform() -> list[str]:
    import platform

    import numpy
    import onnx

    return [
        f"- onnx {onnx.__version__}, numpy {numpy.__version__}, Python {platform.python_version()}",
        f"- {platform.system()} {platform.machine()}",
    ]


def _text(model: Model) -> str:
    from onnxbench.core.text import readable

    text = escape_lines(readable(model.proto) or "(ONNX cannot print it)")
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "\n... (cut off; see model.onnxtxt)"


def escape_lines(text: str) -> str:
    """Line by line, since newlines are what the text is made of."""
    return "\n".join(escape(line) for line in text.splitlines())
