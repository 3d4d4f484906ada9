"""Take a graph apart: groups of its nodes side by side in one model, each fed from outside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from onnx import NodeProto, TypeProto, ValueInfoProto

from onnxbench.core.border import Border, Types, bring_in
from onnxbench.core.graph import GraphView, Node
from onnxbench.core.hoist import renamed
from onnxbench.core.model import Model
from onnxbench.core.subgraph import header_of, used_functions
from onnxbench.core.types import value_info
from onnxbench.core.values import Value


@dataclass(frozen=True, slots=True)
class Exploded:
    """Groups of nodes as components of one model.

    Attributes:
        model: the model; it returns only what no node of the group reads, so that a group may be fused.
        feeds: values for its inputs.
        origin: (place of the group, name in the source) of each output.
    """

    model: Model
    feeds: dict[str, Value]
    origin: dict[str, tuple[int, str]]


def explode(
    model: Model,
    view: GraphView,
    groups: Sequence[Sequence[Node]],
    known: Mapping[str, Value],
    types: Mapping[str, TypeProto],
) -> Exploded:
    """A model in which no group reads what another makes: the error of one cannot reach the next.

    Args:
        model: the model of the view.
        view: the graph that is taken apart.
        groups: nodes that stay connected with each other, in an order that can run; a node may be in several.
        known: a value for everything that a group reads from outside it.
        types: types by name, where the file declares none.

    Raises:
        AnswerIsNo: OB102 if a node reads a value that no graph makes.
    """
    taken: set[str] = set()
    nodes: list[NodeProto] = []
    returned: list[ValueInfoProto] = []
    origin: dict[str, tuple[int, str]] = {}
    needed: dict[str, None] = {}
    kinds = Types(view, types, known, static=False)
    for place, group in enumerate(groups):
        inside = {name: _free(view, f"{name}__{place}", taken) for node in group for name in node.outputs if name}
        read = {name for node in group for name in node.inputs}
        nodes += [renamed(node.proto, inside) for node in group]
        needed.update(dict.fromkeys(name for name in read if name and name not in inside))
        for name, fresh in inside.items():
            if name not in read:
                origin[fresh] = (place, name)
                returned.append(value_info(fresh, kinds.of(name)))
    border = Border()
    for name in needed:
        bring_in(border, model, view, name, known, kinds, None)
    proto = header_of(view)
    graph = proto.graph
    graph.name = view.graph.name or "exploded"
    graph.node.extend(nodes)
    graph.input.extend(border.inputs)
    graph.output.extend(returned)
    graph.initializer.extend(border.initializers)
    graph.sparse_initializer.extend(border.sparse)
    proto.functions.extend(used_functions(view, graph))
    return Exploded(Model(proto, model.folder, None, f"{model.label}, taken apart"), border.feeds, origin)


def _free(view: GraphView, name: str, taken: set[str]) -> str:
    while name in taken or view.defines(name):
        name += "_"
    taken.add(name)
    return name
