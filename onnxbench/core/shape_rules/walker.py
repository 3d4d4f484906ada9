"""The walk over a model's nodes in order, each by its rule, or else by onnx's own inference of that node."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypeAlias

from onnx import TypeProto

from onnxbench.core.graph import GraphView, Node
from onnxbench.core.shape_rules import bodies
from onnxbench.core.shape_rules.facts import NOTHING, Dim, Fact, to_type
from onnxbench.core.shape_rules.making import stored
from onnxbench.core.shape_rules.merging import is_blank, merge, read_type
from onnxbench.core.shape_rules.registry import rules
from onnxbench.core.shape_rules.single import infer_single, without_zeros
from onnxbench.core.shape_rules.site import Site
from onnxbench.core.shape_rules.symbols import Path, Symbols
from onnxbench.core.symbolic import Expr, Size
from onnxbench.errors import ModelError

#: Domain, operator, attributes, identities of the facts of inputs, number of outputs.
Likeness: TypeAlias = "tuple[str, str, tuple[bytes, ...], tuple[int, ...], int]"


@dataclass(slots=True)
class Scope:
    """One graph, body or call while it is walked.

    Attributes:
        twin: the same graph as onnx's inference of the whole model left it.
        alike: what was made of nodes that nothing sets apart but their names; networks repeat themselves.
        learnt: the state of what was known of symbols when that was made.
    """

    view: GraphView
    path: Path = ()
    parent: Scope | None = None
    twin: GraphView | None = None
    facts: dict[str, Fact] = field(default_factory=dict)
    alike: dict[Likeness, tuple[Sequence[Fact | None], Sequence[Fact]]] = field(default_factory=dict)
    learnt: int = 0

    def find(self, name: str) -> Fact:
        """What is known of a value that is visible here."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.facts:
                return scope.facts[name]
            scope = None if scope.view.isolated else scope.parent
        return NOTHING


