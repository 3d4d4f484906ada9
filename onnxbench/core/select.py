"""Select nodes and values of a graph by name, pattern, operator, scope or dtype."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fnmatch import translate
from typing import TypeVar

from onnx import GraphProto, NodeProto, TensorProto

from onnxbench.core.attributes import subgraphs
from onnxbench.core.graph import GraphView, Node
from onnxbench.core.nearest import nearest, not_found
from onnxbench.core.scopes import exported_scopes
from onnxbench.core.select_grammar import Combined, Expression, Term, parse
from onnxbench.core.values import Dtype, dtype_in, dtype_name, dtype_of
from onnxbench.errors import NameNotFound, UsageError, quote

T = TypeVar("T")

#: Operators that a hint lists.
_SOME = 12


@dataclass(frozen=True, slots=True)
class Selection:
    """What a text selects: nodes in file order, values in the order of `GraphView.values`."""

    nodes: list[Node]
    values: list[str]

    def node_set(self, view: GraphView) -> list[Node]:
        """The nodes, and those that make the values, in file order."""
        found = {node.index for node in self.nodes}
        found |= {view.producer[name].index for name in self.values if name in view.producer}
        return [view.nodes[i] for i in sorted(found)]


def select(view: GraphView, text: str) -> Selection:
    """What a text selects; a text that is a name, whole, is that name.

    `and`, `or` and `not` work on nodes and on values apart. A term that can only mean nodes (`op=`, `scope=`, `node=`)
    says nothing of values, so `x and op=Conv` selects nodes and `not op=Conv` the other nodes, no values.

    Raises:
        UsageError: OB204 if the text cannot be read.
        NameNotFound: OB303 for an exact name that is not there, or if nothing is selected.
    """
    exact = _named(view, text)
    picked = exact if exact is not None else _evaluated(view, parse(text))
    if not picked.nodes and not picked.values:
        raise _nothing(view, text)
    values = list(picked.values or ())
    if len(values) > 1:
        values = [name for name in view.values() if name in picked.values]  # type: ignore[operator]
    return Selection([view.nodes[i] for i in sorted(picked.nodes or ())], values)


@dataclass(frozen=True, slots=True)
class _Picked:
    """Node indices and value names; None where a term says nothing of them."""

    nodes: frozenset[int] | None
    values: frozenset[str] | None


def _evaluated(view: GraphView, expression: Expression) -> _Picked:
    if isinstance(expression, Term):
        return _term(view, expression)
    parts = [_evaluated(view, part) for part in expression.parts]
    if expression.word == "not":
        return _rest(view, parts[0])
    node_parts = [part.nodes for part in parts if part.nodes is not None]
    value_parts = [part.values for part in parts if part.values is not None]
    return _Picked(_joined(expression, node_parts), _joined(expression, value_parts))


def _joined(expression: Combined, parts: list[frozenset[T]]) -> frozenset[T] | None:
    if expression.word == "or":
        return frozenset[T]().union(*parts) if parts else None
    if len(parts) < len(expression.parts):
        return None
    return parts[0].intersection(*parts[1:])


def _rest(view: GraphView, part: _Picked) -> _Picked:
    nodes = None if part.nodes is None else frozenset(range(len(view.nodes))) - part.nodes
    values = None if part.values is None else frozenset(view.values()) - part.values
    return _Picked(nodes, values)


def _named(view: GraphView, name: str) -> _Picked | None:
    """Nodes and values that bear exactly this name; None if there are none."""
    nodes = frozenset(node.index for node in view.by_name.get(name, ())) if name else frozenset()
    values = frozenset([name]) if name and view.defines(name) else frozenset()
    return _Picked(nodes or None, values or None) if nodes or values else None


def _term(view: GraphView, term: Term) -> _Picked:
    if term.key == "op":
        return _where(view, _operator_test(term))
    if term.key == "scope":
        return _where(view, _scope_test(term.text))
    if term.key == "dtype":
        return _of_dtype(view, term.text)
    return _by_name(view, term)


def _by_name(view: GraphView, term: Term) -> _Picked:
    exact = _named(view, term.text)
    if exact is not None and (picked := _only(exact, term.key)) is not None:
        return picked
    if term.quoted or not any(sign in term.text for sign in "*?["):
        raise _absent(view, term)
    matches = re.compile(translate(term.text)).match
    nodes = frozenset(node.index for node in view.nodes if node.proto.name and matches(node.proto.name))
    values = frozenset(name for name in view.values() if matches(name))
    return _Picked(None if term.key == "value" else nodes, None if term.key == "node" else values)


def _only(exact: _Picked, key: str) -> _Picked | None:
    if key == "name":
        return exact
    if key == "node":
        return None if exact.nodes is None else _Picked(exact.nodes, None)
    return None if exact.values is None else _Picked(None, exact.values)


def _where(view: GraphView, test: Callable[[NodeProto], bool]) -> _Picked:
    return _Picked(frozenset(node.index for node in view.nodes if test(node.proto)), None)


def _operator_test(term: Term) -> Callable[[NodeProto], bool]:
    domain, qualified, operator = term.text.rpartition("::")
    matches = re.compile(re.escape(operator) + r"\Z" if term.quoted else translate(operator)).match
    domain = "" if domain == "ai.onnx" else domain

    def test(node: NodeProto) -> bool:
        own = "" if node.domain == "ai.onnx" else node.domain
        return matches(node.op_type) is not None and (not qualified or own == domain)

    return test


def _scope_test(scope: str) -> Callable[[NodeProto], bool]:
    scope = scope.strip("/.")

    def inside(name: str) -> bool:
        name = name.lstrip("/.")
        return name == scope or name.startswith((f"{scope}/", f"{scope}."))

    def test(node: NodeProto) -> bool:
        name = node.name or next((output for output in node.output if output), "")
        return inside(name) or any(inside(other) for other in exported_scopes(node))

    return test


def _of_dtype(view: GraphView, name: str) -> _Picked:
    codes = {key.casefold(): code for key, code in TensorProto.DataType.items() if code != TensorProto.UNDEFINED}
    known: dict[str, Dtype | None] = {key: dtype_of(code) for key, code in codes.items()}
    known.update((dtype_name(dtype), dtype) for dtype in list(known.values()) if dtype is not None)
    wanted = known.get(name.casefold())
    if wanted is None:
        close = nearest(name, known)
        raise UsageError(
            "OB204", f"no dtype is called {quote(name)}", hint=f"did you mean dtype={close}?" if close else ""
        )
    stored = {name: tensor.data_type for name, tensor in view.initializers.items()}
    stored.update((name, tensor.values.data_type) for name, tensor in view.sparse.items())
    values = {value for value, declared in view.types.items() if view.defines(value) and dtype_in(declared) == wanted}
    values |= {value for value, code in stored.items() if dtype_of(code) == wanted}
    nodes = {view.producer[value].index for value in values if value in view.producer}
    return _Picked(frozenset(nodes), frozenset(values))


def _known(view: GraphView, key: str) -> Iterable[str]:
    return [*(view.by_name if key != "value" else ()), *(view.values() if key != "node" else ())]


def _absent(view: GraphView, term: Term) -> NameNotFound:
    kind = {"node": "node", "value": "value"}.get(term.key, "node or value")
    for node in view.nodes:
        for label, graph in subgraphs(node.proto):
            if _holds(graph, term.text):
                text = f"{quote(term.text)} lives inside the {label} of {node.label}, not in this graph"
                return NameNotFound("OB303", text, hint=f"select the node around it: {node.label}")
    return not_found(kind, term.text, _known(view, term.key))


def _holds(graph: GraphProto, name: str) -> bool:
    own = (*graph.input, *graph.initializer)
    if any(item.name == name for item in own):
        return True
    return any(
        node.name == name or name in node.output or any(_holds(inner, name) for _, inner in subgraphs(node))
        for node in graph.node
    )


def _nothing(view: GraphView, text: str) -> NameNotFound:
    asked = re.search(r"\bop=\"?([^\s\",()]+)", text)
    hint = _operators_hint(view, asked[1]) if asked else ""
    if not asked and (close := nearest(text, _known(view, "name"))):
        hint = f"did you mean {quote(close)}?"
    return NameNotFound("OB303", f"nothing in the model is {quote(text)}", hint=hint)


def _operators_hint(view: GraphView, asked: str) -> str:
    operators = sorted({node.proto.op_type for node in view.nodes})
    close = nearest(asked.rpartition("::")[2], operators)
    if close is not None:
        return f"did you mean {quote(f'op={close}')}?"
    more = ", ..." if len(operators) > _SOME else ""
    return f"its operators are {', '.join(map(quote, operators[:_SOME]))}{more}" if operators else ""
