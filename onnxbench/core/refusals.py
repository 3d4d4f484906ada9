"""Which nodes onnx's own inference refuses for nothing but the ranks of what they read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from onnx import NodeProto, TensorProto, TypeProto, defs, helper, shape_inference

from onnxbench import isolate

#: Ranks below are not told: runtimes take [1] for a scalar in many places, and a vector for a matrix in some.
_LEAST = 2
#: Types of inputs whose rank is told; integers are often parameters, of which runtimes take any rank (Expand).
_DATA = frozenset({TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.BFLOAT16})


@dataclass(frozen=True, slots=True)
class Question:
    """A node of ai.onnx without bodies.

    Attributes:
        node: serialized.
        version: of ai.onnx.
        inputs: element type and rank of each, None for what is not known; None for an input that is no tensor.
    """

    node: bytes
    version: int
    inputs: tuple[tuple[int | None, int | None] | None, ...]


def refused(
    questions: Sequence[Question], *, timeout: float | None = 20.0, memory: int | None = None
) -> Sequence[bool]:
    """Of each node whether its rule refuses these ranks, and takes the same inputs without them; in a worker.

    Nothing is refused where inference gives no answer, hangs or dies.

    Args:
        questions: the nodes.
        timeout: seconds for all of them.
        memory: cap of the worker in bytes.
    """
    if not questions:
        return []
    result = isolate.call_light(run_questions, (questions,), timeout=timeout, memory=memory)
    return result.value if isinstance(result, isolate.Ok) else [False] * len(questions)


def run_questions(questions: Iterable[Question]) -> list[bool]:
    """`refused`, for a worker."""
    return [_is_refused(question) for question in questions]


def _is_refused(question: Question) -> bool:
    node = NodeProto.FromString(question.node)
    try:
        schema = defs.get_schema(node.op_type, question.version, "")
    except defs.SchemaError:
        return False
    elements = _elements(schema, question.inputs)
    if elements is None:
        return False
    told = [
        _told(element, given[1] if given is not None else None)
        for element, given in zip(elements, question.inputs, strict=True)
    ]
    if all(rank is None for rank in told):
        return False
    bare = _takes(schema, node, question.version, elements, [None] * len(told))
    return bare is True and _takes(schema, node, question.version, elements, told) is False


def _told(element: int, rank: int | None) -> int | None:
    return rank if rank is not None and rank >= _LEAST and element in _DATA else None


def _elements(schema: defs.OpSchema, inputs: Sequence[tuple[int | None, int | None] | None]) -> list[int] | None:
    """An element type for each input; where it is unknown one that the schema allows, for ranks do not depend on it."""
    if not schema.inputs:
        return None
    formals = [schema.inputs[min(place, len(schema.inputs) - 1)] for place in range(len(inputs))]
    bound: dict[str, int | None] = {
        formal.type_str: given[0]
        for formal, given in zip(formals, inputs, strict=True)
        if given is not None and given[0]
    }
    found: list[int] = []
    for formal, given in zip(formals, inputs, strict=True):
        if given is None:
            return None
        element = given[0] or bound.setdefault(formal.type_str, _first(formal))
        if element is None:
            return None
        found.append(element)
    return found


def _first(formal: defs.OpSchema.FormalParameter) -> int | None:
    names = {f"tensor({name.lower()})": number for name, number in TensorProto.DataType.items()}
    allowed = [names[text] for text in sorted(formal.types) if text in names]
    return TensorProto.FLOAT if TensorProto.FLOAT in allowed else next(iter(allowed), None)


def _takes(
    schema: defs.OpSchema, node: NodeProto, version: int, elements: Sequence[int], ranks: Sequence[int | None]
) -> bool | None:
    """Whether the node's rule takes these inputs; None if it does not tell."""
    types: dict[str, TypeProto] = {}
    for name, element, rank in zip(node.input, elements, ranks, strict=True):
        if name:
            types[name] = helper.make_tensor_type_proto(element, None if rank is None else [None] * rank)
    try:
        shape_inference.infer_node_outputs(
            schema, node, types, {}, opset_imports=[helper.make_opsetid("", version)], ir_version=10
        )
    except shape_inference.InferenceError:
        return False
    except Exception:  # whatever else it is, it is no word about ranks
        return None
    return True
