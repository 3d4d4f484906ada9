"""What an operator asks of the numbers of one operand: an index, a size, an axis, a divisor."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from onnxbench.core.graph import GraphView, Node
from onnxbench.core.knowledge import Dims, Knowledge


@dataclass(frozen=True, slots=True)
class Bound:
    """Numbers in [low, high), or the `exact` ones where their count fits; `whole` asks floats for whole numbers."""

    low: float
    high: float
    exact: tuple[int, ...] | None = None
    whole: bool = True

    def shifted(self, by: float) -> Bound:
        return replace(self, low=self.low + by, high=self.high + by)

    def narrowed(self, other: Bound) -> Bound:
        """What both allow; this one where that is nothing."""
        low, high = max(self.low, other.low), min(self.high, other.high)
        return replace(self, low=low, high=high, exact=self.exact or other.exact) if low < high else self


_FIRST = Bound(0, 1)  # the one index that is right whatever the size


Rule = Callable[[Knowledge, GraphView, Node], Bound | None]


def role(knowledge: Knowledge, view: GraphView, node: Node, place: int) -> Bound | None:
    """What a node asks of its operand at a place; None if any number will do."""
    rule = RULES.get((node.proto.domain.removeprefix("ai.onnx"), node.proto.op_type, place))
    try:
        return rule(knowledge, view, node) if rule is not None else None
    except LookupError:  # it lacks an input, an output or an axis that its operator has
        return None


def _attribute(node: Node, name: str, default: int) -> int:
    return next((a.i for a in node.proto.attribute if a.name == name), default)


def _dims(knowledge: Knowledge, view: GraphView, node: Node, place: int) -> Dims:
    return knowledge.dims(view, node.proto.input[place]) if place < len(node.proto.input) else None


def _below(dim: int | None) -> Bound:
    return _FIRST if not dim else Bound(0, dim)


def _along(data: int, default: int = 0) -> Rule:
    """An index into the axis of the attribute `axis` of another operand."""

    def rule(knowledge: Knowledge, view: GraphView, node: Node) -> Bound:
        dims, axis = _dims(knowledge, view, node, data), _attribute(node, "axis", default)
        return _below(dims[axis]) if dims is not None and -len(dims) <= axis < len(dims) else _FIRST

    return rule


def _nd(knowledge: Knowledge, view: GraphView, node: Node) -> Bound:
    """GatherND and ScatterND: one bound for the columns of an index, so the smallest of the dims they may name."""
    data, index = _dims(knowledge, view, node, 0), _dims(knowledge, view, node, 1)
    first = _attribute(node, "batch_dims", 0)
    columns = index[-1] if index else None
    dims = list(data or [])[first : None if columns is None else first + columns]
    return _FIRST if not dims or None in dims else _below(min(dim for dim in dims if dim is not None))


def _numbers(low: float, high: float, *, whole: bool = True) -> Rule:
    return lambda knowledge, view, node: Bound(low, high, whole=whole)


def _axis(knowledge: Knowledge, view: GraphView, node: Node) -> Bound:
    return _below(len(_dims(knowledge, view, node, 0) or ()))


def _count(knowledge: Knowledge, view: GraphView, node: Node, place: int) -> int | None:
    dims = _dims(knowledge, view, node, place)
    return None if dims is None or len(dims) != 1 else dims[0]


def _axes(place: int) -> Rule:
    """Several axes, which must not repeat: the first ones."""

    def rule(knowledge: Knowledge, view: GraphView, node: Node) -> Bound:
        count = _count(knowledge, view, node, place)
        return replace(_axis(knowledge, view, node), exact=None if count is None else tuple(range(count)))

    return rule


def _reshape(knowledge: Knowledge, view: GraphView, node: Node) -> Bound:
    """The declared shape of the result if it is known, else all elements on the last axis."""
    result = knowledge.dims(view, node.outputs[0])
    count = _count(knowledge, view, node, 1)
    if result is not None and None not in result:
        return Bound(1, 2, exact=tuple(dim or 0 for dim in result))
    return Bound(1, 2, exact=None if not count else (*[1] * (count - 1), -1))


def _same_sizes(knowledge: Knowledge, view: GraphView, node: Node) -> Bound:
    """Resize and Expand to the declared shape of the result, else to the size that the data has, which is always allowed."""
    result, dims = knowledge.dims(view, node.outputs[0]), _dims(knowledge, view, node, 0)
    known = next((shape for shape in (result, dims) if shape is not None and None not in shape), None)
    if known is None:
        return Bound(1, 2)
    axes = next((a.ints for a in node.proto.attribute if a.name == "axes"), range(len(known)))
    is_there = all(-len(known) <= axis < len(known) for axis in axes)
    return Bound(1, 2, exact=tuple(known[axis] or 0 for axis in axes) if is_there else None)


def _split(knowledge: Knowledge, view: GraphView, node: Node) -> Bound:
    dims, axis, count = _dims(knowledge, view, node, 0), _attribute(node, "axis", 0), _count(knowledge, view, node, 1)
    dim = dims[axis] if dims is not None and -len(dims) <= axis < len(dims) else None
    if dim is None or not count:
        return Bound(1, 2)
    return Bound(1, 2, exact=(*[dim // count] * (count - 1), dim - dim // count * (count - 1)))


def _first_axes_half(*, upper: bool) -> Rule:
    """Slice: starts in the lower half of the smallest dim, ends in the upper one."""

    def rule(knowledge: Knowledge, view: GraphView, node: Node) -> Bound:
        dims = [dim for dim in _dims(knowledge, view, node, 0) or () if dim]
        least = min(dims, default=1)
        return Bound(least // 2 + 1, least + 1) if upper else Bound(0, least // 2 + 1 if least > 1 else 1)

    return rule


def _k(knowledge: Knowledge, view: GraphView, node: Node) -> Bound:
    """TopK: 1 up to the size of its axis."""
    bound = _along(0, -1)(knowledge, view, node)
    return (bound or _FIRST).shifted(1)


def _steps_of(axis_name: str | None) -> Rule:
    """Lengths of sequences: 1 up to the size of the time axis."""

    def rule(knowledge: Knowledge, view: GraphView, node: Node) -> Bound:
        dims = _dims(knowledge, view, node, 0)
        axis = 0 if axis_name is None else _attribute(node, axis_name, 0)
        return _below(dims[axis] if dims and axis < len(dims) else None).shifted(1)

    return rule


def _regions(knowledge: Knowledge, view: GraphView, node: Node) -> Bound | None:
    """RoiAlign: left, top, right and bottom of each, in a picture of two sides."""
    dims, of = _dims(knowledge, view, node, 0), _dims(knowledge, view, node, 1)
    sides = dims[-2:] if dims is not None else ()
    if len(sides) < 2 or not of or None in (*sides, of[0]) or min(side or 0 for side in sides) < 3:
        return None
    bottom, right = ((side or 0) - 1 for side in sides)
    return Bound(0, 1, exact=tuple(edge for number in range(of[0] or 0) for edge in (number % 2, 0, right, bottom)))


def _divisor(knowledge: Knowledge, view: GraphView, node: Node) -> Bound | None:
    return Bound(1, 10, whole=False)


def _depth(knowledge: Knowledge, view: GraphView, node: Node) -> Bound:
    depth = knowledge.scalar(view, node.proto.input[1]) if len(node.proto.input) > 1 else None
    return Bound(0, 4) if depth is None else _below(int(depth))


def _compared(place: int) -> Rule:
    """What a single number is compared with, such as a sample rate: any other leads into the branch for errors."""

    def rule(knowledge: Knowledge, view: GraphView, node: Node) -> Bound | None:
        dims, other = _dims(knowledge, view, node, place), knowledge.scalar(view, node.proto.input[1 - place])
        alone = dims is not None and all(dim == 1 for dim in dims)
        return Bound(other, other + 1) if alone and other is not None else None

    return rule


_REDUCTIONS = [
    f"Reduce{kind}" for kind in ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare")
]

RULES: dict[tuple[str, str, int], Rule] = {
    ("", "Gather", 1): _along(0),
    ("", "GatherElements", 1): _along(0),
    ("", "ScatterElements", 1): _along(0),
    ("", "Scatter", 1): _along(0),
    ("", "GatherND", 1): _nd,
    ("", "ScatterND", 1): _nd,
    ("", "Equal", 0): _compared(0),
    ("", "Equal", 1): _compared(1),
    ("", "OneHot", 0): _depth,
    ("", "OneHot", 1): _numbers(4, 8),
    ("", "SequenceAt", 1): _numbers(0, 1),
    ("", "SequenceInsert", 2): _numbers(0, 1),
    ("", "SequenceErase", 1): _numbers(0, 1),
    ("", "RoiAlign", 1): _regions,
    ("", "RoiAlign", 2): _along(0),
    ("", "MelWeightMatrix", 0): _numbers(2, 7),
    ("", "MelWeightMatrix", 1): _numbers(16, 33),
    ("", "MelWeightMatrix", 2): _numbers(8000, 16001),
    ("", "MelWeightMatrix", 3): _numbers(0, 300),
    ("", "MelWeightMatrix", 4): _numbers(2000, 4001),
    ("", "NegativeLogLikelihoodLoss", 1): _along(0, 1),
    ("", "SoftmaxCrossEntropyLoss", 1): _along(0, 1),
    (".ml", "ArrayFeatureExtractor", 1): _along(0, -1),
    ("com.microsoft", "EmbedLayerNormalization", 0): _along(2),
    ("com.microsoft", "EmbedLayerNormalization", 1): _along(4),
    ("com.microsoft", "GatherBlockQuantized", 1): _along(0),
    ("", "Reshape", 1): _reshape,
    ("", "Expand", 1): _same_sizes,
    ("", "Resize", 3): _same_sizes,
    ("", "Resize", 2): _numbers(1, 2),
    ("", "Upsample", 1): _numbers(1, 2),
    ("", "Tile", 1): _numbers(1, 3),
    ("", "Pad", 1): _numbers(0, 2),
    ("", "ConstantOfShape", 0): _numbers(1, 4),
    ("", "Range", 0): _numbers(0, 3),
    ("", "Range", 1): _numbers(4, 9),
    ("", "Range", 2): _numbers(1, 3),
    ("", "Slice", 1): _first_axes_half(upper=False),
    ("", "Slice", 2): _first_axes_half(upper=True),
    ("", "Slice", 3): _axes(3),
    ("", "Slice", 4): _numbers(1, 2),
    ("", "Split", 1): _split,
    ("", "SplitToSequence", 1): _split,
    ("", "TopK", 1): _k,
    ("", "Loop", 0): _numbers(1, 4),
    ("", "CumSum", 1): _axis,
    ("", "Trilu", 1): _numbers(0, 3),
    ("", "Squeeze", 1): _axes(1),
    ("", "Unsqueeze", 1): _axes(1),
    ("", "BitShift", 1): _numbers(0, 8),
    ("", "Div", 1): _divisor,
    ("", "Mod", 1): _divisor,
    ("", "ReverseSequence", 1): _steps_of("time_axis"),
    ("", "NonMaxSuppression", 2): _numbers(1, 5),
    ("", "BatchNormalization", 4): _numbers(0.1, 2, whole=False),
    **{("", operator, 4): _steps_of(None) for operator in ("LSTM", "GRU", "RNN")},
    **{("", operator, 1): _axes(1) for operator in _REDUCTIONS},
}