@dataclass(slots=True)
class Walker:
    """One walk.

    Attributes:
        symbols: the names of sizes.
        trusting: whether declared dims count where nothing was computed.
        single: whether onnx's inference of single nodes may be asked; it may hang or die.
        facts: what is known, by body and value name.
        trips: how often Loop and Scan nodes run, by body and node index.
        conflicts: declared types that contradict what was computed.
        shared: every fact once, so that equal ones are the same; `ours` has the identities of those.
    """

    symbols: Symbols
    trusting: bool = True
    single: bool = True
    facts: dict[Path, dict[str, Fact]] = field(default_factory=dict)
    trips: dict[tuple[Path, int], Size] = field(default_factory=dict)
    conflicts: dict[tuple[Path, str], tuple[TypeProto, TypeProto]] = field(default_factory=dict)
    shared: dict[Fact, Fact] = field(default_factory=dict)
    ours: set[int] = field(default_factory=set)

    def main(self, view: GraphView, twin: GraphView | None) -> None:
        """Walk the main graph and all bodies and calls in it."""
        scope = Scope(view, twin=twin)
        for name, info in view.inputs.items():
            fact = read_type(info.type, self.symbols.read)
            for dim in fact.dims or ():
                self.symbols.given.update(dim.symbols if isinstance(dim, Expr) else ())
            scope.facts[name] = self.share(self.complete(scope, name, fact))
        self.symbols.fed = frozenset(self.symbols.made)
        self.walk(scope)
        for facts in self.facts.values():
            for name, fact in facts.items():
                facts[name] = self.resolved(fact)

    def walk(self, scope: Scope) -> None:
        """Walk one graph whose inputs have their facts."""
        view = scope.view
        for name, proto in view.initializers.items():
            if name not in view.inputs or view.model.ir_version < 4:
                scope.facts[name] = stored(proto)
        for name, sparse in view.sparse.items():
            scope.facts.setdefault(name, Fact(sparse.values.data_type, tuple(sparse.dims)))
        self.facts[scope.path] = scope.facts
        before, self.symbols.here = self.symbols.here, scope.path
        try:
            order: Sequence[Node] = view.order
        except ModelError:
            order = view.nodes
        for node in order:
            self._visit(scope, node)
        self.symbols.here = before

    def enter(self, scope: Scope, node: Node, label: str, view: GraphView, *, conditional: bool) -> Scope:
        """The scope of a body of a node, or of the function that it calls."""
        path = (*scope.path, (node.index, label))
        if conditional:
            self.symbols.conditional.add(path)
        twin = None
        if scope.twin is not None and not view.isolated:
            twin = dict(scope.twin.bodies(scope.twin.nodes[node.index])).get(label)
        return Scope(view, path, scope, twin)

    def _visit(self, scope: Scope, node: Node) -> None:
        inputs = [self.resolved(scope.find(name)) if name else None for name in node.proto.input]
        made = self._made_before(scope, node, inputs)
        for place, name in enumerate(node.outputs):
            if name:
                fact = made[place] if place < len(made) else NOTHING
                scope.facts[name] = self.settle(scope, name, fact)

    def _made_before(self, scope: Scope, node: Node, inputs: Sequence[Fact | None]) -> Sequence[Fact]:
        """What the node makes, taken over from a node like it where that left nothing open."""
        if len(node.inputs) != len(inputs):  # its bodies read more
            return self._made(scope, node, inputs)
        if scope.learnt != self.symbols.learnt:
            scope.learnt = self.symbols.learnt
            scope.alike.clear()
        proto = node.proto
        attributes = proto.attribute
        known = tuple(a.SerializeToString(deterministic=True) for a in attributes) if attributes else ()
        likeness = (proto.domain, proto.op_type, known, tuple(map(id, inputs)), len(node.outputs))
        found = scope.alike.get(likeness)
        if found is not None:
            return found[1]
        made = [self.share(fact) for fact in self._made(scope, node, inputs)]
        if scope.learnt == self.symbols.learnt and not proto.overload and all(map(_is_settled, made)):
            scope.alike[likeness] = (inputs, made)  # which keeps the facts alive, and so their identities
        return made

    def _made(self, scope: Scope, node: Node, inputs: Sequence[Fact | None]) -> Sequence[Fact]:
        domain = "" if node.proto.domain == "ai.onnx" else node.proto.domain
        version = scope.view.opsets.get(domain, 1)
        site = Site(node.proto, version, inputs, self.symbols)
        if scope.view.function_of(node) is not None:
            return bodies.call(self, scope, node, site)
        special = bodies.SPECIAL.get(node.proto.op_type) if domain == "" else None
        rule = rules().get((domain, node.proto.op_type))
        made: Sequence[Fact] | None = None
        try:
            if special is not None:
                made = special(self, scope, node, site)
            elif rule is not None:
                made = rule(site)
        except (IndexError, ValueError, TypeError, ZeroDivisionError, AttributeError, ModelError):
            made = None  # a node that is no valid one; what the file declares is all there is
        count = len(node.outputs)
        if self.single and (made is None or any(_is_vague(fact) for fact in made[:count])):
            found = infer_single(node.proto, domain, scope.view.opsets, inputs)
            made = [_either(made, found, place) for place in range(count)]
        return made or ()

    def settle(self, scope: Scope, name: str, fact: Fact) -> Fact:
        """What was computed, completed by what the file and onnx say of it."""
        before, self.symbols.here = self.symbols.here, scope.path  # inputs of a body are settled before it is walked
        settled = self._settled(scope, name, self.resolved(fact))
        self.symbols.here = before
        return settled

    def _settled(self, scope: Scope, name: str, fact: Fact) -> Fact:
        bare = fact
        kind = None if scope.view.isolated else scope.view.types.get(name)
        if kind is not None:
            declared = read_type(kind, partial(self.symbols.read_in, scope.path))
            if not self.trusting and declared.dims is not None:
                declared = dataclasses.replace(declared, dims=None)
            fact = self._merged(scope, name, fact, declared, kind)
        twin = scope.twin.types.get(name) if scope.twin is not None else None
        if twin is not None:
            told = read_type(twin, partial(self._known_only, scope.path))
            fact, _ = merge(self.symbols, fact, without_zeros(told), False)
        fact = self.complete(scope, name, fact)
        return fact if fact is bare else self.share(fact)

    def share(self, fact: Fact) -> Fact:
        """The fact that stands for all that are equal to it."""
        if id(fact) in self.ours:
            return fact
        kept = self.shared.setdefault(fact, fact)
        self.ours.add(id(kept))
        return kept

    def _merged(self, scope: Scope, name: str, fact: Fact, declared: Fact, kind: TypeProto) -> Fact:
        merged, clash = merge(self.symbols, fact, declared, is_main=not scope.path)
        if clash:
            computed = to_type(fact)
            if computed is not None:
                self.conflicts[scope.path, name] = (kind, computed)
        return merged

    def _known_only(self, path: Path, text: str) -> Dim:
        """A dim_param of onnx's result: one that the file has, not one that onnx made up."""
        return self.symbols.resolve(self.symbols.read_in(path, text)) if text in self.symbols.texts else None

    def complete(self, scope: Scope, name: str, fact: Fact) -> Fact:
        """The fact with a new symbol for each dim that nobody knows."""
        if fact.dims is None or fact.kind not in ("tensor", "sparse"):
            return fact
        if None in fact.dims:
            dims = tuple(
                self.symbols.resolve(self.symbols.fresh(scope.path, name, axis)) if dim is None else dim
                for axis, dim in enumerate(fact.dims)
            )
            fact = dataclasses.replace(fact, dims=dims)
        self.symbols.seen.update(dim for dim in fact.dims or () if isinstance(dim, Expr))
        return fact

    def resolved(self, fact: Fact) -> Fact:
        """The fact with what has been learnt of its symbols since."""
        if not self.symbols.bindings:
            return fact
        resolve = self.symbols.resolve
        changes: dict[str, object] = {}
        if fact.dims is not None and any(isinstance(dim, Expr) for dim in fact.dims):
            changes["dims"] = tuple(resolve(dim) for dim in fact.dims)
        if fact.data is not None and any(isinstance(value, Expr) for value in fact.data):
            changes["data"] = tuple(resolve(v) if isinstance(v, Expr) else v for v in fact.data)
        if fact.inner is not None:
            changes["inner"] = self.resolved(fact.inner)
        if fact.items is not None:
            changes["items"] = tuple(self.resolved(item) for item in fact.items)
        return dataclasses.replace(fact, **changes) if changes else fact  # type: ignore[arg-type]


def _is_settled(fact: Fact) -> bool:
    return fact.kind == "tensor" and fact.element is not None and fact.dims is not None and None not in fact.dims


def _is_vague(fact: Fact) -> bool:
    return fact.kind == "tensor" and (fact.element is None or fact.dims is None)


def _either(made: Sequence[Fact] | None, found: Sequence[Fact], place: int) -> Fact:
    """Our own result where there is one, completed by onnx's."""
    ours = made[place] if made is not None and place < len(made) else NOTHING
    theirs = found[place] if place < len(found) else NOTHING
    if is_blank(ours) or theirs.kind != ours.kind or ours.kind != "tensor":
        return theirs if is_blank(ours) else ours
    element = ours.element if ours.element is not None else theirs.element
    return Fact(element, ours.dims if ours.dims is not None else theirs.dims, ours.data)
