"""Whether a form comes upon a number that the specification leaves open: a float turned into a whole number that cannot hold it.

Sources: ai.onnx Cast ("out of range" is undefined), QuantizeLinear (a scale that is no number gives NaN, which no whole number is).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from onnx import AttributeProto, ModelProto, NodeProto, helper

from onnxbench.converters import believed
from onnxbench.core.model import Model
from onnxbench.core.values import Array, Value, is_float
from onnxbench.runtimes.base import Limits


def comes_to_undefined(model: ModelProto, feeds: Mapping[str, Value], limits: Limits) -> bool:
    """Whether a run of a small model turns a float into a whole number that cannot hold it."""
    turns = [node for node in model.graph.node if _is_turn(node)]
    if not turns:
        return False
    read = list(dict.fromkeys(name for node in turns for name in node.input[:2]))
    shown = ModelProto()
    shown.CopyFrom(model)
    del shown.graph.output[:]
    # An Identity each: a graph may not give an input of its own as an output.
    for place, name in enumerate(read):
        shown.graph.node.append(helper.make_node("Identity", [name], [f"shown_{place}"]))
        shown.graph.output.add(name=f"shown_{place}")
    ran = believed.run(Model(shown, label="the form"), feeds, limits)
    if not ran.outcome.ok:
        return False
    values = dict(zip(read, ran.outcome.outputs.values(), strict=True))
    return any(_is_open(node, values, saturates=not ran.by_reference) for node in turns)


def _is_turn(node: NodeProto) -> bool:
    if node.op_type == "Cast":
        target = _target(node)
        return target is not None and target.kind in "iu"
    return node.op_type == "QuantizeLinear"


def _target(node: NodeProto) -> np.dtype | None:
    """The type that a Cast gives; None below opset 6, where no runtime has it, and its name is a text."""
    to = next((a.i for a in node.attribute if a.name == "to" and a.type == AttributeProto.INT), None)
    return None if to is None else np.dtype(helper.tensor_dtype_to_np_dtype(to))


def _is_open(node: NodeProto, values: Mapping[str, Value], *, saturates: bool) -> bool:
    """Whether nothing says what a node makes of its values.

    Args:
        node: a Cast or QuantizeLinear.
        values: what it reads.
        saturates: whether who runs it gives the last whole number for infinity, which the reference evaluator does not.
    """
    read = [_wide(values[name]) for name in node.input[:2]]
    if any(numbers is None for numbers in read):
        return False
    first, *rest = (numbers for numbers in read if numbers is not None)
    if node.op_type == "QuantizeLinear":
        told = ~np.isnan(first) if saturates else np.isfinite(first)
        return not told.all() or not all(np.isfinite(scale).all() and scale.all() for scale in rest)
    target = _target(node)
    assert target is not None
    held = np.iinfo(target)
    with np.errstate(invalid="ignore"):
        return not bool(((np.trunc(first) >= held.min) & (np.trunc(first) <= held.max)).all())


def _wide(value: Value) -> Array | None:
    """Floats as float64; None for anything else."""
    return value.astype(np.float64) if isinstance(value, np.ndarray) and is_float(value.dtype) else None
