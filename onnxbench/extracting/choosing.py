"""Choose the nodes of a piece, what it returns, and which values it starts from."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from onnx import TensorProto, helper

from onnxbench.core.border import home_of
from onnxbench.core.graph import GraphView, Node, plain_domain
from onnxbench.core.model import Model
from onnxbench.core.select import Selection, select
from onnxbench.core.values import Value, with_str
from onnxbench.core.weights import array
from onnxbench.errors import AnswerIsNo, quote
from onnxbench.extracting.finding import ends_of, graph_of, select_outward
from onnxbench.extracting.request import ExtractRequest
from onnxbench.extracting.tracing import leaving, neighbourhood, reached, trace, with_constants

#: Names that a sentence lists.
_MOST = 20


@dataclass(frozen=True, slots=True)
class Cut:
    """Where a graph is cut.

    Attributes:
        view: the graph: the main one, or a body.
        nodes: of the piece.
        outputs: what it returns.
        border: all values that it takes from outside, weights too.
        starts: those of them at which it was asked to start.
        added: inputs that nobody named, because they were to be added.
        idle: starts that it does not need.
    """

    view: GraphView
    nodes: Sequence[Node]
    outputs: Sequence[str]
    border: Sequence[str]
    starts: frozenset[str] = frozenset()
    added: Sequence[str] = ()
    idle: Sequence[str] = field(default_factory=list)


def choose(model: Model, main: GraphView, request: ExtractRequest) -> Cut:
    """What a request means in a graph.

    Raises:
        UsageError: OB201 if it says nothing, OB204 for a selection that cannot be read.
        NameNotFound: OB303 for what is not there.
        AnswerIsNo: OB102 if that is no piece, or inputs are missing.
    """
    request.validate()
    cut = _block(main, request) if request.is_block else _between(model, main, request)
    if not cut.nodes:
        names = _listed([name for name in cut.outputs if name in cut.border] or cut.outputs)
        words = f"no node of {model.label} is between start and end: {names} is where the piece would start"
        raise AnswerIsNo("OB102", words, hint=f"onnxbench inspect {model.label} --value NAME")
    return cut


def _block(main: GraphView, request: ExtractRequest) -> Cut:
    asked = [*request.nodes, *map(_operator, request.ops), *map(_scope, request.scopes)]
    view = graph_of(main, [*asked, *request.around])
    chosen = [node for text in asked for node in select(view, text).node_set(view)]
    middle = [node for text in request.around for node in select(view, text).node_set(view)]
    chosen += neighbourhood(view, middle, request.hops)
    block = [view.nodes[index] for index in sorted({node.index for node in chosen})]
    nodes = with_constants(view, block)
    outputs = leaving(view, block)
    made = {name for node in nodes for name in node.outputs}
    border = dict.fromkeys(n for node in nodes for n in node.inputs if n and n not in made)
    return Cut(view, nodes, outputs, list(border))


def _operator(text: str) -> str:
    return f"op={text}" if any(sign in text for sign in "*?[") else f"op={_exactly(text)}"


def _scope(text: str) -> str:
    return f"scope={_exactly(text)}"


def _exactly(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _between(model: Model, main: GraphView, request: ExtractRequest) -> Cut:
    view = graph_of(main, request.to or request.from_)
    starts = _starts(view, main, request.from_)
    ends = [name for text in request.to for name in _ends(ends_of(view, text))]
    if not request.to:
        dependent = reached(view, starts)
        ends = [name for name in view.outputs if name in dependent]
        if not ends:
            raise AnswerIsNo("OB102", f"no output of the graph depends on {_listed(list(starts))}", hint="--to VALUE")
    ends = list(dict.fromkeys(ends))
    nodes, border = trace(view, ends, starts)
    missing = [n for n in border if n not in starts and _is_open(model, view, n)]
    if request.from_ and missing and not request.auto_inputs:
        raise _incomplete(model, request, missing)
    idle = [name for name in starts if name not in border]
    added = missing if request.from_ else []
    return Cut(view, nodes, ends, border, frozenset(starts), added, idle)


def _ends(chosen: Selection) -> list[str]:
    """Values that were named, or what nodes make; a name that both bear is the value's."""
    if chosen.values:
        return chosen.values
    return [name for node in chosen.nodes for name in node.outputs if name]


def _starts(view: GraphView, main: GraphView, texts: Iterable[str]) -> dict[str, None]:
    found: dict[str, None] = {}
    for text in texts:
        chosen = select_outward(view, text, main)
        found.update(dict.fromkeys(chosen.values or _read(view, chosen.nodes)))
    return found


def _read(view: GraphView, nodes: Iterable[Node]) -> list[str]:
    """What nodes read that is not stored or computed from what is stored."""
    fixed = view.constants
    read = dict.fromkeys(name for node in nodes for name in node.inputs if name)
    return [name for name in read if name not in fixed and not any(name in v.initializers for v in view.outward())]


def _is_open(model: Model, view: GraphView, name: str) -> bool:
    """Whether a value from outside must be an input."""
    home = home_of(view, name)
    if home is None:
        raise AnswerIsNo("OB102", f"no graph of {model.label} makes {quote(name)}, which the piece reads")
    return name not in home.initializers and name not in home.sparse and not _is_constant(home, view, name)


def _is_constant(home: GraphView, view: GraphView, name: str) -> bool:
    return home is not view and name in home.producer and home.producer[name].proto.op_type == "Constant"


def captured_constants(model: Model, cut: Cut) -> dict[str, Value]:
    """The values of Constant nodes in the graphs around a body: they come along as constants."""
    found: dict[str, Value] = {}
    for name in cut.border:
        home = home_of(cut.view, name)
        if home is not None and name not in cut.starts and _is_constant(home, cut.view, name):
            value = _constant(model, home.producer[name])
            if value is not None:
                found[name] = value
    return found


def _constant(model: Model, node: Node) -> Value:
    if plain_domain(node.proto.domain) or len(node.proto.attribute) != 1:
        return None
    (attribute,) = node.proto.attribute
    if attribute.name == "value" and isinstance(attribute.t, TensorProto):
        return array(model, attribute.t)
    kinds = {"value_int": np.int64, "value_float": np.float32, "value_string": object}
    kind = kinds.get(attribute.name.removesuffix("s"))
    return None if kind is None else with_str(np.asarray(helper.get_attribute_value(attribute), kind))


def _incomplete(model: Model, request: ExtractRequest, missing: Sequence[str]) -> AnswerIsNo:
    where = shlex.quote(str(model.path)) if model.path is not None else "MODEL"
    said = [("--from", text) for text in request.from_] + [("--to", text) for text in request.to]
    more = " ".join(f"{option} {shlex.quote(text)}" for option, text in said)
    adds = " ".join(f"--from {shlex.quote(name)}" for name in missing) if len(missing) <= _MOST else "--auto-inputs"
    verb = "is" if len(missing) == 1 else "are"
    return AnswerIsNo(
        "OB102",
        f"the piece needs {_listed(missing)} too, which {verb} not among its inputs",
        hint=f"onnxbench extract {where} {more} {adds} -o FILE  (or --auto-inputs)",
    )


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST} more" if len(names) > _MOST else ""
    return ", ".join(map(quote, names[:_MOST])) + more
