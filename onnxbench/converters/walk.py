"""The way of one node from one opset to another, step by step."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

from onnx import AttributeProto, NodeProto

from onnxbench.converters import expand, rules, schemas
from onnxbench.converters.adapters import Adapter, adapter_of, experiment_of, why_impossible
from onnxbench.converters.facts import Facts
from onnxbench.converters.formals import declare_outputs, known_formals
from onnxbench.converters.guess import known_of
from onnxbench.converters.names import copied
from onnxbench.converters.site import Refused, Site
from onnxbench.converters.storage import Storage
from onnxbench.core.attributes import subgraphs
from onnxbench.core.graph import plain_domain
from onnxbench.folding.changes import set_nodes

_HOLDING = (AttributeProto.GRAPH, AttributeProto.GRAPHS)
#: More steps than any node takes, with all that comes in its place.
_MOST_STEPS = 20_000
#: Nodes, each with the opset that it is valid at; the last is taken first.
_Pending = list[tuple[NodeProto, int]]


@dataclass
class Path:
    """The step that a node is at, those in which it changed, and whether an adapter, or a body of the specification, had a say."""

    step: str
    taken: list[str]
    adapted: bool = False
    by_body: bool = False


def holds_graphs(node: NodeProto) -> bool:
    """Whether a node has bodies."""
    return bool(node.attribute) and any(attribute.type in _HOLDING for attribute in node.attribute)


@dataclass
class Walk:
    """The way of a node.

    Attributes:
        end: the opset that it goes to.
        facts, storage: of its graph.
        path: notes the steps.
        expanded: whether it starts with the function body that the specification gives.
    """

    end: int
    facts: Facts
    storage: Storage
    path: Path
    expanded: bool = False

    def taken(self, node: NodeProto, start: int) -> list[NodeProto]:
        """What takes the place of a node of an opset; the node may be changed.

        Raises:
            Refused: if a step cannot be taken.
        """
        pending = self._expanded(node, start) if self.expanded else [(node, start)]
        # Bodies that the model gives are at the end already; those of nodes that are made on the way are not.
        born = None if holds_graphs(node) else dict[str, int]()
        if born is not None and self.expanded:
            _notice(pending, born)
        return self._steps(pending, born)

    def _steps(self, pending: _Pending, born: dict[str, int] | None) -> list[NodeProto]:
        """Take nodes to the end.

        Args:
            pending: the nodes.
            born: the opset that the bodies of nodes which were made are of, by first output; None if none are looked at.
        """
        done: list[NodeProto] = []
        steps = 0
        while pending:
            current, at = pending.pop()
            domain = plain_domain(current.domain)
            if schemas.schema(domain, current.op_type, at) is None:
                pending += self._succeeded(current, at)
                continue
            step = schemas.step(domain, current.op_type, at, self.end)
            if step is None:
                if born and holds_graphs(current) and current.output[0] in born:
                    self._bodies(current, born[current.output[0]])
                done.append(current)
                continue
            adapter = adapter_of(step.key)
            if adapter is None and rules.is_transparent(step):
                pending.append((current, step.opset))
                continue
            steps += 1
            assert steps < _MOST_STEPS, f"{current.op_type} goes in circles"
            self.path.step = step.sentence()
            site = Site(current, step, self.end, self.facts, self.storage)
            before = current.SerializeToString()  # adapters may change the node itself
            valid_at = self._step(site, adapter)
            self.path.adapted = self.path.adapted or adapter is not None
            if len(site.made) != 1 or site.made[0].SerializeToString() != before:
                self.path.taken.append(self.path.step)
            made = [(each, valid_at) for each in reversed(site.made)]
            if born is not None:
                _notice(made, born)
            pending += made
        return done

    def _bodies(self, node: NodeProto, at: int) -> None:
        """Take what stands in the bodies of a node that was made from the opset that it was made at."""
        for _, graph in subgraphs(node):
            made: list[NodeProto] = []
            formals = [value.name for value in graph.input]
            self.facts.made.later(formals, partial(known_formals, node, graph, self.facts))
            for inner in graph.node:
                self._note([inner], at)
            for inner in graph.node:
                copy = copied(inner)
                self._bodies(copy, at)
                made += self._steps([(copy, at)], None if holds_graphs(copy) else {})
            set_nodes(graph, made)
            if node.op_type == "Scan":
                declare_outputs(graph, self.facts)

    def _succeeded(self, node: NodeProto, start: int) -> _Pending:
        """What takes the place of an operator that was an experiment."""
        known = experiment_of(node.op_type)
        if known is None or plain_domain(node.domain) or known[0] <= start:
            raise Refused(f"opset {start} has no operator {node.op_type}")
        opset, successor = known
        self.path.step = f"{node.op_type} (experimental) to {opset}"
        if self.end < opset:
            raise Refused(f"what takes its place came with opset {opset}")
        site = Site(node, schemas.experimental(node.op_type, opset), self.end, self.facts, self.storage)
        successor(site)
        for made in site.made:
            made.domain = ""
        self.path.taken.append(self.path.step)
        return [(made, opset) for made in reversed(site.made)]

    def _step(self, site: Site, adapter: Adapter | None) -> int:
        """Let one step happen; the opset at which the new nodes are valid."""
        if adapter is not None:
            rules.refuse_lacking(site)
            rules.refuse_unset(site)
            adapter(site)
            return site.valid_at
        reason = why_impossible(site.step.key)
        if reason is not None:
            site.refuse(reason)
        if site.step.new is None or site.step.new.deprecated:
            self.path.by_body = True
            return self._by_body(site)
        if not rules.decides(site.step):
            site.refuse(f"no rule is known for {site.step.sentence()}")
        rules.keep(site)
        return site.opset

    def _by_body(self, site: Site) -> int:
        body = expand.body_of(site.node, site.step.old, site.before, site.facts)
        if body is None:
            rules.keep(site)
            raise AssertionError("a step below the introduction is refused")
        nodes, opset = expand.inlined(site.node, body, site.storage.fresh)
        site.made += nodes
        return self._note(nodes, opset)

    def _note(self, nodes: Iterable[NodeProto], opset: int) -> int:
        for node in nodes:
            self.facts.made.later(node.output, partial(known_of, node, opset, self.facts))
        return opset

    def _expanded(self, node: NodeProto, start: int) -> _Pending:
        version = schemas.schema(plain_domain(node.domain), node.op_type, start)
        body = expand.body_of(node, version, start, self.facts) if version is not None else None
        self.path.step = f"{node.op_type} expanded"
        if body is None:
            raise Refused(f"the specification of {node.op_type} at opset {start} gives no function body for it")
        nodes, opset = expand.inlined(node, body, self.storage.fresh)
        self._note(nodes, opset)
        self.path.taken.append(self.path.step)
        self.path.by_body = True
        return [(inner, opset) for inner in reversed(nodes)]


def _notice(made: _Pending, born: dict[str, int]) -> None:
    """Note at which opset nodes with bodies first stand there."""
    for node, at in made:
        if holds_graphs(node) and node.output:
            born.setdefault(node.output[0], at)
