"""One graph to fold: the main graph, a body, or a local function, with what is known of its values."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from math import prod

from onnx import FunctionProto, GraphProto, NodeProto, SparseTensorProto, TensorProto, ValueInfoProto

from onnxbench.core import weights
from onnxbench.core.attributes import subgraphs
from onnxbench.core.counts import stored_bytes
from onnxbench.core.graph import GraphView, Node, opset_imports, plain_domain
from onnxbench.core.hoist import defined_names, every_name
from onnxbench.core.model import Model
from onnxbench.core.shapes import Shapes
from onnxbench.core.symbolic import Size
from onnxbench.core.values import Array
from onnxbench.folding import stored
from onnxbench.folding.constancy import constants_of
from onnxbench.folding.options import FoldOptions
from onnxbench.folding.stored import tensor_of
from onnxbench.folding.training import trained_names

#: Elements up to which the value of a constant is looked at by passes that are about sizes and conditions.
_FEW = 4096


@dataclass
class Scope:
    """A graph that passes look at, and never change: they propose.

    Attributes:
        model: the model that holds it; its external tensors stay where they are.
        view: the graph.
        known: gives what is known of values, which takes a walk over the model; of nothing in a function, which is called
            with anything.
        options: what the fold may do.
        where: how reports name the scope; empty for the main graph.
        function: the function whose nodes these are, if it is one.
        failed: values, by `where` and name, that could not be computed; shared by all scopes of a fold.
    """

    model: Model
    view: GraphView
    known: Callable[[], Shapes]
    options: FoldOptions
    where: str = ""
    function: FunctionProto | None = None
    failed: set[tuple[str, str]] = field(default_factory=set)
    _values: dict[str, Array | None] = field(default_factory=dict)

    @cached_property
    def constants(self) -> frozenset[str]:
        """Values that are the same in every run, those of the graphs around it included."""
        return constants_of(self.view, freeze=self.options.freeze_initializers, quantized=self.options.fold_qdq)

    @cached_property
    def outputs(self) -> frozenset[str]:
        """What somebody outside reads by name: a node has to make it, unless it is stored already."""
        is_main = self.view.parent is None and self.function is None
        return frozenset(self.view.outputs) | (trained_names(self.model.proto) if is_main else frozenset())

    @cached_property
    def shapes(self) -> Shapes:
        """What is known of the scope's values."""
        return self.known().of(self.view)

    @cached_property
    def annotated(self) -> frozenset[str]:
        """Values that a quantization annotation names: they keep their names."""
        return frozenset(entry.tensor_name for entry in self.view.graph.quantization_annotation)

    @cached_property
    def inner_names(self) -> frozenset[str]:
        """What bodies of this graph call their own values; no value of the graph may come to be called like that."""
        return frozenset(name for node in self.view.nodes for name in _made_inside(node.proto) if name)

    def names_in_use(self) -> set[str]:
        """Every name of the graphs around this one, of those in it, and its own."""
        return set(every_name(self.outermost.graph))

    @property
    def outermost(self) -> GraphView:
        """The main graph, or the nodes of the function, that holds this one."""
        view = self.view
        while view.parent is not None:
            view = view.parent
        return view

    @cached_property
    def slack(self) -> int:
        """Bytes that a constant may take whatever it is made of: a thousandth of the model."""
        return stored_bytes(self.model) // 1000

    @property
    def holds_initializers(self) -> bool:
        """Whether a constant can be an initializer here; before IR version 4 each would have to be an input too."""
        return self.function is None and self.view.model.ir_version >= 4

    def can_hold(self, name: str, element: int | None) -> bool:
        """Whether a constant of that type can be stored under a name: an output has to be made by a node.

        Constant-1 makes floats alone, later ones all types of their day; a model may not import ai.onnx at all.
        """
        if self.holds_initializers and name not in self.outputs:
            return True
        return element is not None and element in stored.elements_of_constant(self.opset())

    def opset(self, domain: str = "") -> int:
        return self.view.opsets.get(domain, 0)

    def value(self, name: str) -> Array | None:
        """The elements of a small value that is stored: an initializer or a Constant node; None for any other."""
        if name not in self._values:
            self._values[name] = self._stored(name) if name in self.constants else None
        return self._values[name]

    def _stored(self, name: str) -> Array | None:
        held = holder(self.view, name)
        return self._small(held) if isinstance(held, TensorProto) else None

    def _small(self, tensor: TensorProto) -> Array | None:
        return weights.array(self.model, tensor) if prod(tensor.dims) <= _FEW else None

    def numbers(self, name: str) -> list[Size | None] | None:
        """The elements of a small tensor of integers as far as they are known, in row-major order; None if nothing is."""
        stored = self.value(name)
        if stored is not None and stored.dtype.kind in "iub":
            return [int(element) for element in stored.reshape(-1)]
        if self.function is not None:
            return None
        data = self.shapes.data(name)
        return None if data is None else list(data)

    def element(self, name: str) -> int | None:
        """The element type of a tensor, if it is known."""
        return None if self.function is not None else self.shapes.element(name)

    def dims(self, name: str) -> tuple[Size, ...] | None:
        """The dims of a tensor, if all are known, as numbers or as expressions."""
        found = None if self.function is not None else self.shapes.dims(name)
        return None if found is None or any(dim is None for dim in found) else tuple(d for d in found if d is not None)


