"""Find what selections mean, in the main graph or in a body of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from onnxbench.core.graph import GraphView
from onnxbench.core.select import Selection, select
from onnxbench.errors import AnswerIsNo, NameNotFound, quote

if TYPE_CHECKING:
    from onnxbench.inspecting.places import Place


def graph_of(main: GraphView, texts: Sequence[str]) -> GraphView:
    """The graph in which the texts select something: the main one, or else the one body that has them.

    Raises:
        NameNotFound: OB303 for a text that selects nothing, or what lives in a function or in several bodies.
        AnswerIsNo: OB102 for texts that mean different graphs.
    """
    found = [(text, _home(main, text)) for text in texts]
    for text, home in found[1:]:
        if home.graph is not found[0][1].graph:
            words = f"{quote(found[0][0])} and {quote(text)} live in different graphs, and a piece is cut out of one"
            raise AnswerIsNo("OB102", words, hint="extract them one by one")
    return found[0][1] if found else main


def select_outward(view: GraphView, text: str, main: GraphView) -> Selection:
    """What a text selects in a graph, or else in the graphs around it, which a body sees out to.

    Raises:
        NameNotFound: OB303 if nothing.
        AnswerIsNo: OB102 for what is in another graph.
    """
    for scope in view.outward():
        try:
            return ends_of(scope, text)
        except NameNotFound:
            continue
    _home(main, text)
    raise AnswerIsNo("OB102", f"{quote(text)} lives in another graph than the rest of the piece, which cannot read it")


def ends_of(view: GraphView, text: str) -> Selection:
    """What a text selects where an end is meant: of a name that a node has too, the value."""
    return Selection([], [text]) if view.defines(text) else select(view, text)


def _home(main: GraphView, text: str) -> GraphView:
    try:
        ends_of(main, text)
    except NameNotFound as absent:
        return _inside(main, text, absent)
    return main


def _inside(main: GraphView, text: str, absent: NameNotFound) -> GraphView:
    from onnxbench.core.shapes import Shapes
    from onnxbench.inspecting.places import places

    inside = [place for place in places(main, Shapes()) if place.view is not main and _has(place.view, text)]
    bodies = [place for place in inside if not any(scope.isolated for scope in place.view.outward())]
    if len(bodies) == 1:
        return bodies[0].view
    if bodies:
        raise NameNotFound(
            "OB303", f"{quote(text)} is in several bodies: {_words(bodies)}", hint="name what only one of them has"
        )
    if inside:
        calls = [scope.owner for scope in inside[0].view.outward() if scope.isolated and scope.owner is not None]
        hint = f"a function is cut as a whole: name its call, {calls[0].label}" if calls else ""
        raise NameNotFound("OB303", f"{quote(text)} lives inside the {inside[0].where}, not in a graph", hint=hint)
    raise absent


def _words(found: Sequence[Place]) -> str:
    return ", ".join(place.where for place in found[:5]) + (", ..." if len(found) > 5 else "")


def _has(view: GraphView, text: str) -> bool:
    try:
        select(view, text)
    except NameNotFound:
        return False
    return True
