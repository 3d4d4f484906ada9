"""Do arithmetic before a Transpose instead of after it, where that leaves fewer of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from math import prod

import numpy as np
from onnx import AttributeProto, NodeProto, TensorProto, ValueInfoProto, helper

from onnxbench.core import weights
from onnxbench.core.graph import Node
from onnxbench.core.values import Array, dtype_of
from onnxbench.folding import stored
from onnxbench.folding.changes import Changes
from onnxbench.folding.constancy import refers
from onnxbench.folding.naming import free_name
from onnxbench.folding.passes import fold_pass
from onnxbench.folding.passes.transposes import is_transpose, permutation
from onnxbench.folding.scope import Scope, holder, is_default_domain

#: Operators that make each element of the elements at its place, their operands broadcast (from opset 7).
_NAMES = """
Abs Acos Acosh Add And Asin Asinh Atan Atanh BitShift BitwiseAnd BitwiseNot BitwiseOr BitwiseXor Cast Ceil Celu
Clip Cos Cosh Div Elu Equal Erf Exp Floor Gelu Greater GreaterOrEqual HardSigmoid HardSwish IsInf IsNaN LeakyRelu
Less LessOrEqual Log Max Mean Min Mish Mod Mul Neg Not Or Pow Reciprocal Relu Round Selu Shrink Sigmoid Sign Sin
Sinh Softplus Softsign Sqrt Sub Sum Swish Tan Tanh ThresholdedRelu Where Xor
"""
_ELEMENTWISE = frozenset(_NAMES.split())
#: Elements of a constant that is stored in another order.
_MOST = 1 << 16
#: Types whose elements NumPy stores one by one.
_PLAIN = frozenset(f"{kind}{bits}" for kind in ("int", "uint", "float") for bits in (8, 16, 32, 64)) | {"bool"}


@dataclass
class _Region:
    """Elementwise nodes that read each other, the same Transposes, and constants."""

    perm: tuple[int, ...]
    nodes: list[Node] = field(default_factory=list)
    feeding: dict[str, Node] = field(default_factory=dict)  # Transposes before it, by output


@fold_pass(
    "layouts", "do arithmetic before a Transpose instead of after it, where that leaves fewer", rank=9, late="Transpose"
)
def layouts(changes: Changes) -> None:
    """f(transpose(x), transpose(y), c) is transpose(f(x, y, c')) to the last bit for an elementwise f, broadcasting included.

    c' is the constant c in the order of x.
    """
    scope = changes.scope
    if scope.opset() < 7:
        return
    taken: set[str] = set()
    touched: set[int] = set()  # what a region moves, reads and is read by: where two meet, one waits for the next round
    for region in _regions(scope):
        near = {node.index for node in _neighbourhood(scope, region)}
        if not near & touched and _gain(scope, region) > 0:
            taken = taken or scope.names_in_use()
            touched |= near
            _move(changes, region, taken)


def _regions(scope: Scope) -> Iterator[_Region]:
    """What could move, by the order of axes that its Transposes make; in the order of the graph."""
    found: dict[tuple[int, ...], list[Node]] = {}
    for node in scope.view.nodes:
        if is_transpose(node.proto) and node.proto.output[0] not in scope.annotated:
            perm = permutation(scope, node)
            if perm is not None and list(perm) != sorted(perm):
                found.setdefault(tuple(perm), []).append(node)
    for perm, nodes in found.items():
        yield from _connected(scope, perm, nodes)


def _connected(scope: Scope, perm: tuple[int, ...], transposes: Sequence[Node]) -> list[_Region]:
    """The regions between Transposes of one kind: each node reads one of them, or a node that does, and constants besides."""
    feeding = {node.proto.output[0]: node for node in transposes}
    region_of: dict[str, _Region] = {}
    for node in _after(scope, transposes):
        operands = [name for name in node.proto.input if name]
        moved = [name for name in operands if name in region_of or name in feeding]
        rest = [name for name in operands if name not in moved]
        if not moved or not all(_is_still(scope, name, len(perm)) for name in rest):
            continue
        joined = _Region(perm)
        for region in _distinct(region_of[name] for name in moved if name in region_of):
            joined.nodes += region.nodes
            joined.feeding |= region.feeding
        joined.nodes.append(node)
        joined.feeding |= {name: feeding[name] for name in moved if name in feeding}
        for member in joined.nodes:
            region_of[member.proto.output[0]] = joined
    return _distinct(region_of.values())


def _neighbourhood(scope: Scope, region: _Region) -> Iterator[Node]:
    yield from region.feeding.values()
    for node in region.nodes:
        yield node
        yield from scope.view.consumers.get(node.proto.output[0], ())


def _after(scope: Scope, transposes: Sequence[Node]) -> list[Node]:
    """The elementwise nodes that read Transposes, or each other, in an order in which they can run."""
    reached: set[int] = set()
    pending = list(transposes)
    while pending:
        for reader in scope.view.consumers.get(pending.pop().proto.output[0], ()):
            if reader.index not in reached and _is_elementwise(scope, reader):
                reached.add(reader.index)
                pending.append(reader)
    return [node for node in scope.view.order if node.index in reached] if reached else []


def _is_elementwise(scope: Scope, node: Node) -> bool:
    proto = node.proto
    if proto.op_type not in _ELEMENTWISE or not is_default_domain(proto) or refers(proto):
        return False
    if proto.device_configurations:  # they count axes
        return False
    return len(proto.output) == 1 and proto.output[0] not in scope.annotated


def _distinct(regions: Iterable[_Region]) -> list[_Region]:
    return list({id(region): region for region in regions}.values())


def _is_still(scope: Scope, name: str, rank: int) -> bool:
    """Whether an operand is a single element, or a constant that can be stored in another order."""
    tensor = holder(scope.view, name) if name in scope.constants else None
    if isinstance(tensor, TensorProto) and name not in scope.annotated:
        dtype = dtype_of(tensor.data_type)
        return len(tensor.dims) <= rank and prod(tensor.dims) <= _MOST and dtype is not None and dtype.name in _PLAIN
    return scope.dims(name) == ()


def _gain(scope: Scope, region: _Region) -> int:
    """How many Transposes fewer there are when it has moved."""
    inside = {node.index for node in region.nodes}
    gone = sum(
        name not in scope.outputs and all(reader.index in inside for reader in scope.view.consumers[name])
        for name in region.feeding
    )
    for node in region.nodes:
        undone, others = _readers(scope, region, node, inside)
        gone += len(undone)
        gone -= others
    return gone


def _readers(scope: Scope, region: _Region, node: Node, inside: set[int]) -> tuple[list[Node], bool]:
    """Transposes that undo those of the region, and whether somebody else outside reads what a node of it makes."""
    name = node.proto.output[0]
    outside = [reader for reader in scope.view.consumers.get(name, ()) if reader.index not in inside]
    undone = [reader for reader in outside if _undoes(scope, region, reader)]
    return undone, name in scope.outputs or len(undone) < len(outside)


def _undoes(scope: Scope, region: _Region, reader: Node) -> bool:
    if not is_transpose(reader.proto):
        return False
    if reader.proto.output[0] in region.feeding:  # an order that is its own inverse: the region needs both
        return False
    after = permutation(scope, reader)
    return after is not None and [region.perm[axis] for axis in after] == list(range(len(region.perm)))


def _move(changes: Changes, region: _Region, taken: set[str]) -> None:
    scope = changes.scope
    inside = {node.index for node in region.nodes}
    names = {name: node.proto.input[0] for name, node in region.feeding.items()}
    for node in region.nodes:
        name = node.proto.output[0]
        names[name] = free_name(f"{name}_transposed", taken)
    for name in dict.fromkeys(name for node in region.nodes for name in node.proto.input):
        if name and name not in names and (tensor := _reordered(scope, name, region.perm)) is not None:
            names[name] = free_name(f"{name}_transposed", taken)
            changes.store(names[name], stored.tensor(tensor, names[name]))
    said = {value.name: value for value in scope.view.graph.value_info}
    for node in region.nodes:
        copy = NodeProto()
        copy.CopyFrom(node.proto)
        copy.input[:] = [names.get(name, name) for name in node.proto.input]
        copy.output[0] = names[node.proto.output[0]]
        changes.replace(node, copy, "layouts", "works before the Transposes that it read")
        if node.proto.output[0] in said:
            changes.declared.append(_declared(said[node.proto.output[0]], copy.output[0], region.perm))
        undone, others = _readers(scope, region, node, inside)
        for reader in undone:
            changes.replace(
                reader, _perm_set(reader.proto, copy.output[0], region.perm), "layouts", "its axes are in order"
            )
        if others:
            changes.add_after(node, _transpose(copy.output[0], node.proto.output[0], region.perm))


def _reordered(scope: Scope, name: str, perm: Sequence[int]) -> Array | None:
    """A constant in the order of the axes before a Transpose; None where one element stands for all."""
    tensor = holder(scope.view, name)
    if not isinstance(tensor, TensorProto) or prod(tensor.dims) == 1:
        return None
    array = weights.array(scope.model, tensor)
    whole = array.reshape((1,) * (len(perm) - array.ndim) + array.shape)
    back: Array = whole.transpose(np.argsort(perm))
    return back


def _declared(said: ValueInfoProto, fresh: str, perm: Sequence[int]) -> ValueInfoProto:
    """What the file says of a value, for its elements in the order before a Transpose."""
    copy = ValueInfoProto()
    copy.CopyFrom(said)
    copy.name = fresh
    dims = said.type.tensor_type.shape.dim
    if said.type.tensor_type.HasField("shape") and len(dims) == len(perm):
        for axis, place in enumerate(perm):
            copy.type.tensor_type.shape.dim[place].CopyFrom(dims[axis])
    elif said.type.HasField("tensor_type"):
        copy.type.tensor_type.ClearField("shape")
    return copy


def _perm_set(proto: NodeProto, source: str, perm: Sequence[int]) -> NodeProto:
    """A Transpose that has nothing to do any more; another pass lets it go."""
    copy = NodeProto()
    copy.CopyFrom(proto)
    copy.input[0] = source
    del copy.attribute[:]
    copy.attribute.add(name="perm", type=AttributeProto.INTS).ints.extend(range(len(perm)))
    return copy


def _transpose(source: str, target: str, perm: Sequence[int]) -> NodeProto:
    return helper.make_node("Transpose", [source], [target], name=source, perm=list(perm))
