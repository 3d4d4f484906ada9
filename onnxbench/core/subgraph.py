"""Cut a valid model out of a graph: the one place that cuts."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import onnx
from onnx import GraphProto, ModelProto, NodeProto, TypeProto, helper, numpy_helper

from onnxbench.core import weights
from onnxbench.core.attributes import subgraphs
from onnxbench.core.graph import FunctionKey, GraphView, Node, call_key
from onnxbench.core.model import Model
from onnxbench.core.types import type_of, value_info
from onnxbench.core.values import Value
from onnxbench.errors import AnswerIsNo, quote

How = Literal["input", "constant"]

#: Bytes up to which the recorded value of a constant cut edge is written into the piece; larger ones become inputs.
LARGEST_CONSTANT = 1 << 20


@dataclass(frozen=True, slots=True)
class Piece:
    """A model cut out of another.

    Attributes:
        model: the piece; external tensors stay where they are.
        feeds: values for its inputs, as far as they are known.
        missing: inputs without a known value.
        origin: index in the source's graph of each node of the piece.
    """

    model: Model
    feeds: dict[str, Value]
    missing: tuple[str, ...]
    origin: tuple[int, ...]


@dataclass(slots=True)
class _Border:
    """What a piece takes in: declarations in order, constants, and the values that are fed."""

    inputs: list[onnx.ValueInfoProto] = field(default_factory=list)
    initializers: list[onnx.TensorProto] = field(default_factory=list)
    sparse: list[onnx.SparseTensorProto] = field(default_factory=list)
    feeds: dict[str, Value] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)


def carve(
    model: Model,
    view: GraphView,
    nodes: Collection[Node],
    known: Mapping[str, Value],
    *,
    types: Mapping[str, TypeProto] | None = None,
    outputs: Sequence[str] | None = None,
    cuts: Mapping[str, How] | None = None,
    static: bool = True,
) -> Piece:
    """A model of these nodes alone, with everything they need.

    Initializers come along; a value from outside that is constant stays constant, another becomes an input. Functions,
    opset imports, metadata, annotations and declared types are kept as far as they concern the piece. Symbolic
    dimensions stay symbolic.

    Args:
        model: the model that holds the view, for the place of its external tensors.
        view: the graph to cut: the main graph, a body, or a function call.
        nodes: nodes of the view.
        known: values by name, recorded or given, for cut edges and inputs.
        types: types by name, where the file declares none (from `core.types.infer`).
        outputs: what the piece returns; by default its sinks only: an exposed inner value keeps runtimes from fusing.
        cuts: how single cut edges enter, against the rule above.
        static: whether a type told by a known value alone has fixed dimensions, or only its rank.

    Raises:
        AnswerIsNo: OB102 if nothing is left, or a node reads a value that no graph makes.
    """
    if not nodes:
        raise AnswerIsNo("OB102", f"a piece of {model.label} needs at least one node")
    chosen = _in_runnable_order(view, nodes)
    made = {name for node in chosen for name in node.outputs if name}
    returned = list(outputs) if outputs is not None else sinks(view, chosen)
    kinds = _Types(view, types or {}, known, static)
    border = _Border()
    for name in _needed(chosen, made, returned):
        _bring_in(border, model, view, name, known, kinds, (cuts or {}).get(name))
    proto = _header(view)
    _assemble(proto.graph, view, chosen, border, [value_info(name, kinds.of(name)) for name in returned])
    proto.functions.extend(used_functions(view, proto.graph))
    return Piece(
        Model(proto, model.folder, None, f"a piece of {model.label}"),
        border.feeds,
        tuple(border.missing),
        tuple(node.index for node in chosen),
    )


def sinks(view: GraphView, chosen: Sequence[Node]) -> list[str]:
    """What leaves a set of nodes: values that somebody reads, or the graph returns, and no node of the set reads.

    A node that would return nothing that way, and feeds no other of the set, returns its first output.
    """
    inside = {node.index for node in chosen}
    read = {name for node in chosen for name in node.inputs}
    wanted = set(view.outputs)
    found: list[str] = []
    for node in chosen:
        ends = [name for name in node.outputs if name and name not in read]
        used = [n for n in ends if n in wanted or any(c.index not in inside for c in view.consumers.get(n, ()))]
        if not used and not any(name in read for name in node.outputs if name):
            used = ends[:1]
        found += used
    return found


def _in_runnable_order(view: GraphView, nodes: Collection[Node]) -> list[Node]:
    """File order, unless the file is unsorted."""
    chosen = sorted(nodes, key=lambda node: node.index)
    placed: set[str] = set()
    inside = {name for node in chosen for name in node.outputs}
    for node in chosen:
        if any(name in inside and name not in placed for name in node.inputs if name):
            wanted = {other.index for other in chosen}
            return [other for other in view.order if other.index in wanted]
        placed.update(node.outputs)
    return chosen


def _needed(chosen: Sequence[Node], made: set[str], returned: Sequence[str]) -> list[str]:
    read = (name for node in chosen for name in node.inputs)
    return [name for name in dict.fromkeys([*read, *returned]) if name and name not in made]


@dataclass(frozen=True, slots=True)
class _Types:
    view: GraphView
    inferred: Mapping[str, TypeProto]
    known: Mapping[str, Value]
    static: bool

    def of(self, name: str) -> TypeProto | None:
        inferred = None if self._is_in_function() else self.inferred.get(name)
        for kind in (self.view.types.get(name), inferred):
            if kind is not None and _is_complete(kind):
                return kind
        if name in self.known and (told := type_of(self.known[name], static=self.static)) is not None:
            return told
        return self.view.types.get(name) or inferred

    def _is_in_function(self) -> bool:
        """Whether names mean nothing outside: inference tells of the main graph and its bodies."""
        scope: GraphView | None = self.view
        while scope is not None:
            if scope.isolated:
                return True
            scope = scope.parent
        return False


def _is_complete(kind: TypeProto) -> bool:
    """Whether a type says all that a recorded value would: the rank too."""
    which = kind.WhichOneof("value")
    if which == "tensor_type":
        return kind.tensor_type.elem_type != 0 and kind.tensor_type.HasField("shape")
    return which is not None


def _bring_in(
    border: _Border,
    model: Model,
    view: GraphView,
    name: str,
    known: Mapping[str, Value],
    kinds: _Types,
    how: How | None,
) -> None:
    home = _home(view, name)
    if home is None:
        raise AnswerIsNo("OB102", f"no graph of {model.label} makes {quote(name)}, which the piece reads")
    if how is None and _copy_initializer(border, home, name, known):
        return
    values = known
    if name in home.initializers and name not in known:
        values = {name: weights.array(model, home.initializers[name])}
    if _enters_as_constant(home, name, values, how):
        _add_constant(border, home, name, values[name])
        return
    border.inputs.append(value_info(name, _Types(home, kinds.inferred, values, kinds.static).of(name)))
    if name in values:
        border.feeds[name] = values[name]
    else:
        border.missing.append(name)


def _home(view: GraphView, name: str) -> GraphView | None:
    """The view that defines a value: this one, or one that a body can see out to."""
    scope: GraphView | None = view
    while scope is not None:
        if scope.defines(name):
            return scope
        scope = None if scope.isolated else scope.parent
    return None


def _copy_initializer(border: _Border, home: GraphView, name: str, known: Mapping[str, Value]) -> bool:
    if name in home.initializers:
        border.initializers.append(home.initializers[name])
        if name in home.inputs:  # overridable, or IR 3, where every initializer is an input too
            border.inputs.append(home.inputs[name])
            if home.is_overridable(name) and name in known:
                border.feeds[name] = known[name]
        elif home.model.ir_version < 4:  # of a body, where it need not be an input
            tensor = home.initializers[name]
            border.inputs.append(helper.make_tensor_value_info(name, tensor.data_type, list(tensor.dims)))
        return True
    if name in home.sparse:
        border.sparse.append(home.sparse[name])
        return True
    return False


def _enters_as_constant(home: GraphView, name: str, known: Mapping[str, Value], how: How | None) -> bool:
    value = known.get(name)
    if how == "input" or not isinstance(value, np.ndarray):
        return False
    return how == "constant" or (name in home.constants and value.nbytes <= LARGEST_CONSTANT)


def _add_constant(border: _Border, home: GraphView, name: str, value: Value) -> None:
    assert isinstance(value, np.ndarray)
    border.initializers.append(numpy_helper.from_array(np.asarray(value), name))
    if home.model.ir_version < 4:
        border.inputs.append(value_info(name, type_of(value)))


def _assemble(
    graph: GraphProto,
    view: GraphView,
    chosen: Sequence[Node],
    border: _Border,
    returned: Sequence[onnx.ValueInfoProto],
) -> None:
    source = view.graph
    graph.name = source.name or "piece"
    graph.doc_string = source.doc_string
    graph.metadata_props.extend(source.metadata_props)
    graph.node.extend(node.proto for node in chosen)
    place = {name: i for i, name in enumerate(view.inputs)}
    graph.input.extend(sorted(border.inputs, key=lambda value: place.get(value.name, len(place))))
    graph.output.extend(returned)
    graph.initializer.extend(border.initializers)
    graph.sparse_initializer.extend(border.sparse)
    inner = {name for node in chosen for name in node.outputs} - {value.name for value in returned}
    graph.value_info.extend(value for value in source.value_info if value.name in inner)
    tensors = {*inner, *(v.name for v in (*graph.input, *returned, *graph.initializer))}
    graph.quantization_annotation.extend(a for a in source.quantization_annotation if a.tensor_name in tensors)


def _header(view: GraphView) -> ModelProto:
    """The source's header, with the opsets of the view."""
    source, made = view.model, ModelProto()
    made.ir_version = source.ir_version
    for text in ("producer_name", "producer_version", "domain", "doc_string"):
        if source.HasField(text):
            setattr(made, text, getattr(source, text))
    if source.HasField("model_version"):
        made.model_version = source.model_version
    made.metadata_props.extend(source.metadata_props)
    same = view.opsets == GraphView(source, GraphProto()).opsets
    made.opset_import.extend(
        source.opset_import if same else [onnx.helper.make_opsetid(d, v) for d, v in view.opsets.items()]
    )
    return made


def used_functions(view: GraphView, graph: GraphProto) -> list[onnx.FunctionProto]:
    """The local functions that a graph calls, directly, in bodies, or through other functions, in file order."""
    used: set[FunctionKey] = set()
    pending: list[NodeProto] = list(graph.node)
    while pending:
        node = pending.pop()
        for _, body in subgraphs(node):
            pending.extend(body.node)
        key = call_key(node)
        if key in view.functions and key not in used:
            used.add(key)
            pending.extend(view.functions[key].node)
    return [function for key, function in view.functions.items() if key in used]
