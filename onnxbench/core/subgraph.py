"""Cut a valid model out of a graph: the one place that cuts."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import onnx
from onnx import GraphProto, ModelProto, NodeProto, TypeProto

from onnxbench.core.attributes import subgraphs
from onnxbench.core.border import Border, How, Types, bring_in
from onnxbench.core.graph import FunctionKey, GraphView, Node, call_key
from onnxbench.core.model import Model
from onnxbench.core.types import value_info
from onnxbench.core.values import Value
from onnxbench.errors import AnswerIsNo


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
        cuts: how single cut edges enter, against the rule above. A value that is cut "open" is an input even where a node
            of the piece makes it beside others: what that node makes is then called otherwise, and nobody reads it.
        static: whether a type told by a known value alone has fixed dimensions, or only its rank.

    Raises:
        AnswerIsNo: OB102 if nothing is left, or a node reads a value that no graph makes.
    """
    if not nodes:
        raise AnswerIsNo("OB102", f"a piece of {model.label} needs at least one node")
    chosen = _in_runnable_order(view, nodes)
    hidden = {name for name, how in (cuts or {}).items() if how == "open"}
    made = {name for node in chosen for name in node.outputs if name}
    hidden &= made
    made -= hidden
    returned = list(outputs) if outputs is not None else sinks(view, chosen)
    kinds = Types(view, types or {}, known, static)
    border = Border()
    for name in _needed(chosen, made, returned):
        bring_in(border, model, view, name, known, kinds, (cuts or {}).get(name))
    proto = header_of(view)
    _assemble(proto.graph, view, chosen, border, [value_info(name, kinds.of(name)) for name in returned])
    if hidden:
        _rename_outputs(proto.graph, view, hidden)
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


def _assemble(
    graph: GraphProto,
    view: GraphView,
    chosen: Sequence[Node],
    border: Border,
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
    border_names = {value.name for value in (*graph.input, *returned)}
    inner = {name for node in chosen for name in node.outputs} - border_names
    graph.value_info.extend(value for value in source.value_info if value.name in inner)
    tensors = {*inner, *(v.name for v in (*graph.input, *returned, *graph.initializer))}
    graph.quantization_annotation.extend(a for a in source.quantization_annotation if a.tensor_name in tensors)


def _rename_outputs(graph: GraphProto, view: GraphView, hidden: set[str]) -> None:
    """Call what nodes of the piece make otherwise where the name is an input's."""
    used = {name for node in view.nodes for name in (*node.inputs, *node.outputs)}
    for node in graph.node:
        for place, name in enumerate(node.output):
            if name in hidden:
                fresh = f"{name}_unread"
                while fresh in used or view.defines(fresh):
                    fresh += "_"
                used.add(fresh)
                node.output[place] = fresh


def header_of(view: GraphView) -> ModelProto:
    """The source's header, with the opsets of the view."""
    source, made = view.model, ModelProto()
    made.ir_version = source.ir_version
    for text in ("producer_name", "producer_version", "domain", "doc_string"):
        if source.HasField(text):
            setattr(made, text, getattr(source, text))
    if source.HasField("model_version"):
        made.model_version = source.model_version
    made.metadata_props.extend(source.metadata_props)
    made.configuration.extend(source.configuration)
    same = view.opsets == GraphView(source, GraphProto()).opsets
    made.opset_import.extend(
        source.opset_import if same else [onnx.helper.make_opsetid(d, v) for d, v in view.opsets.items()]
    )
    return made


def used_functions(view: GraphView, graph: GraphProto) -> list[onnx.FunctionProto]:
    """The local functions that a graph calls, directly, in bodies, or through other functions, in file order."""
    if not view.functions:
        return []
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
