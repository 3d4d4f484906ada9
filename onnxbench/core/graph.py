"""An index over one graph: who makes a value, who reads it, what nested graphs capture, in which order it can run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import onnx
from onnx import AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto, TensorProto, TypeProto

from onnxbench.core.attributes import bind, subgraphs
from onnxbench.errors import ModelError, quote

FunctionKey = tuple[str, str, str]  # domain, name, overload


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """One node of a view. `index` is its place in the file; `inputs` is what it reads, captures included."""

    index: int
    proto: NodeProto
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]

    @property
    def label(self) -> str:
        """How messages name the node: its own name, else its operator and first output."""
        if self.proto.name:
            return f"{quote(self.proto.name)} ({self.proto.op_type})"
        return f"{self.proto.op_type} that makes {quote(self.outputs[0]) if self.outputs else 'nothing'}"


class GraphView:
    """A cheap index over a graph, a body of a control-flow node, or a function called by a node.

    The protobuf stays the truth: a view never changes it, and is thrown away when the graph changes. Building one is
    linear in the nodes.

    Attributes:
        model: the model that holds the graph, for its functions and opset imports.
        nodes: the nodes in file order.
        producer: the node that makes each value.
        consumers: the nodes that read each value (through captures of their bodies too), in file order, each once.
        inputs: declared graph inputs, in order (for a function: its formal inputs, without types).
        outputs: declared outputs, in order.
        initializers: tensors by name; `sparse` holds the sparse ones.
        types: every type the file declares, by value name.
        opsets: version by domain; the default domain is "".
        parent: the view around a body or function call, else None.
        owner: the node of `parent` that holds this body or makes this call.
    """

    def __init__(
        self,
        model: ModelProto,
        graph: GraphProto,
        *,
        opsets: Mapping[str, int] | None = None,
        parent: GraphView | None = None,
        owner: Node | None = None,
        isolated: bool = False,
    ) -> None:
        self.model, self.graph, self.parent, self.owner = model, graph, parent, owner
        self.isolated = isolated  # a function body sees nothing of its caller
        self.opsets = dict(opsets) if opsets is not None else opset_imports(model.opset_import)
        self.inputs = {value.name: value for value in graph.input}
        self.outputs = [value.name for value in graph.output]
        self.initializers: dict[str, TensorProto] = {tensor.name: tensor for tensor in graph.initializer}
        self.sparse = {tensor.values.name: tensor for tensor in graph.sparse_initializer}
        self.nodes = [_index(i, node) for i, node in enumerate(graph.node)]
        self.producer: dict[str, Node] = {}
        self.consumers: dict[str, list[Node]] = {}
        producer, consumers = self.producer, self.consumers
        for node in self.nodes:
            for name in node.outputs:
                if name and name not in producer:
                    producer[name] = node
            inputs = node.inputs
            for name in inputs if len(inputs) < 2 else dict.fromkeys(inputs):
                if name:
                    readers = consumers.get(name)
                    if readers is None:
                        consumers[name] = [node]
                    else:
                        readers.append(node)

    @cached_property
    def types(self) -> dict[str, TypeProto]:
        values = [*self.graph.value_info, *self.graph.output, *self.graph.input]
        return {value.name: value.type for value in values if value.HasField("type")}

    @cached_property
    def functions(self) -> dict[FunctionKey, FunctionProto]:
        return {function_key(function): function for function in self.model.functions}

    @cached_property
    def by_name(self) -> dict[str, list[Node]]:
        """Nodes by their own name; unnamed nodes are left out, and a name may be used more than once."""
        found: dict[str, list[Node]] = {}
        for node in self.nodes:
            if node.proto.name:
                found.setdefault(node.proto.name, []).append(node)
        return found

    def values(self) -> Iterator[str]:
        """Every value of this graph (not of its bodies), each once: inputs, initializers, node outputs."""
        seen = dict.fromkeys([*self.inputs, *self.initializers, *self.sparse])
        for node in self.nodes:
            seen.update(dict.fromkeys(name for name in node.outputs if name))
        return iter(seen)

    def cone(self, names: Iterable[str]) -> list[Node]:
        """The nodes of this graph that some values are made by, directly or not, in an order that can run."""
        wanted: set[int] = set()
        pending = [self.producer[name] for name in names if name in self.producer]
        while pending:
            node = pending.pop()
            if node.index not in wanted:
                wanted.add(node.index)
                pending.extend(self.producer[name] for name in node.inputs if name in self.producer)
        return [node for node in self.order if node.index in wanted]

    def outward(self) -> Iterator[GraphView]:
        """This graph and those around it, innermost first; a function sees nothing of its caller."""
        scope: GraphView | None = self
        while scope is not None:
            yield scope
            scope = None if scope.isolated else scope.parent

    def is_overridable(self, name: str) -> bool:
        """Whether the value is an initializer that a caller may replace: a graph input too, from IR version 4 on."""
        return name in self.initializers and name in self.inputs and self.model.ir_version >= 4

    def defines(self, name: str) -> bool:
        """Whether this graph itself makes or declares the value."""
        return name in self.producer or name in self.inputs or name in self.initializers or name in self.sparse

    def function_of(self, node: Node) -> FunctionProto | None:
        """The local function that a node calls, if it calls one."""
        return self.functions.get(call_key(node.proto))

    def bodies(self, node: Node) -> list[tuple[str, GraphView]]:
        """Views of the graphs that a node holds, with the attribute that holds each ('branches[1]' in a list)."""
        return [
            (label, GraphView(self.model, graph, opsets=self.opsets, parent=self, owner=node))
            for label, graph in subgraphs(node.proto)
        ]

    def call(self, node: Node) -> GraphView | None:
        """A view of the function that a node calls, its attributes bound to the call's; None if it calls none.

        Raises:
            ModelError: OB305 if the function reaches itself, which has no finite body.
        """
        function = self.function_of(node)
        if function is None:
            return None
        self._refuse_recursion(function)
        graph = GraphProto(name=function.name)
        graph.node.extend(bind(function, node.proto))
        graph.input.extend(onnx.ValueInfoProto(name=name) for name in function.input)
        graph.output.extend(onnx.ValueInfoProto(name=name) for name in function.output)
        graph.value_info.extend(function.value_info)
        opsets = {**self.opsets, **opset_imports(function.opset_import)}
        return GraphView(self.model, graph, opsets=opsets, parent=self, owner=node, isolated=True)

    def _refuse_recursion(self, function: FunctionProto) -> None:
        view: GraphView | None = self
        while view is not None:
            if view.isolated and view.owner is not None and self.function_of(view.owner) is function:
                raise ModelError("OB305", f"function {quote(function.name)} calls itself")
            view = view.parent

    @cached_property
    def order(self) -> list[Node]:
        """The nodes in a depth-first topological order: each after what it reads, branches kept together.

        Stable: outputs are walked in declared order, then the nodes that reach none in file order. The file may be
        unsorted.

        Raises:
            ModelError: OB305 if the nodes feed each other in a circle.
        """
        placed: list[Node] = []
        state = bytearray(len(self.nodes))  # 0 new, 1 open, 2 placed
        roots = [self.producer[name] for name in self.outputs if name in self.producer]
        for root in [*roots, *self.nodes]:
            if state[root.index]:
                continue
            stack = [(root, iter(root.inputs))]
            state[root.index] = 1
            while stack:
                node, pending = stack[-1]
                for name in pending:
                    before = self.producer.get(name)
                    if before is None or state[before.index] == 2:
                        continue
                    if state[before.index] == 1:
                        raise ModelError("OB305", f"a circle of nodes runs through {before.label}")
                    state[before.index] = 1
                    stack.append((before, iter(before.inputs)))
                    break
                else:
                    state[node.index] = 2
                    placed.append(node)
                    stack.pop()
        return placed

    @cached_property
    def constants(self) -> frozenset[str]:
        """The values that no input can change: initializers that are not inputs, and what is computed from them alone.

        A body has those of the graphs around it too. Random operators, and calls and bodies that may hold one, do not
        make constants.
        """
        found = {name for name in [*self.initializers, *self.sparse] if not self.is_overridable(name)}
        if self.parent is not None and not self.isolated:
            found |= {name for name in self.parent.constants if not self.defines(name)}
        for node in self.order:
            if all(not name or name in found for name in node.inputs) and self._is_deterministic(node):
                found.update(name for name in node.outputs if name)
        return frozenset(found)

    def _is_deterministic(self, node: Node) -> bool:
        return (
            node.proto.op_type not in RANDOM
            and not _has_subgraph(node.proto)
            and node.proto.domain in ("", "ai.onnx", "ai.onnx.ml")
            and self.function_of(node) is None
        )


def refuse_doubles(view: GraphView, label: str) -> None:
    """Raise if two nodes of a graph make one value: whoever changes it would have to choose which is meant.

    Raises:
        ModelError: OB305.
    """
    makers: dict[str, Node] = {}
    for node in view.nodes:
        for name in node.outputs:
            if name and makers.setdefault(name, node) is not node:
                both = f"{quote(name)} is made by {makers[name].label} and by {node.label}"
                raise ModelError("OB305", f"{label} is invalid: {both}", hint=f"onnxbench inspect {label}")


#: Operators of ai.onnx whose results are drawn, not computed (Dropout draws in training mode).
RANDOM = frozenset(
    {"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Bernoulli", "Multinomial", "Dropout"}
)


def draws(proto: NodeProto) -> bool:
    """Whether a node draws its results; Dropout does in training, which its third input asks for (Dropout-12)."""
    drawn = proto.domain in ("", "ai.onnx") and proto.op_type in RANDOM
    return drawn and (proto.op_type != "Dropout" or len(proto.input) > 2)


def opset_imports(entries: Iterable[onnx.OperatorSetIdProto]) -> dict[str, int]:
    """Version by domain, with both spellings of the default domain as ""."""
    return {plain_domain(entry.domain): entry.version for entry in entries}


def plain_domain(domain: str) -> str:
    """A domain as keys hold it: the default one is ""."""
    return "" if domain == "ai.onnx" else domain


def call_key(node: NodeProto) -> FunctionKey:
    """The key of the function that a node calls, if there is such a function."""
    return plain_domain(node.domain), node.op_type, node.overload


def function_key(function: FunctionProto) -> FunctionKey:
    """What tells a function of the model from others."""
    return plain_domain(function.domain), function.name, function.overload


def captures(proto: NodeProto) -> tuple[str, ...]:
    """The outer values that a node's nested graphs read, in order of first use."""
    found: dict[str, None] = {}
    for _, graph in subgraphs(proto):
        found.update(dict.fromkeys(free_names(graph)))
    return tuple(found)


def free_names(graph: GraphProto) -> Iterator[str]:
    """The names a graph reads and does not define; nested graphs included."""
    defined = {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer}
    defined |= {tensor.values.name for tensor in graph.sparse_initializer}
    defined.update(name for node in graph.node for name in node.output)
    for node in graph.node:
        for name in (*node.input, *(captures(node) if _has_subgraph(node) else ())):
            if name and name not in defined:
                yield name
    for output in graph.output:  # a branch may hand an outer value straight on
        if output.name and output.name not in defined:
            yield output.name


def _has_subgraph(proto: NodeProto) -> bool:
    attributes = proto.attribute
    return bool(attributes) and any(a.type in _HOLDS_GRAPHS for a in attributes)


_HOLDS_GRAPHS = (AttributeProto.GRAPH, AttributeProto.GRAPHS)


def _index(index: int, proto: NodeProto) -> Node:
    inputs = tuple(proto.input[:])  # a slice is copied at once, an iterator asks for each entry
    if _has_subgraph(proto):
        inputs += captures(proto)
    return Node(index, proto, inputs, tuple(proto.output[:]))
