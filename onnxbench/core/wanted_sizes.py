"""Find the sizes that the first operators of an input need for dims that the input leaves open."""

from __future__ import annotations

from collections.abc import Sequence

from onnxbench.core.graph import GraphView, Node

#: A picture that five halvings and the usual kernels survive.
PICTURE = 32

_SAME_SHAPE = frozenset(
    {"Identity", "Cast", "Add", "Sub", "Mul", "Div", "Relu", "Clip", "QuantizeLinear", "DequantizeLinear"}
)
_WINDOWS = frozenset({"Conv", "MaxPool", "AveragePool", "LpPool", "QLinearConv", "ConvInteger", "ConvTranspose"})
_STEPS = 8  # normalisation at the front of a network is no longer than this


def wanted_sizes(view: GraphView, name: str) -> dict[int, int]:
    """Size by axis where the graph wants one: channels and pixels of a convolution, the shared axis of a product."""
    info = view.inputs[name]
    if not info.type.tensor_type.HasField("shape"):
        return {}
    axes = list(range(len(info.type.tensor_type.shape.dim)))
    found: dict[int, int] = {}
    for _ in range(_STEPS):
        readers = view.consumers.get(name, [])
        for node in readers:
            for place, size in _needs(view, node, name, len(axes)).items():
                found.setdefault(axes[place], size)
        follow = next((node for node in readers if _keeps(node, name)), None)
        if found or follow is None:
            break
        if follow.proto.op_type == "Transpose":
            axes = _permuted(follow, axes)
        name = follow.outputs[0]
    return found


def _keeps(node: Node, name: str) -> bool:
    kept = node.proto.op_type in _SAME_SHAPE or node.proto.op_type == "Transpose"
    return kept and not node.proto.domain and node.inputs[:1] == (name,) and bool(node.outputs)


def _permuted(node: Node, axes: Sequence[int]) -> list[int]:
    perm = next((list(a.ints) for a in node.proto.attribute if a.name == "perm"), [*range(len(axes))][::-1])
    return [axes[i] for i in perm] if sorted(perm) == list(range(len(axes))) else list(axes)


def _needs(view: GraphView, node: Node, name: str, rank: int) -> dict[int, int]:
    operator = node.proto.op_type
    if node.inputs[0] != name or node.proto.domain:
        return {}
    if operator in _WINDOWS and rank >= 3:
        pixels = dict.fromkeys(range(2, rank), PICTURE)
        return {1: channels, **pixels} if (channels := _channels(view, node)) else pixels
    if operator in ("MatMul", "MatMulInteger", "Gemm") and rank >= 1 and len(node.inputs) > 1:
        weight = _stored_dims(view, node.inputs[1])
        if len(weight) >= 2:
            turned = {a.name: a.i for a in node.proto.attribute if a.name in ("transA", "transB")}
            return {0 if turned.get("transA") else rank - 1: weight[-1 if turned.get("transB") else -2]}
    return {}


def _channels(view: GraphView, node: Node) -> int | None:
    place = {"Conv": 1, "ConvInteger": 1, "ConvTranspose": 1, "QLinearConv": 3}.get(node.proto.op_type)
    weight = _stored_dims(view, node.inputs[place]) if place is not None and len(node.inputs) > place else ()
    if len(weight) < 2:
        return None
    if node.proto.op_type == "ConvTranspose":
        return weight[0]
    return weight[1] * next((a.i for a in node.proto.attribute if a.name == "group"), 1)


def _stored_dims(view: GraphView, name: str) -> tuple[int, ...]:
    """Dims of an initializer, or of one that is only dequantized or cast on the way; () if it is none."""
    maker = view.producer.get(name)
    if maker is not None and maker.proto.op_type in ("DequantizeLinear", "Cast", "Identity"):
        name = maker.inputs[0]
    return tuple(view.initializers[name].dims) if name in view.initializers else ()
