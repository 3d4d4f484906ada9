"""Drawings for report.html: a graph in layers, and curves. Colours are those of the page's style."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape as entities
from typing import TYPE_CHECKING

from onnxbench.errors import escape

if TYPE_CHECKING:
    from onnxbench.core.outline import Box, Edge, Outline

_WIDE, _HIGH, _GAP, _STEP = 220, 40, 24, 64  # a box; the room between boxes; from layer to layer
_LETTERS = 30  # of a box's line
_CHART = (720, 220, 56, 24)  # width, height, left and other margins


def text(raw: str) -> str:
    """Text that is no HTML, and that no terminal or browser obeys."""
    return entities(escape(raw))


def short(raw: str) -> str:
    """The end of a name, which tells more than its beginning."""
    shown = escape(raw)
    return entities(shown if len(shown) <= _LETTERS else "\u2026" + shown[1 - _LETTERS :])


def graph(drawn: Outline) -> str:
    """The boxes of an outline in layers, from the top down; those with marked nodes stand out."""
    places, width, height = _places(drawn.boxes)
    arrows = [_arrow(edge, places) for edge in drawn.edges]
    first = next((box for box in drawn.boxes if box.marks), None)
    boxes = [_box(box, *place, box is first) for box, place in zip(drawn.boxes, places, strict=True)]
    marker = (
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="6" markerHeight="6" orient="auto">'
        '<path d="M0 0L8 4L0 8z" class="tip"/></marker></defs>'
    )
    return _svg(width, height, "the graph of the original", marker, *arrows, *boxes)


def _places(boxes: Sequence[Box]) -> tuple[list[tuple[float, float]], float, float]:
    """The left upper corner of each box, and the size of all: each layer is centred."""
    layers: dict[int, list[int]] = {}
    for place, box in enumerate(boxes):
        layers.setdefault(box.layer, []).append(place)
    widest = max(map(len, layers.values()))
    width = max(widest, 2) * (_WIDE + _GAP) + _GAP + 80
    found = [(0.0, 0.0)] * len(boxes)
    for row, layer in enumerate(sorted(layers)):
        left = (width - len(layers[layer]) * (_WIDE + _GAP) + _GAP) / 2
        for column, place in enumerate(layers[layer]):
            found[place] = (left + column * (_WIDE + _GAP), 12.0 + row * _STEP)
    return found, width, len(layers) * _STEP + 12


def _arrow(edge: Edge, places: Sequence[tuple[float, float]]) -> str:
    """A curve from box to box: straight down, or around what lies between, on the left if it goes back."""
    (x1, y1), (x2, y2) = places[edge.source], places[edge.target]
    if not edge.back and y2 - y1 <= _STEP:
        x1, x2, y1 = x1 + _WIDE / 2, x2 + _WIDE / 2, y1 + _HIGH
        bend = f"{x1:.0f} {y1 + 12:.0f} {x2:.0f} {y2 - 12:.0f}"
    else:
        x1, x2 = (x1, x2) if edge.back else (x1 + _WIDE, x2 + _WIDE)
        y1, y2 = y1 + _HIGH / 2, y2 + _HIGH / 2
        out = (20 + min(40.0, abs(y2 - y1) / 16)) * (-1 if edge.back else 1)
        bend = f"{x1 + out:.0f} {y1:.0f} {x2 + out:.0f} {y2:.0f}"
    tip = f"<title>{edge.values} value{'s' if edge.values != 1 else ''}</title>"
    kind = "edge back" if edge.back else "edge"
    path = f"M{x1:.0f} {y1:.0f}C{bend} {x2:.0f} {y2:.0f}"
    return f'<path class="{kind}" d="{path}" marker-end="url(#tip)">{tip}</path>'


def _box(box: Box, x: float, y: float, named: bool) -> str:
    operators = ", ".join(f"{count} {name}" if box.nodes > 1 else name for name, count in box.operators.items())
    first, second = (box.kind, box.name) if box.kind != "nodes" else (_first(box, operators), box.name)
    identity = ' id="culprit"' if named else ""
    kind = "culprit" if box.marks else "many" if box.nodes > 1 else box.kind
    return (
        f'<g class="box {kind}"{identity}><title>{text(f"{box.name} {operators}".strip())}</title>'
        f'<rect x="{x:.0f}" y="{y:.0f}" width="{_WIDE}" height="{_HIGH}" rx="6"/>'
        f'<text class="strong" x="{x + 10:.0f}" y="{y + 17:.0f}">{short(first)}</text>'
        f'<text x="{x + 10:.0f}" y="{y + 32:.0f}">{short(second)}</text></g>'
    )


def _first(box: Box, operators: str) -> str:
    if box.nodes == 1:
        return operators
    return f"{box.nodes} nodes, {box.marks} at fault" if box.marks else f"{box.nodes} nodes"


@dataclass(frozen=True, slots=True)
class Curve:
    """A line of a chart: points with a positive height; `steps` keeps a height until the next point."""

    name: str
    style: str
    points: Sequence[tuple[float, float]]
    steps: bool = False


def chart(title: str, below: str, curves: Sequence[Curve]) -> str:
    """Curves over one axis, the heights on a logarithmic scale; empty without any point that can be drawn."""
    heights = [_bounded(y) for curve in curves for _, y in curve.points if y > 0 and math.isfinite(y)]
    if not heights:
        return ""
    width, height, left, margin = _CHART
    low = math.floor(math.log10(min(heights)))
    high = max(low + 1, math.ceil(math.log10(max(heights))))
    last = max(1.0, *(x for curve in curves for x, _ in curve.points))

    def across(x: float) -> float:
        return left + (width - left - margin) * x / last

    def up(y: float) -> float:
        return height - margin - (height - 2 * margin) * (math.log10(_bounded(y)) - low) / (high - low)

    stride = max(1, (high - low) // 5)
    lines = [
        _rule(up(10.0**power), f"1e{power}" if abs(power) > 3 else f"{10.0**power:g}", width, left, margin)
        for power in range(low, high + 1, stride)
    ]
    drawn = [_curve(curve, across, up, up(10.0**low)) for curve in curves]
    names = [
        f'<text class="{curve.style}" x="{left + 130 * i}" y="14">{text(curve.name)}</text>'
        for i, curve in enumerate(curves)
    ]
    foot = f'<text x="{width - margin}" y="{height - 6}" text-anchor="end">{text(below)} (to {last:g})</text>'
    return _svg(width, height, title, *lines, *drawn, *names, foot)


def _bounded(y: float) -> float:
    """A positive number of which the powers of ten around it are numbers too."""
    return min(max(y, 1e-300), 1e300)


def _rule(y: float, label: str, width: float, left: float, margin: float) -> str:
    return (
        f'<path class="rule" d="M{left} {y:.1f}H{width - margin}"/>'
        f'<text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">{label}</text>'
    )


def _curve(curve: Curve, across: object, up: object, floor: float) -> str:
    """A line, or for single points stems; what is 0 lies on the floor."""
    assert callable(across)
    assert callable(up)
    places = [(across(x), up(y) if y > 0 else floor) for x, y in curve.points if math.isfinite(y)]
    if curve.steps:
        path = "".join(f"{f'H{x:.1f}V' if i else f'M{x:.1f} '}{y:.1f}" for i, (x, y) in enumerate(places))
    else:
        path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
    dots = [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.5"/>' for x, y in places] if len(places) <= 60 else []
    return f'<g class="curve {curve.style}"><path d="{path}"/>{"".join(dots)}</g>'


def _svg(width: float, height: float, title: str, *parts: str) -> str:
    return (
        f'<svg viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" height="{height:.0f}" role="img" '
        f'aria-label="{text(title)}">{"".join(parts)}</svg>'
    )
