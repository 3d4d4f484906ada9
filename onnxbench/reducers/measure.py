"""Which of two reproducers is smaller: the order in which shrinking goes down."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
from onnx import AttributeProto, ModelProto, TensorProto, TypeProto

from onnxbench.core.attributes import all_graphs, all_nodes
from onnxbench.core.counts import stored_bytes
from onnxbench.core.graph import opset_imports
from onnxbench.core.tensors import is_external, tensors
from onnxbench.core.values import Array, is_float
from onnxbench.errors import ModelError
from onnxbench.reducers.reproducer import Reproducer, payload_bytes, values_of

Size = tuple[int, ...]

#: A name as the names pass gives them.
SHORT = re.compile(r"(?:x|y|w|h|node|d|f|g|local|a)\d*")
#: Simplest first; what is in neither list comes last.
_PLAIN_TYPES = (TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL, TensorProto.STRING)
_KNOWN_TYPES = (TensorProto.DOUBLE, TensorProto.INT32, TensorProto.FLOAT16)
#: How much each operator has to be understood; others 9.
_OPERATORS = {"Identity": 0, "Relu": 1, "Neg": 2, "Abs": 2, "Add": 2, "Mul": 2, "Sub": 3, "ReduceSum": 3, "Conv": 5}
#: Numbers of a tensor that are looked at one by one; those of a larger one count as odd, unless all are equal.
_LOOKED_AT = 4096
#: Bytes of a weight that are read for that.
_READ = 1 << 20
_ODD = 12
_KIB = 1024


def size(reproducer: Reproducer) -> Size:
    """The size of a reproducer; of two the one that compares as less is the smaller.

    In this order: nodes (bodies and functions counted), age of the opset, graph inputs and outputs, whole KiB of the file with its
    weights, elements of weights and feeds, attributes and what they hold, operators, dims above 1 or open, types, odd
    values, names that are not short, bytes. Bytes come in KiB first, so that a plainer type may cost a few.
    """
    proto = reproducer.proto
    stored = [tensor for tensor in tensors(proto) if not is_external(tensor) or tensor.dims]
    bytes_ = stored_bytes(reproducer.model)
    arrays = [array for _, _, array in reproducer.fed()]
    nodes = list(all_nodes(proto))
    return (
        len(nodes),
        -opset_imports(proto.opset_import).get("", 0),
        len(proto.graph.input) + len(proto.graph.output) + sum(len(node.input) for node in nodes),
        bytes_ // _KIB,
        sum(_elements(tensor) for tensor in stored) + sum(array.size for array in arrays),
        sum(_weight(attribute) for node in nodes for attribute in node.attribute),
        sum(_OPERATORS.get(node.op_type, 9) for node in nodes),
        sum(_long_dims(tensor.dims) for tensor in stored) + sum(_open_dims(kind) for kind in _types(proto)),
        sum(_type_rank(tensor.data_type) for tensor in stored) + sum(_type_rank(_element(k)) for k in _types(proto)),
        sum(_oddness_of(reproducer, tensor) for tensor in stored) + sum(oddness(array) for array in arrays),
        sum(not SHORT.fullmatch(name) for name in names(proto)),
        bytes_,
    )


def _elements(tensor: TensorProto) -> int:
    count = 1
    for dim in tensor.dims:
        count *= dim
    return count


def _weight(attribute: AttributeProto) -> int:
    """1 for an attribute that is there, and how odd its numbers are."""
    numbers = [*attribute.ints, *attribute.floats]
    numbers += [attribute.i] if attribute.type == AttributeProto.INT else []
    numbers += [attribute.f] if attribute.type == AttributeProto.FLOAT else []
    return (
        0
        if attribute.type in (AttributeProto.GRAPH, AttributeProto.GRAPHS)
        else 10 + sum(digits(n) if n else 0 for n in numbers)
    )


def _long_dims(dims: object) -> int:
    return sum(dim > 1 for dim in dims)  # type: ignore[attr-defined]


def _types(proto: ModelProto) -> Iterator[TypeProto]:
    for graph in all_graphs(proto):
        yield from (value.type for value in (*graph.input, *graph.output))


def _open_dims(kind: TypeProto) -> int:
    return sum(not dim.HasField("dim_value") or dim.dim_value > 1 for dim in kind.tensor_type.shape.dim)


def _element(kind: TypeProto) -> int:
    return kind.tensor_type.elem_type or TensorProto.FLOAT


def _type_rank(code: int) -> int:
    return 0 if code in _PLAIN_TYPES else 1 if code in _KNOWN_TYPES else 2


def _oddness_of(reproducer: Reproducer, tensor: TensorProto) -> int:
    count = _elements(tensor)
    if payload_bytes(tensor) > _READ:
        return count * _ODD
    try:
        return oddness(values_of(reproducer, tensor))
    except ModelError:  # a payload that does not fit may be the failure
        return count * _ODD


def oddness(array: Array) -> int:
    """How odd the numbers of an array are: 0 for ones, 1 for each zero, more with each sign and digit and other number."""
    if array.dtype.kind in "OUS" or array.dtype.kind == "c":
        return sum(min(len(str(item)), _ODD) for item in array.reshape(-1)[:_LOOKED_AT].tolist())
    if array.size > _LOOKED_AT and (array != array.reshape(-1)[0]).any():
        return int(array.size) * _ODD
    wide = array.astype(np.float64) if is_float(array.dtype) else array.astype(np.int64)
    distinct, counts = np.unique(wide, return_counts=True)
    costs = [digits(item) for item in distinct.tolist()]
    return sum(cost * int(count) for cost, count in zip(costs, counts, strict=True)) + 4 * (len(costs) - 1)


def digits(number: float) -> int:
    """How odd a number is: 0 for 1, 1 for 0, which hides much, else by its sign, its digits, and whether it is whole."""
    if number in (0, 1):
        return int(number == 0)
    if number != number or number in (np.inf, -np.inf):
        return _ODD
    significant = f"{abs(number):.6e}".partition("e")[0].replace(".", "").rstrip("0")
    return min(_ODD, len(significant) + (number < 0) + 2 * (number != int(number)) + (abs(number) != 1))


def names(proto: ModelProto) -> set[str]:
    """Every name that a model gives: of nodes, values, dims, graphs and functions."""
    found = {node.name for node in all_nodes(proto)}
    for node in all_nodes(proto):
        found.update(node.output)
    for graph in all_graphs(proto):
        found.add(graph.name)
        found.update(value.name for value in (*graph.input, *graph.output, *graph.value_info))
        found.update(tensor.name for tensor in graph.initializer)
        for value in (*graph.input, *graph.output, *graph.value_info):
            found.update(dim.dim_param for dim in value.type.tensor_type.shape.dim)
    for function in proto.functions:
        found |= {function.name, function.domain, *function.input, *function.output}
    return found - {""}
