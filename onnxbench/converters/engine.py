"""Take each node of a model from one opset to another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from onnx import FunctionProto, GraphProto, ModelProto, NodeProto

from onnxbench.converters import rules, schemas
from onnxbench.converters.adapters import experiment_of
from onnxbench.converters.facts import Facts
from onnxbench.converters.forms import Rewritten
from onnxbench.converters.names import Names, copied, every_name_of, label_of, named
from onnxbench.converters.options import ConvertOptions
from onnxbench.converters.places import Places
from onnxbench.converters.report import Refusal, Rewrite
from onnxbench.converters.site import Open, Refused
from onnxbench.converters.storage import ANY_CONSTANT, Storage
from onnxbench.converters.walk import Path, Walk, holds_graphs
from onnxbench.core.attributes import subgraphs
from onnxbench.core.graph import FunctionKey, call_key, function_key, plain_domain
from onnxbench.core.model import Model
from onnxbench.errors import escape, quote
from onnxbench.folding.changes import set_nodes
from onnxbench.folding.sweep import called_functions

#: A node, its place in its graph, what is known there, and opsets by domain.
Stuck = tuple[NodeProto, int, Facts, dict[str, int]]


@dataclass
class Engine:
    """One conversion.

    Attributes:
        source: the model as it stands; facts come from it.
        result: a copy of its protobuf, changed in place.
        options: what is asked.
        stuck: nodes that were refused, with where they stand.
    """

    source: Model
    result: ModelProto
    options: ConvertOptions
    rewrites: list[Rewrite] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)
    rewritten: list[Rewritten] = field(default_factory=list)
    nodes: int = 0
    refused_functions: set[FunctionKey] = field(default_factory=set)
    stuck: list[Stuck] = field(default_factory=list)

    def run(self) -> None:
        """Convert every graph, body, function and training graph; what is refused stays as it is."""
        places = Places(self.source, self.options)
        main = self.source.proto.graph
        self._holder(main.node, self.result.graph, places.main(), "", places.opsets)
        called = called_functions(self.source.proto)
        for function, copy in zip(self.source.proto.functions, self.result.functions, strict=True):
            where, before = named(function, called), len(self.refusals)
            self._holder(function.node, copy, places.function(function), where, places.opsets_of(function))
            if len(self.refusals) > before:
                self.refused_functions.add(function_key(function))
        for number, (info, twin) in enumerate(
            zip(self.source.proto.training_info, self.result.training_info, strict=True)
        ):
            for name in ("initialization", "algorithm"):
                graph = getattr(info, name)
                where = f"training_info[{number}].{name}"
                self._holder(graph.node, getattr(twin, name), places.training(graph, name), where, places.opsets)

    def _holder(
        self,
        nodes: Sequence[NodeProto],
        holder: GraphProto | FunctionProto,
        facts: Facts,
        where: str,
        opsets: dict[str, int],
    ) -> None:
        """Convert the nodes of a graph or function; `holder` is where the results go."""
        storage = self._storage(holder, self.options.end("", opsets.get("", 1)))
        made: list[NodeProto] = []
        changed = False
        for index, (node, copy) in enumerate(zip(nodes, holder.node, strict=True)):
            self.nodes += 1
            if holds_graphs(node):
                for (label, body), (_, target) in zip(subgraphs(node), subgraphs(copy), strict=True):
                    inner = f"{where}/{label_of(node)}:{label}" if where else f"{label_of(node)}:{label}"
                    self._holder(body.node, target, Places.body(facts, index, label), inner, opsets)
            before = len(self.refusals)
            converted = self._node(node, copy, index, facts, storage, where, opsets)
            if len(self.refusals) > before:
                self.stuck.append((node, index, facts, opsets))
            if converted is None:
                made.append(copy)
            else:
                made += converted
                changed = True
        if changed or storage.tensors:
            constants = storage.tensors
            if storage.as_initializers and isinstance(holder, GraphProto):
                set_nodes(holder, made)
                holder.initializer.extend(constants.values())
            else:
                set_nodes(holder, [*storage.nodes(), *made])

    def _storage(self, holder: GraphProto | FunctionProto, opset: int) -> Storage:
        # Before IR version 4 an initializer has to be an input; before opset 9 a Constant gives floats only.
        ir = self.result.ir_version if self.options.ir is None else self.options.ir
        as_initializers = isinstance(holder, GraphProto) and (ir >= 4 or opset < ANY_CONSTANT)
        return Storage(as_initializers, self.names, opset)

    @cached_property
    def names(self) -> Names:
        return Names(lambda: every_name_of(self.source.proto))

    def _node(
        self,
        node: NodeProto,
        copy: NodeProto,
        index: int,
        facts: Facts,
        storage: Storage,
        where: str,
        opsets: dict[str, int],
    ) -> list[NodeProto] | None:
        """What takes a node's place; None if it stays as it is, or is refused."""
        domain = plain_domain(node.domain)
        start = opsets.get(domain)
        if start is None:
            return None
        version = schemas.schema(domain, node.op_type, start)
        wanted = node.op_type in self.options.expand and version is not None
        if domain not in self.options.targets and not wanted:
            return None
        end = self.options.end(domain, start)
        if self.is_call(node):
            self._refuse_ambiguous(node, where, domain, start, end)
            return None
        if start == end and not wanted:
            return None
        if version is None and not is_experiment(domain, node.op_type, start):
            reason = f"opset {start} has no operator {quote(node.op_type)}"
            self._refuse(node, where, f"{node.op_type} {start} to {end}", reason)
            return None
        if version is not None and not wanted and rules.stands(domain, node.op_type, start, end):
            return None
        before = len(storage.tensors)
        path = Path(node.op_type, [])
        try:
            made = self.walk(copied(copy), start, end, facts, storage, index, path)
        except Refused as error:
            storage.forget(before)
            self._refuse(node, where, path.step, escape(str(error)))
            return None
        stays = not path.taken or (len(made) == 1 and made[0] == copy)
        if stays and not path.adapted:
            return None
        results = tuple(inner.op_type for inner in made)
        entry = Rewrite(label_of(node), node.op_type, where, tuple(path.taken), results)
        self.rewritten.append(Rewritten(node, made, (start, end), facts, storage.tensors, index, entry, path.by_body))
        if stays:
            return None
        self.rewrites.append(entry)
        return made

    def _refuse_ambiguous(self, node: NodeProto, where: str, domain: str, start: int, end: int) -> None:
        """Refuse a call of a function that has the name of an operator."""
        if start != end and any(schemas.schema(domain, node.op_type, opset) for opset in (start, end)):
            reason = "a function of the model has the name of an operator, and runtimes do not agree which is meant"
            self._refuse(node, where, f"{node.op_type} {start} to {end}", reason)

    def walk(
        self,
        node: NodeProto,
        start: int,
        end: int,
        facts: Facts,
        storage: Storage,
        index: int,
        path: Path | None = None,
    ) -> list[NodeProto]:
        """Take a node, and what comes in its place, to the end.

        Args:
            node: a copy, which may be changed.
            start, end: opsets of its domain.
            facts, storage: of its graph.
            index: its place in the graph.
            path: notes the steps.

        Raises:
            Refused: if a step cannot be taken, or the node not be read.
        """
        path = path if path is not None else Path(node.op_type, [])
        try:
            return self._walked(node, start, end, facts, storage, index, path)
        except AssertionError as error:
            raise Refused(f"a fault of onnxbench, not of the model: {error}") from error
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            # Of a node that breaks the rules of its operator nobody can say how a rule reads it.
            raise Refused(f"the node cannot be read: {type(error).__name__}: {error}"[:200]) from error

    def _walked(
        self, node: NodeProto, start: int, end: int, facts: Facts, storage: Storage, index: int, path: Path
    ) -> list[NodeProto]:
        """`walk`; a node of a function whose attributes its calls give is walked as they bind it, if they all agree."""
        before = len(storage.tensors)
        walk = Walk(end, facts, storage, path, node.op_type in self.options.expand)
        try:
            return walk.taken(node, start)
        except Open:
            bound = facts.bound(index)
            if bound is None:
                raise
            storage.forget(before)
            path.adapted = path.by_body = False
            path.taken[:] = [path.step]  # that it holds what its calls give is a change, whatever else happens
            copy = NodeProto()
            copy.CopyFrom(bound)
            made = walk.taken(copy, start)
            path.taken[:] = dict.fromkeys(path.taken)
            return made

    def is_call(self, node: NodeProto) -> bool:
        """Whether a node calls a function of the model."""
        return call_key(node) in self._functions

    @cached_property
    def _functions(self) -> set[FunctionKey]:
        return {function_key(function) for function in self.source.proto.functions}

    def _refuse(self, node: NodeProto, where: str, step: str, reason: str) -> None:
        self.refusals.append(Refusal(label_of(node), node.op_type, where, step, reason))


def is_experiment(domain: str, op: str, opset: int) -> bool:
    """Whether files of an opset hold an operator that onnx does not know any more, and that has successors."""
    known = experiment_of(op) if not domain else None
    return known is not None and opset < known[0]
