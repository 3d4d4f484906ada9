"""Describe the inputs and outputs of a piece."""

from __future__ import annotations

from onnx import GraphProto, TypeProto, ValueInfoProto

from onnxbench.core.graph import GraphView
from onnxbench.extracting.choosing import Cut
from onnxbench.extracting.report import Port
from onnxbench.extracting.typing import Typing
from onnxbench.inspecting.header import describe, dims_of


def ports(graph: GraphProto, cut: Cut, typing: Typing) -> tuple[list[Port], list[Port]]:
    """Inputs and outputs, weights that are inputs only because IR 3 wants it left out."""
    stored = {tensor.name for tensor in graph.initializer}
    view = cut.view
    inputs = [v for v in graph.input if v.name not in stored or view.is_overridable(v.name)]
    return (
        [_port(value, _entry(view, value.name, stored), typing) for value in inputs],
        [_port(value, "output" if value.name in view.outputs else "cut", typing) for value in graph.output],
    )


def _port(value: ValueInfoProto, source: str, typing: Typing) -> Port:
    told_by = "recorded" if value.name in typing.recorded else ""
    if value.name in typing.request.value_types:
        told_by = "user"
    return Port(value.name, type_text(value.type), source, told_by)


def _entry(view: GraphView, name: str, stored: set[str]) -> str:
    if name in stored:
        return "default"
    if name in view.initializers or name in view.sparse:
        return "weight"
    return "input" if name in view.inputs and view.parent is None else "cut"


def type_text(kind: TypeProto) -> str:
    """float32[N, 3]; `?` for a dim without a name."""
    dims = dims_of(kind)
    name = describe(kind).lower()
    return name if dims is None else f"{name}[{', '.join('?' if dim is None else str(dim) for dim in dims)}]"
