"""What passes propose for one graph, and how it is done."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from onnx import FunctionProto, GraphProto, NodeProto, TensorProto, ValueInfoProto

from onnxbench.core.graph import Node
from onnxbench.core.hoist import hoist, renamed
from onnxbench.folding import stored
from onnxbench.folding.report import Removal
from onnxbench.folding.scope import Scope, label_in


@dataclass
class Changes:
    """Proposals for one scope, made on one view of it.

    Attributes:
        removals: what goes, and why, in the order it was proposed.
        gone: indices of nodes that go.
        renames: readers of the first name read the second from now on.
        retitled: the node that makes the first name makes it under the second.
        constants: values that are stored from now on.
        replaced: nodes with other inputs or attributes, by index.
        added: nodes that come after others, by the index of those.
        declared: what is said of values that are new.
        hoists: the truth of conditions whose `If` gives way to a branch; nothing else is done then.
    """

    scope: Scope
    removals: list[Removal] = field(default_factory=list)
    gone: set[int] = field(default_factory=set)
    renames: dict[str, str] = field(default_factory=dict)
    retitled: dict[str, str] = field(default_factory=dict)
    constants: dict[str, TensorProto] = field(default_factory=dict)
    replaced: dict[int, NodeProto] = field(default_factory=dict)
    added: dict[int, list[NodeProto]] = field(default_factory=dict)
    declared: list[ValueInfoProto] = field(default_factory=list)
    hoists: dict[str, bool] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.removals)

    def is_open(self, node: Node) -> bool:
        """Whether no pass has laid hands on a node yet."""
        return node.index not in self.gone and node.index not in self.replaced

    def remove(self, node: Node, rule: str, reason: str) -> None:
        """Let a node go; whoever proposes it makes sure that its outputs are there, or read by nobody."""
        self.gone.add(node.index)
        self._note(node, rule, reason)

    def store(self, name: str, tensor: TensorProto) -> None:
        """Store a value, instead of computing it."""
        self.constants[name] = stored.named(tensor, name)

    def replace(self, node: Node, proto: NodeProto, rule: str, reason: str) -> None:
        """Put another node in a node's place; it makes the same values."""
        self.replaced[node.index] = proto
        self._note(node, rule, reason, kind="rewritten")

    def add_after(self, node: Node, proto: NodeProto) -> None:
        """Put a new node behind one that stays."""
        self.added.setdefault(node.index, []).append(proto)

    def hoist(self, node: Node, truth: bool, rule: str, reason: str) -> None:
        """Put a branch in the place of an `If`; the others of the graph with the same condition go like it."""
        self.hoists[node.proto.input[0]] = truth
        self._note(node, rule, reason)

    def bypass(self, node: Node, rule: str, reason: str, place: int = 0) -> bool:
        """Let a node go whose first output is the input at a place; False if the name of its output has to stay.

        A graph's output keeps its name: then the node before makes it, if that is possible.
        """
        source, target = node.proto.input[place], node.proto.output[0]
        source = self.renames.get(source, source)
        if target in self.retitled or not self.may_rename(target, source):
            return False  # what makes an output by now stays until the next round
        if target not in self.scope.outputs:
            self.renames[target] = source
            self._shorten(target, source)
        elif not self._retitle(source, target):
            return False
        self.remove(node, rule, reason)
        return True

    def may_rename(self, old: str, new: str) -> bool:
        """Whether readers of one name can read another: no body calls a value of its own like that, and no note names it."""
        return old not in self.scope.annotated and new not in self.scope.inner_names

    def _shorten(self, target: str, source: str) -> None:
        for name, to in self.renames.items():
            if to == target:
                self.renames[name] = source

    def _retitle(self, source: str, target: str) -> bool:
        view = self.scope.view
        maker = view.producer.get(source)
        taken = source in self.scope.outputs or source in self.retitled or source in self.constants
        if maker is None or taken or source in view.inputs or not self.is_open(maker):
            return False
        if not self.may_rename(source, target):
            return False
        if self.scope.function is not None and source in self.scope.function.input:
            return False
        self.retitled[source] = target
        self.renames[source] = target
        self._shorten(source, target)
        return True

    def _note(self, node: Node, rule: str, reason: str, kind: str = "node") -> None:
        name = label_in(self.scope, node)
        self.removals.append(Removal(kind, name, node.proto.op_type, self.scope.where, rule, reason))


def apply(changes: Changes) -> None:
    """Do what was proposed, in the graph or function of the scope; nodes that stay keep their order."""
    scope = changes.scope
    graph = scope.view.graph
    if changes.hoists:
        _hoist(scope, changes.hoists)
    else:
        _rebuild(changes, graph)
    write_back(scope)


def _hoist(scope: Scope, truths: Mapping[str, bool]) -> None:
    """Put branches in place; where there can be no initializers, what they store becomes nodes."""
    graph = scope.view.graph
    stored_before, sparse_before = len(graph.initializer), len(graph.sparse_initializer)
    hoist(graph, truths, avoid=scope.names_in_use())
    if scope.holds_initializers:
        return
    made = [stored.node(tensor, tensor.name) for tensor in graph.initializer[stored_before:]]
    made += [stored.sparse_node(sparse) for sparse in graph.sparse_initializer[sparse_before:]]
    del graph.initializer[stored_before:]
    del graph.sparse_initializer[sparse_before:]
    set_nodes(graph, [*made, *graph.node])


def _rebuild(changes: Changes, graph: GraphProto) -> None:
    as_nodes, as_tensors = _placed(changes)
    made = [stored.node(tensor, name) for name, tensor in as_nodes.items()]
    for node in changes.scope.view.nodes:
        if node.index not in changes.gone:
            made.append(_done(changes.replaced.get(node.index, node.proto), changes.renames, changes.retitled))
            made += changes.added.get(node.index, ())
    set_nodes(graph, made)
    graph.initializer.extend(as_tensors.values())
    graph.value_info.extend(changes.declared)


def set_nodes(holder: GraphProto | FunctionProto, nodes: Iterable[NodeProto]) -> None:
    """Put nodes in the place of all that a graph or function has; they may be some of those."""
    kept = list(nodes)
    del holder.node[:]
    holder.node.extend(kept)


def write_back(scope: Scope) -> None:
    """A function's nodes are looked at as a graph, which is a copy of them; of other graphs nothing is to be done."""
    if scope.function is not None:
        set_nodes(scope.function, scope.outermost.graph.node)


def _placed(changes: Changes) -> tuple[dict[str, TensorProto], dict[str, TensorProto]]:
    """Constants that become nodes, and those that become initializers: an output has to be made by a node."""
    scope = changes.scope
    as_nodes: dict[str, TensorProto] = {}
    as_tensors: dict[str, TensorProto] = {}
    for name, tensor in changes.constants.items():
        place = as_tensors if scope.holds_initializers and name not in scope.outputs else as_nodes
        place[name] = tensor
    return as_nodes, as_tensors


def _done(node: NodeProto, renames: Mapping[str, str], retitled: Mapping[str, str]) -> NodeProto:
    done = renamed(node, renames) if renames else node
    if any(name in retitled for name in node.output):
        copy = NodeProto()
        copy.CopyFrom(done)
        copy.output[:] = [retitled.get(name, name) for name in node.output]
        return copy
    if done is not node:
        done.output[:] = node.output
    return done
