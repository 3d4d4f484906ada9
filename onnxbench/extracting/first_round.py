"""What a loop body is fed in its first round: that needs no run of the loop."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from onnx import helper

from onnxbench.core import weights
from onnxbench.core.graph import GraphView, Node, plain_domain
from onnxbench.core.model import Model
from onnxbench.core.sizes import lone_shape
from onnxbench.core.values import Value

Values = Mapping[str, Value]


def first_round(model: Model, view: GraphView, node: Node, known: Values) -> dict[str, Value] | None:
    """Values of the formal inputs of the body of a Loop or Scan; None if it has no round, or they are not known.

    Loop (Loop-1 to -25): the body gets the round, the condition, and what goes round. Scan (Scan-9 to -25): what goes
    round, and a slice of each scanned input.

    Args:
        model: of the view.
        view: the graph around the body.
        node: the Loop or Scan.
        known: values of the graph around.
    """
    bodies = view.bodies(node)
    if plain_domain(node.proto.domain) or len(bodies) != 1:
        return None
    ((_, body),) = bodies
    given: list[Any] = []
    for name in node.proto.input:
        if name and name not in known and _holder(view, name) is None:
            return None
        given.append(_value(model, view, name, known) if name else None)
    try:
        if node.proto.op_type == "Loop":
            values = _loop(body, given)
        else:
            values = _scan(node, given) if node.proto.op_type == "Scan" and view.opsets.get("", 0) >= 9 else None
    except (AttributeError, IndexError, TypeError, ValueError):  # a node that does not fit what it is fed
        return None
    return dict(zip(body.inputs, values, strict=False)) if values is not None else None


def _holder(view: GraphView, name: str) -> GraphView | None:
    return next((scope for scope in view.outward() if name in scope.initializers), None)


def _value(model: Model, view: GraphView, name: str, known: Values) -> Value:
    if name in known:
        return known[name]
    home = _holder(view, name)
    assert home is not None
    return weights.array(model, home.initializers[name])


def _loop(body: GraphView, given: list[Any]) -> list[Any] | None:
    most, go, *states = [*given, None, None][: max(2, len(given))]
    if (most is not None and int(np.reshape(most, -1)[0]) < 1) or (go is not None and not np.all(go)):
        return None
    counter, condition = [*body.inputs.values(), None, None][:2]
    return [_shaped(counter, 0, np.int64), _shaped(condition, True, np.bool_), *states]


def _shaped(declared: Any, value: int, dtype: type[np.generic]) -> Value:
    return np.full(lone_shape(declared.type) if declared is not None else (), value, dtype)


def _scan(node: Node, given: list[Any]) -> list[Any] | None:
    attributes = {attribute.name: helper.get_attribute_value(attribute) for attribute in node.proto.attribute}
    count = attributes.get("num_scan_inputs", 0)
    if not 0 < count <= len(given):
        return None
    states, scanned = given[: len(given) - count], given[len(given) - count :]
    axes = attributes.get("scan_input_axes") or [0] * count
    backward = attributes.get("scan_input_directions") or [0] * count
    if any(value.shape[axis] == 0 for value, axis in zip(scanned, axes, strict=True)):
        return None
    slices = [np.take(v, -1 if back else 0, axis) for v, axis, back in zip(scanned, axes, backward, strict=True)]
    return [*states, *slices]
