"""How a model is built: control flow, functions, quantization, randomness, borders between precisions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from onnx import NodeProto, TensorProto

from onnxbench.core.attributes import subgraphs
from onnxbench.core.graph import GraphView, call_key, draws, free_names
from onnxbench.core.shapes import Shapes
from onnxbench.core.tensors import element_bits, type_name
from onnxbench.inspecting.header import elements
from onnxbench.inspecting.operators import every_node

_QUANTIZERS = {"QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear"}
_FLOATS = {TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.DOUBLE}


@dataclass(slots=True)
class Body:
    """A graph that a node holds: its attribute, its nodes (nested ones apart), what it captures, what it holds in turn."""

    attribute: str
    nodes: int
    captures: list[str]
    control: list[Control] = field(default_factory=list)


@dataclass(slots=True)
class Control:
    """A node that holds graphs."""

    node: str
    operator: str
    bodies: list[Body]


@dataclass(slots=True)
class Function:
    """A local function: calls counted from the whole model, its nodes, formal inputs and outputs."""

    domain: str
    name: str
    overload: str
    calls: int
    nodes: int
    inputs: list[str]
    outputs: list[str]


@dataclass(slots=True)
class Quantization:
    """Quantization in a model.

    Attributes:
        quantize, dequantize: QuantizeLinear and DequantizeLinear nodes; DynamicQuantizeLinear counts as the first.
        pairs: DequantizeLinear nodes that read a QuantizeLinear's output.
        quantized_operators: nodes that calculate on quantized values themselves (QLinearConv, MatMulInteger, ...).
        weights_by_bits: quantized weights, elements by bits.
        per_tensor, per_channel: quantizers by how many scales they have; `axes` counts the axes of the latter.
    """

    quantize: int = 0
    dequantize: int = 0
    pairs: int = 0
    quantized_operators: int = 0
    weights_by_bits: dict[int, int] = field(default_factory=dict)
    per_tensor: int = 0
    per_channel: int = 0
    axes: dict[int, int] = field(default_factory=dict)


@dataclass(slots=True)
class Structure:
    """`casts` counts borders between floating-point types, such as "FLOAT -> FLOAT16"; `random` names the drawing nodes."""

    control: list[Control]
    functions: list[Function]
    quantization: Quantization | None
    random: list[str]
    casts: dict[str, int]


def structure(view: GraphView, shapes: Shapes) -> Structure:
    """Linear in the nodes."""
    return Structure(
        control=[control for node in view.nodes if (control := _control(node.proto)) is not None],
        functions=_functions(view),
        quantization=_quantization(view, shapes),
        random=[label(node) for node, *_ in every_node(view) if draws(node)],
        casts=_casts(view, shapes),
    )


def label(node: NodeProto) -> str:
    """A node's name, or what it makes."""
    return node.name or f"{node.op_type} -> {node.output[0] if node.output else ''}"


def _control(node: NodeProto) -> Control | None:
    bodies = [
        Body(
            attribute,
            len(graph.node),
            list(dict.fromkeys(free_names(graph))),
            [inner for nested in graph.node if (inner := _control(nested)) is not None],
        )
        for attribute, graph in subgraphs(node)
    ]
    return Control(label(node), node.op_type, bodies) if bodies else None


def _functions(view: GraphView) -> list[Function]:
    if not view.functions:
        return []
    calls = Counter(call_key(node) for node, *_ in every_node(view))
    return [Function(*key, calls[key], len(f.node), list(f.input), list(f.output)) for key, f in view.functions.items()]


def _quantization(view: GraphView, shapes: Shapes) -> Quantization | None:
    found = Quantization()
    bits: Counter[int] = Counter()
    axes: Counter[int] = Counter()
    quantized: set[str] = set()
    for node in view.nodes:
        operator = node.proto.op_type
        if operator in _QUANTIZERS:
            made = operator != "DequantizeLinear"
            found.quantize += made
            found.dequantize += not made
            source = view.producer.get(node.proto.input[0]) if node.proto.input else None
            found.pairs += not made and source is not None and source.proto.op_type == "QuantizeLinear"
            _count_scales(found, axes, node.proto, shapes)
            quantized.update(name for name in node.proto.input[:1] if not made and name in view.initializers)
        elif operator.startswith(("QLinear", "QGemm", "QAttention")) or operator.endswith(("Integer", "NBits")):
            found.quantized_operators += 1
            quantized.update(name for name in node.proto.input if _is_narrow(view, name))
    for name in quantized:
        tensor = view.initializers[name]
        bits[element_bits(tensor.data_type) or 0] += elements(tensor)
    if not (found.quantize or found.dequantize or found.quantized_operators):
        return None
    found.weights_by_bits, found.axes = dict(sorted(bits.items())), dict(sorted(axes.items()))
    return found


def _count_scales(found: Quantization, axes: Counter[int], node: NodeProto, shapes: Shapes) -> None:
    """A scale of rank 0, or of one element, is for the whole tensor (QuantizeLinear-10 to -25)."""
    if len(node.input) < 2:
        return
    dims = shapes.dims(node.input[1])
    if dims is None:
        return
    if not dims or dims == (1,):
        found.per_tensor += 1
    else:
        found.per_channel += 1
        axes[next((a.i for a in node.attribute if a.name == "axis"), 1)] += 1


def _is_narrow(view: GraphView, name: str) -> bool:
    tensor = view.initializers.get(name)
    return tensor is not None and (element_bits(tensor.data_type) or 99) <= 8 and elements(tensor) > 1


def _casts(view: GraphView, shapes: Shapes) -> dict[str, int]:
    borders: Counter[str] = Counter()
    for node in view.nodes:
        if node.proto.op_type != "Cast" or not node.proto.input:
            continue
        before = shapes.element(node.proto.input[0])
        after = next((a.i for a in node.proto.attribute if a.name == "to"), 0)
        if before in _FLOATS and after in _FLOATS and before != after:
            borders[f"{type_name(before or 0)} -> {type_name(after)}"] += 1
    return dict(borders.most_common())


def dead_nodes(view: GraphView) -> list[int]:
    """Indices of the nodes that no output needs."""
    alive: set[int] = set()
    pending = [view.producer[name] for name in view.outputs if name in view.producer]
    while pending:
        node = pending.pop()
        if node.index in alive:
            continue
        alive.add(node.index)
        pending += [view.producer[name] for name in node.inputs if name in view.producer]
    return [node.index for node in view.nodes if node.index not in alive]


def walk(control: list[Control], depth: int = 0) -> Iterator[tuple[int, Any]]:
    """The tree in reading order, with depths: each control node, then its bodies."""
    for item in control:
        yield depth, item
        for body in item.bodies:
            yield depth + 1, body
            yield from walk(body.control, depth + 2)
