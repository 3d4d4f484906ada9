"""Simpler operators in the place of those that the failure does not need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from onnx import TypeProto

from onnxbench.core.attributes import all_nodes
from onnxbench.core.types import infer
from onnxbench.reducers.edits import is_standard, node_at, tidied
from onnxbench.reducers.passes import shrink_pass
from onnxbench.reducers.reproducer import Reproducer
from onnxbench.reducers.shrink import Shrinker

#: Simpler operators that read and make the same types.
_INSTEAD = {
    "ConvTranspose": "Conv",
    "Sub": "Add",
    "Div": "Mul",
    "Pow": "Mul",
    "Max": "Add",
    "Min": "Add",
    "PRelu": "Mul",
}
_REDUCTIONS = ("ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceSumSquare")
#: What may stand for anything that makes the type that it reads, simplest first.
_UNARY = ("Identity", "Relu", "Neg")
#: Up to so many nodes all of them are tried.
_FEW = 8


@shrink_pass("operators", "put Identity, Relu, Add, Conv in the place of operators that the failure does not need", 75)
def run(shrinker: Shrinker) -> None:
    """Each node by itself; in the order of the file."""
    limits = shrinker.settler.limits
    types = infer(shrinker.best.model, timeout=limits.timeout, memory=limits.memory)
    nodes = list(all_nodes(shrinker.best.proto))
    simple = _UNARY if len(nodes) <= _FEW else _UNARY[:1]
    for place, node in enumerate(nodes):
        if not is_standard(node) or not node.output:
            continue
        passes_on = len(node.output) == 1 and len(node.input) and _same(types, node.input[0], node.output[0])
        unary = [op for op in simple if passes_on and op != node.op_type]
        if any(shrinker.consider(_with(shrinker.best, place, op, 1)) for op in unary):
            continue
        instead = "ReduceSum" if node.op_type in _REDUCTIONS else _INSTEAD.get(node.op_type)
        if instead is not None:
            shrinker.consider(_with(shrinker.best, place, instead, len(node.input)))


def _same(types: Mapping[str, TypeProto], read: str, made: str) -> bool:
    """Whether both are tensors of the same type and shape, as far as it is known."""
    if read not in types or made not in types:
        return False
    a, b = types[read], types[made]
    return a.HasField("tensor_type") and a == b


def _with(best: Reproducer, place: int, operator: str, count: int) -> Reproducer:
    """With another operator, which reads so many of the inputs."""
    proto = best.draft()
    node = node_at(proto, place)
    node.op_type = operator
    inputs: Sequence[str] = list(node.input)[:count]
    node.input[:] = inputs
    if operator in _UNARY or operator in ("Add", "Mul"):
        del node.attribute[:]
    return tidied(best, proto)
