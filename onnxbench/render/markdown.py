"""Reports as Markdown, ready for an issue tracker."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from onnxbench.errors import escape
from onnxbench.render import telling
from onnxbench.render.snippet import snippet

if TYPE_CHECKING:
    from onnxbench.core.model import Model
    from onnxbench.reducers.finding import Finding
    from onnxbench.reducers.result import Reduction
    from onnxbench.render.telling import Line

_LONGEST = 6000  # characters of the model's text
_MOST = 100  # rows of a table


def reduction(finding: Finding) -> str:
    """The report of a reduction: what a maintainer asks for, in the order in which it is asked."""
    report, model = finding.report, finding.model
    text = _text(model)
    sections = [
        [f"# {_prose(telling.headline(report))}", "", _line(telling.summary(report))],
        *([_line(line)] for line in telling.known(report)),
        ["## The model", "", *_fenced(_cut(text) if text is not None else "(ONNX cannot print it)")],
        ["## Steps to reproduce", "", *_steps(finding, text)],
        ["## Expected and actual", "", *_expected(report)],
        _listed("## What makes a difference", [*telling.cures(report), telling.passing(report)]),
        ["## Where it comes from", "", *_origin(report, model)],
        ["## Environment", "", *_environment(report)],
        _listed("## How it was reduced", telling.course(report)),
    ]
    return "\n\n".join("\n".join(section) for section in sections if section) + "\n"


def _listed(title: str, lines: Iterable[Line]) -> list[str]:
    """A section of items; none without any."""
    items = [f"- {_line(line)}" for line in lines if line]
    return [title, "", *items] if items else []


def _steps(finding: Finding, text: str | None) -> list[str]:
    steps = _fenced("python repro.py    # exits 1 while the failure is there, 0 when it is gone, 125 if it cannot tell")
    script = snippet(finding, text) if text is not None else None
    if script is None or script != escape_lines(script):
        return steps
    return [*steps, "", "Or without any file:", "", *_fenced(script, "python")]


def _expected(report: Reduction) -> list[str]:
    kind = report.signature["kind"]
    if kind != "numbers":
        others = [way.how for way in report.workarounds if way.kind == "setting"]
        wish: Line = ("Expected: it runs.",)
        if others:
            wish = ("Expected: it runs, as with ", telling.Code(others[0]), ".")
        if kind == "slow":
            wish = ("Expected: it takes about as long as on ", telling.Code(report.judge or "the trusted runtime"), ".")
        if report.signature["phase"] == "check":
            wish = ("Expected: the check ends with 0.",)
        said = _fenced(escape_lines(report.message)) if report.message else [_prose(report.signature["sentence"])]
        return [_line(wish), "", "Actual:", "", *said]
    judge = f" by {_code(report.judge)}" if report.judge else ""
    rows = [
        f"| {_code(str(d['name']))} | {telling.place(d['where'])} | {_value(d['want_at'])} | {_value(d['got_at'])} "
        f"| {_value(d['max_abs'])} | {_value(d['max_rel'])} | {_share(d['share'])} | {_prose(d['detail'])} |"
        for d in report.differences[:_MOST]
    ]
    head = f"| output | element | expected{judge} | actual | max abs error | max rel error | elements off | |"
    return [head, "|---|---|---|---|---|---|---|---|", *rows]


def _value(value: object) -> str:
    return _code(telling.number(value)) if isinstance(value, str) and value else telling.number(value)


def _share(share: object) -> str:
    return f"{100 * share:.3g} %" if isinstance(share, float) else _value(share)


def _origin(report: Reduction, model: Model) -> list[str]:
    """The nodes at fault, as the original has them; scope and source line where an exporter left any."""
    culprits = report.culprits[:_MOST]
    traced = any(culprit.scope or culprit.line for culprit in culprits)
    head = "| node | operator | makes |" + (" scope | source line |" if traced else "")
    rows = [
        f"| {_code(c.name)} | {_code(c.operator)} | {_code(c.output)} |"
        + (f" {_code(c.scope, '')} | {_code(c.line, '')} |" if traced else "")
        for c in culprits
    ]
    more = len(report.culprits) - len(culprits)
    table = [head, "|---|---|---|" + ("---|---|" if traced else ""), *rows, *([f"\nand {more} more"] if more else [])]
    ours = {node.name for node in model.proto.graph.node}
    if all(culprit.name in ours for culprit in culprits):
        return table
    return [
        *table,
        "",
        "The nodes are called as in the original; `names.json` says which node of `model.onnx` is which.",
    ]


def _environment(report: Reduction) -> list[str]:
    import platform

    import numpy
    import onnx

    return [
        *(f"- {_code(name)}: {_prose(version)}" for name, version in report.versions.items()),
        f"- onnx {onnx.__version__}, numpy {numpy.__version__}, Python {platform.python_version()}",
        f"- {platform.system()} {platform.machine()}",
    ]


def _line(line: Line) -> str:
    return "".join(_code(part) if isinstance(part, telling.Code) else _prose(part) for part in line)


def _prose(text: str) -> str:
    """Text that is neither Markdown nor HTML, whatever it holds."""
    return re.sub(r"([\\`*\[\]<>|])", r"\\\1", escape(text))


def _code(text: str, empty: str = "(unnamed)") -> str:
    """As code, with a fence that it does not hold: a name may be Markdown or HTML."""
    if not text:
        return empty
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", text)), default=0))
    padding = " " if text.strip("`") != text else ""
    return fence + padding + escape(text).replace("|", "\\|") + padding + fence


def _fenced(text: str, language: str = "") -> list[str]:
    """The text as a code block, which no backticks in it end."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return [fence + language, text, fence]


def _text(model: Model) -> str | None:
    from onnxbench.core.text import readable

    return readable(model.proto)


def _cut(text: str) -> str:
    text = escape_lines(text.rstrip("\n"))
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "\n... (cut off; see model.onnxtxt)"


def escape_lines(text: str) -> str:
    """Line by line, since newlines are what the text is made of."""
    return "\n".join(escape(line) for line in text.splitlines())
