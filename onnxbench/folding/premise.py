"""What is certain of a graph, whatever its surroundings: element types, ranks, and integers.

What a file declares of values can be stale, and sizes are of no account here: declarations go, sizes of inputs are left
open, and weights become inputs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

from onnx import FunctionProto, GraphProto, ModelProto, NodeProto, SparseTensorProto, TensorProto, TypeProto, helper
from onnx import ValueInfoProto as ValueInfo

from onnxbench.core.attributes import subgraphs
from onnxbench.core.graph import GraphView, free_names, opset_imports
from onnxbench.core.hoist import every_name
from onnxbench.core.model import Model
from onnxbench.core.shape_rules.light import lighten
from onnxbench.core.shapes import Shapes, propagate
from onnxbench.core.types import value_info
from onnxbench.core.values import tensor_type
from onnxbench.folding.changes import set_nodes
from onnxbench.folding.naming import free_name
from onnxbench.folding.scope import Scope, holder, is_constant, is_default_domain, of_function
from onnxbench.folding.stored import tensor_of

#: Types whose values are kept: sizes, axes and conditions.
_KEPT = frozenset({TensorProto.INT64, TensorProto.INT32, TensorProto.BOOL})
#: The domain of operators that nobody knows anything of.
_UNKNOWN = "onnxbench.unknown"


@dataclass(frozen=True, slots=True)
class Premise:
    """What is certain of the graph of a scope.

    Attributes:
        view: the graph without what is uncertain.
        known: of its values.
        shift: how many nodes stand in it before those of the source.
    """

    view: GraphView
    known: Shapes
    shift: int

    def part(self, nodes: Iterable[int], outputs: Iterable[str]) -> ModelProto:
        """Some nodes of the graph, by their place in the source, as a model; what else they read is an input, or stored."""
        made = ModelProto(ir_version=self.view.model.ir_version)
        made.opset_import.extend(self.view.model.opset_import)
        made.functions.extend(self.view.model.functions)
        made.graph.node.extend(self.view.nodes[index + self.shift].proto for index in sorted(nodes))
        made.graph.output.extend(ValueInfo(name=name) for name in outputs)
        for name in dict.fromkeys(free_names(made.graph)):
            held = holder(self.view, name)
            if isinstance(held, TensorProto):
                made.graph.initializer.add().CopyFrom(held)
                made.graph.initializer[-1].name = name
            else:
                made.graph.input.append(value_info(name, _certain(self.known, name)))
        return made


_roots: WeakKeyDictionary[GraphView, tuple[GraphView, Shapes]] = WeakKeyDictionary()


def premise(scope: Scope) -> Premise:
    """What is certain of the graph of a scope; the walk that it takes is done once for all graphs that one holds."""
    root = scope.outermost
    if root not in _roots:
        model, options = _outermost(scope), scope.options
        known = propagate(Model(model), timeout=options.inference_time, memory=options.limits.memory)
        _roots[root] = GraphView(model, model.graph), known
    view, known = _roots[root]
    source = root
    for index, place in path(scope.view):
        view = view.bodies(view.nodes[index + _shift(view, source)])[place][1]
        source = source.bodies(source.nodes[index])[place][1]
    return Premise(view, known.of(view), _shift(view, source))


def _shift(view: GraphView, source: GraphView) -> int:
    return len(view.nodes) - len(source.nodes)


def twin(scope: Scope, model: Model) -> Scope:
    """The scope in a copy of its model."""
    found = Scope(model, GraphView(model.proto, model.proto.graph), Shapes, scope.options)
    if scope.function is not None:
        found = of_function(model, model.proto.functions[_place_of(scope)], scope.options)
    for index, place in path(scope.view):
        label, body = found.view.bodies(found.view.nodes[index])[place]
        found = Scope(model, body, Shapes, scope.options, f"{found.where}/{label}", found.function)
    return found


def path(view: GraphView) -> list[tuple[int, int]]:
    """The way to a view from the outermost: index of the node, and which of its graphs."""
    steps: list[tuple[int, int]] = []
    while view.parent is not None and view.owner is not None:
        held = [graph for _, graph in subgraphs(view.owner.proto)]
        steps.append((view.owner.index, next(place for place, graph in enumerate(held) if graph is view.graph)))
        view = view.parent
    return steps[::-1]


def _place_of(scope: Scope) -> int:
    return next(i for i, function in enumerate(scope.model.proto.functions) if function is scope.function)


def _outermost(scope: Scope) -> ModelProto:
    """The main graph, or the function as one, of which nothing is known outside."""
    model = lighten(scope.model)
    for function in model.functions:
        set_nodes(function, (_opaque_inside(node) for node in function.node))
        del function.value_info[:]
    if scope.function is not None:
        _put_in_place(model, model.functions[_place_of(scope)])
    _Stripping(model, set(every_name(model.graph))).main()
    return model


def _put_in_place(model: ModelProto, function: FunctionProto) -> None:
    graph = GraphProto(name=function.name)
    graph.node.extend(_opaque_references(node) for node in function.node)
    graph.input.extend(ValueInfo(name=name) for name in function.input)
    graph.output.extend(ValueInfo(name=name) for name in function.output)
    model.graph.CopyFrom(graph)
    versions = {**opset_imports(model.opset_import), **opset_imports(function.opset_import)}
    del model.opset_import[:]
    model.opset_import.extend(helper.make_opsetid(domain, version) for domain, version in versions.items())


def _opaque_references(node: NodeProto) -> NodeProto:
    """The node, with all in it unknown that takes an attribute of the function: each call gives another."""
    copy = NodeProto()
    copy.CopyFrom(node)
    for inner in _with_inner(copy):
        if any(attribute.ref_attr_name for attribute in inner.attribute):
            inner.domain = _UNKNOWN
    return copy


def _opaque_inside(node: NodeProto) -> NodeProto:
    """The node of a function, with weights in it unknown: a function has no inputs to spare for them."""
    copy = NodeProto()
    copy.CopyFrom(node)
    for inner in _with_inner(copy):
        held = tensor_of(inner) if is_constant(inner) else None
        if held is not None and held.data_type not in _KEPT:
            inner.domain = _UNKNOWN
    return copy


def _with_inner(node: NodeProto) -> Iterator[NodeProto]:
    yield node
    for _, body in subgraphs(node):
        for inner in body.node:
            yield from _with_inner(inner)


@dataclass
class _Stripping:
    """Takes from a model, in place, what is not certain of it."""

    model: ModelProto
    taken: set[str]
    added: list[ValueInfo] = field(default_factory=list)

    def main(self) -> None:
        graph = self.model.graph
        stored = {tensor.name for tensor in graph.initializer}
        own = [(value.name, _of_rank(value.type)) for value in graph.input]
        if self.model.ir_version < 4:
            own = [(name, kind) for name, kind in own if name not in stored]
        inputs = {name for name, _ in own}
        overridable = [tensor for tensor in graph.initializer if tensor.name in inputs]
        for tensor in overridable:
            graph.initializer.remove(tensor)
        self.graph(graph)
        del graph.input[:]
        graph.input.extend(value_info(name, kind) for name, kind in own)
        graph.input.extend(self.added)
        self.model.ir_version = max(self.model.ir_version, 4)  # initializers are none of the inputs

    def graph(self, graph: GraphProto) -> None:
        del graph.value_info[:]
        for value in graph.output:
            _forget_shape(value.type)
        nodes = [self._stand_in(tensor.name, tensor) for tensor in graph.initializer if not _is_kept(tensor)]
        nodes += [self._stand_in(sparse.values.name, sparse) for sparse in graph.sparse_initializer]
        kept = [TensorProto.FromString(t.SerializeToString()) for t in graph.initializer if _is_kept(t)]
        del graph.initializer[:], graph.sparse_initializer[:]
        graph.initializer.extend(kept)
        set_nodes(graph, [*nodes, *(self._node(node) for node in graph.node)])

    def _node(self, node: NodeProto) -> NodeProto:
        held = tensor_of(node) if is_constant(node) else None
        if held is not None and not _is_kept(held):
            return self._stand_in(node.output[0], held)
        for _, body in subgraphs(node):
            counters = 2 if node.op_type == "Loop" and is_default_domain(node) else 0  # made as they are declared
            for value in body.input[counters:]:
                _forget_shape(value.type)
            self.graph(body)
        return node

    def _stand_in(self, name: str, held: TensorProto | SparseTensorProto) -> NodeProto:
        """A node that makes of a new input what was stored."""
        source = free_name("stored", self.taken)
        values = held.values if isinstance(held, SparseTensorProto) else held
        kind = helper.make_tensor_type_proto(values.data_type, [None] * len(held.dims))
        self.added.append(value_info(source, kind))
        return helper.make_node("Identity", [source], [name])


def _is_kept(tensor: TensorProto) -> bool:
    return tensor.data_type in _KEPT and tensor.data_location != TensorProto.EXTERNAL


def _of_rank(kind: TypeProto | None) -> TypeProto | None:
    """A tensor's type without its sizes; of other types not even the ranks of what they hold."""
    if kind is None or kind.WhichOneof("value") is None:
        return None
    made = TypeProto()
    made.CopyFrom(kind)
    if made.WhichOneof("value") != "tensor_type":
        _forget_shape(made)
    elif made.tensor_type.HasField("shape"):
        for dim in made.tensor_type.shape.dim:
            dim.Clear()
    return made


def _forget_shape(kind: TypeProto) -> None:
    holder = tensor_type(kind)
    if holder is not None:
        holder.ClearField("shape")


def _certain(known: Shapes, name: str) -> TypeProto | None:
    """The type of a value without its sizes, but for the length of a vector of integers, which tells ranks."""
    kind, dims, element = known.type(name), known.dims(name), known.element(name)
    if kind is not None and kind.WhichOneof("value") != "tensor_type":
        return _of_rank(kind)
    if dims is None:
        return kind
    lengths = [dim if len(dims) == 1 and element in _KEPT and isinstance(dim, int) else None for dim in dims]
    return helper.make_tensor_type_proto(element or TensorProto.UNDEFINED, lengths)