def _made_inside(node: NodeProto) -> Iterator[str]:
    for _, body in subgraphs(node):
        yield from defined_names(body)
        for inner in body.node:
            yield from _made_inside(inner)


def is_default_domain(node: NodeProto) -> bool:
    """Whether the operator is one of ai.onnx."""
    return plain_domain(node.domain) == ""


def is_constant(node: NodeProto) -> bool:
    """Whether the node is a Constant."""
    return node.op_type == "Constant" and is_default_domain(node)


def holder(view: GraphView, name: str) -> TensorProto | SparseTensorProto | None:
    """The initializer or Constant that holds a value, of the graph or one around it; None if it is computed."""
    for scope in view.outward():
        held = scope.initializers.get(name) or scope.sparse.get(name)
        if held is not None:
            return held
        if name in scope.producer:
            proto = scope.producer[name].proto
            return tensor_of(proto) if is_constant(proto) else None
    return None


def scopes(
    model: Model, known: Callable[[], Shapes], options: FoldOptions, failed: set[tuple[str, str]]
) -> Iterator[Scope]:
    """Every graph of a model, bodies before what holds them, functions last; `failed` is what they share."""
    main = GraphView(model.proto, model.proto.graph)
    yield from _within(Scope(model, main, known, options, failed=failed))
    for function in model.proto.functions:
        yield from _within(dataclasses.replace(of_function(model, function, options), failed=failed))


def of_function(model: Model, function: FunctionProto, options: FoldOptions) -> Scope:
    """The scope of a function's own nodes, whose attribute references are open."""
    graph = GraphProto(name=function.name)
    graph.node.extend(function.node)
    graph.input.extend(ValueInfoProto(name=name) for name in function.input)
    graph.output.extend(ValueInfoProto(name=name) for name in function.output)
    view = GraphView(model.proto, graph, opsets=opset_imports(function.opset_import), isolated=True)
    return Scope(model, view, Shapes, options, f"function {function.name}", function)


def _within(scope: Scope) -> Iterator[Scope]:
    for node in scope.view.nodes:
        if not node.proto.attribute:
            continue
        for label, body in scope.view.bodies(node):
            where = f"{scope.where}/{node.label}:{label}" if scope.where else f"{node.label}:{label}"
            yield from _within(dataclasses.replace(scope, view=body, where=where, _values={}))
    yield scope


def label_in(scope: Scope, node: Node) -> str:
    """How reports name a node: with the body that it stands in."""
    return f"{scope.where}/{node.label}" if scope.where else node.label
