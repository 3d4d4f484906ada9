"""Reports as one HTML file: no script, nothing from the net, light and dark."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape as entities
from typing import TYPE_CHECKING

from onnxbench.render import svg, telling
from onnxbench.render.markdown import escape_lines

if TYPE_CHECKING:
    from onnxbench.core.outline import Outline
    from onnxbench.reducers.finding import Finding
    from onnxbench.reducers.result import Reduction
    from onnxbench.render.telling import Line

_MOST = 200  # rows of a table
_LONGEST = 6000  # characters of the model's text

_STYLE = """
:root{--paper:#fff;--ink:#1c1f23;--faint:#667;--line:#d5d9e0;--box:#f4f6f9;--bad:#c2261d;--one:#1f6feb;--two:#b8720a}
@media(prefers-color-scheme:dark){:root{--paper:#15181c;--ink:#e3e6ea;--faint:#99a;--line:#3a4049;--box:#20252b;
--bad:#ff7b72;--one:#6cb0ff;--two:#e3a94a}}
:root{color-scheme:light dark}
body{background:var(--paper);color:var(--ink);font:15px/1.5 system-ui,sans-serif;margin:0 auto;max-width:64rem;padding:1rem}
h1{font-size:1.35rem;overflow-wrap:anywhere}h2{border-top:1px solid var(--line);font-size:1.1rem;margin-top:2rem;padding-top:.7rem}
code,pre{background:var(--box);border-radius:4px;font:13px/1.45 ui-monospace,monospace;overflow-wrap:anywhere;padding:.1em .3em}
pre{overflow:auto;padding:.7rem;white-space:pre-wrap}table{border-collapse:collapse;font-size:.92rem}
td,th{border-bottom:1px solid var(--line);padding:.25rem .8rem .25rem 0;text-align:left;vertical-align:top}
.scroll{max-height:40rem;overflow:auto}.faint{color:var(--faint)}a{color:var(--one)}
svg{height:auto;max-width:100%}.wide svg{max-width:none}svg text{fill:var(--ink);font:11px ui-monospace,monospace}
svg .strong{font-weight:600}.box rect{fill:var(--box);stroke:var(--line)}.box.many rect{stroke-dasharray:4 2;stroke:var(--faint)}
.box.inputs rect,.box.outputs rect{fill:var(--paper)}.box.culprit rect{fill:var(--paper);stroke:var(--bad);stroke-width:2.5}
svg .box.culprit .strong{fill:var(--bad)}.edge{fill:none;stroke:var(--faint)}.edge.back{stroke-dasharray:5 3}.tip{fill:var(--faint)}
.rule{stroke:var(--line)}.curve path{fill:none;stroke-width:1.6}.curve.one path{stroke:var(--one)}.curve.two path{stroke:var(--two)}
.curve.bad path{stroke:var(--bad)}.one circle{fill:var(--one)}.two circle{fill:var(--two)}.bad circle{fill:var(--bad)}
svg text.one{fill:var(--one)}svg text.two{fill:var(--two)}svg text.bad{fill:var(--bad)}
"""


def reduction(finding: Finding) -> str:
    """The page of a reduction."""
    report = finding.report
    title = svg.text(telling.headline(report))
    parts = [
        f"<h1>{title}</h1>",
        f"<p>{_line(telling.summary(report))}</p>",
        *(f"<p>{_linked(line)}</p>" for line in telling.known(report)),
        _message(report),
        _section("Nodes at fault", _culprits(report)),
        _section("Expected and actual", _differences(report)),
        _section("What makes a difference", _items([*telling.cures(report), telling.passing(report)])),
        _section("The reproducer", _model(finding)),
        _section("Where it lies in the original", _graph(finding.outline)),
        _section("Error along the network", _along(report)),
        _section("How it was reduced", _curve(report) + _items(telling.course(report))),
        _section("Environment", _items((telling.Code(name), f": {v}") for name, v in report.versions.items())),
    ]
    return document(title, parts)


def document(title: str, parts: Iterable[str]) -> str:
    """A whole page of parts that are HTML already."""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        f"<title>{title}</title>\n<style>{_STYLE}</style></head>\n<body>\n"
        + "\n".join(filter(None, parts))
        + "\n</body></html>\n"
    )


def _section(title: str, content: str) -> str:
    return f"<h2>{title}</h2>\n{content}" if content else ""


def _line(line: Line) -> str:
    return "".join(
        f"<code>{svg.text(part)}</code>" if isinstance(part, telling.Code) else svg.text(part) for part in line
    )


def _linked(line: Line) -> str:
    """With a link where an issue of a repository on GitHub is named."""
    address = r'<a href="https://github.com/\1/issues/\2">\1#\2</a>'
    return re.sub(r"\b([\w.-]+/[\w.-]+)#(\d+)", address, _line(line))


def _items(lines: Iterable[Line]) -> str:
    items = [f"<li>{_line(line)}</li>" for line in lines if line]
    return f"<ul>{''.join(items)}</ul>" if items else ""


def _message(report: Reduction) -> str:
    return f"<pre>{entities(escape_lines(report.message))}</pre>" if report.message else ""


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of cells that are HTML already."""
    if not rows:
        return ""
    first = "".join(f"<th>{name}</th>" for name in head)
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return f'<div class="scroll"><table><tr>{first}</tr>{body}</table></div>'


def _code(text: str) -> str:
    return f"<code>{svg.text(text)}</code>" if text else ""


def _culprits(report: Reduction) -> str:
    rows = [
        [_code(c.operator), _code(c.name), _code(c.output), _code(c.scope), _code(c.line)]
        for c in report.culprits[:_MOST]
    ]
    more = len(report.culprits) - len(rows)
    return _table(["operator", "node", "makes", "scope", "source line"], rows) + (
        f"<p>and {more} more</p>" if more else ""
    )


def _differences(report: Reduction) -> str:
    rows = [
        [
            *(_code(str(d["name"])), telling.place(d["where"])),
            *(
                svg.text(telling.number(d[key]))
                for key in ("want_at", "got_at", "max_abs", "max_rel", "share", "detail")
            ),
        ]
        for d in report.differences[:_MOST]
    ]
    return _table(["output", "element", "expected", "actual", "max abs", "max rel", "share off", ""], rows)


def _model(finding: Finding) -> str:
    from onnxbench.core.text import readable

    text = escape_lines(readable(finding.model.proto) or "(ONNX cannot print it)")
    cut = "\n... (cut off; see model.onnxtxt)" if len(text) > _LONGEST else ""
    how = "<p>It fails again with <code>python repro.py</code>, which exits 1 while the failure is there.</p>"
    return f'{how}<pre class="scroll">{entities(text[:_LONGEST])}{cut}</pre>'


def _graph(outline: Outline | None) -> str:
    if outline is None:
        return ""
    together = " Dashed boxes hold several nodes each." if any(box.nodes > 1 for box in outline.boxes) else ""
    said = f"{outline.nodes} nodes, of which those at fault are <a href='#culprit'>framed in red</a>.{together}"
    return f'<p class="faint">{said}</p><div class="scroll wide">{svg.graph(outline)}</div>'


def _along(report: Reduction) -> str:
    if len(report.along) < 2:  # the suspects alone are no curve
        return ""
    alone = [(float(i), entry.isolated) for i, entry in enumerate(report.along) if entry.isolated is not None]
    together = [(float(i), entry.cumulative) for i, entry in enumerate(report.along) if entry.cumulative is not None]
    curves = [svg.Curve("with all before", "one", together), svg.Curve("by itself", "bad", alone)]
    drawn = svg.chart("relative error of each node", "node, in the order of the graph", curves)
    return (
        f'<p class="faint">Relative error (norm-wise) of what each node makes; the floor is right.</p>{drawn}'
        if drawn
        else ""
    )


def _curve(report: Reduction) -> str:
    points = report.curve
    if len(points) < 2:
        return ""
    nodes = svg.Curve("nodes", "one", [(float(p.checks), float(p.nodes)) for p in points], steps=True)
    held = svg.Curve("bytes", "two", [(float(p.checks), float(p.bytes)) for p in points], steps=True)
    return svg.chart("what was left", "candidates judged", [nodes, held])
