"""Step into a round of a Loop or Scan: what its body is fed in one iteration."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from onnx import ModelProto, NodeProto, numpy_helper

from onnxbench.core import weights
from onnxbench.core.graph import Node, plain_domain
from onnxbench.core.model import Model
from onnxbench.core.subgraph import carve
from onnxbench.core.types import type_of
from onnxbench.core.values import Array, Value
from onnxbench.errors import AnswerIsNo
from onnxbench.reducers.engine import Engine
from onnxbench.runtimes.base import Runtime

#: Rounds that are looked into: the first, the next few, one in the middle, the last.
_FIRST = 3


def rounds(engine: Engine, node: Node, trusted: Sequence[Runtime]) -> Iterator[dict[str, Value]]:
    """Rounds that may be worth a look: for each a value for the formal inputs of the body.

    Loop (Loop-1 to -25): the body gets the round, the condition, and what goes round. Scan (Scan-9 to -25): what goes
    round, and a slice of each scanned input. What goes round at the start of round k is what the node returns when it
    may run only k rounds; a trusted runtime computes it.
    """
    if plain_domain(node.proto.domain) or node.proto.op_type not in ("Loop", "Scan"):
        return
    stepper = _Loop if node.proto.op_type == "Loop" else _Scan
    steps = stepper(engine, node, trusted)
    count = steps.count()
    if count is None or count < 1:
        return
    for place in dict.fromkeys([*range(min(_FIRST, count)), count // 2, count - 1]):
        inputs = steps.inputs_of(place)
        if inputs is not None:
            yield inputs


@dataclass(slots=True)
class _Steps:
    """What both kinds share."""

    engine: Engine
    node: Node
    trusted: Sequence[Runtime]

    @property
    def formal(self) -> list[str]:
        """The inputs of the body."""
        ((_, body),) = self.engine.view.bodies(self.node)
        return list(body.inputs)

    def value(self, name: str) -> Value:
        """A value that the node reads, from what is known or stored."""
        engine = self.engine
        if name in engine.values:
            return engine.values[name]
        held = engine.view.initializers
        return weights.array(engine.model, held[name]) if name in held else None

    def after(self, changed: Mapping[str, Value], count: int) -> list[Value] | None:
        """What goes round after the node has run with some inputs changed; `count` values of it."""
        names = [name for name in self.node.outputs[:count] if name]
        if len(names) < count:
            return None
        engine = self.engine
        known = {**engine.values, **changed}
        try:
            piece = carve(engine.model, engine.view, [self.node], known, types=engine.types, outputs=names)
        except AnswerIsNo:
            return None
        fed = _with(piece.model, changed)
        for runtime in self.trusted:
            outcome = runtime.run(fed, {**piece.feeds, **changed}, limits=engine.oracle.limits)
            if outcome.ok:
                return [outcome.outputs[name] for name in names]
        return None


class _Loop(_Steps):
    def _given(self, place: int) -> str:
        inputs = self.node.proto.input
        return inputs[place] if place < len(inputs) else ""

    def count(self) -> int | None:
        limit = self.value(self._given(0)) if self._given(0) else None
        return int(limit.reshape(-1)[0]) if isinstance(limit, np.ndarray) and limit.size else _FIRST

    def inputs_of(self, place: int) -> dict[str, Value] | None:
        carried = list(self.node.proto.input[2:])
        if any(not name for name in carried):
            return None
        state: list[Value] | None
        if place == 0:
            state = [self.value(name) for name in carried]
        elif not self._given(0):
            return None  # without a trip count there is nothing to shorten
        else:
            state = self.after({self._given(0): np.asarray(place, np.int64)}, len(carried))
        if state is None:
            return None
        start: list[Value] = [np.asarray(place, np.int64), np.asarray(True)]
        return dict(zip(self.formal, [*start, *state], strict=False))


class _Scan(_Steps):
    def _split(self) -> tuple[list[str], list[str]]:
        scanned = _integer(self.node.proto, "num_scan_inputs", 0)
        names = list(self.node.proto.input)
        return names[: len(names) - scanned], names[len(names) - scanned :]

    def _axes(self, count: int) -> list[int]:
        return _integers(self.node.proto, "scan_input_axes") or [0] * count

    def count(self) -> int | None:
        if self.engine.view.opsets.get("", 1) < 9:
            return None
        _, scanned = self._split()
        first = self.value(scanned[0]) if scanned else None
        return first.shape[self._axes(len(scanned))[0]] if isinstance(first, np.ndarray) else None

    def inputs_of(self, place: int) -> dict[str, Value] | None:
        carried, scanned = self._split()
        backwards = _integers(self.node.proto, "scan_input_directions") or [0] * len(scanned)
        slices: list[Value] = []
        before: dict[str, Value] = {}
        for name, axis, back in zip(scanned, self._axes(len(scanned)), backwards, strict=True):
            value = self.value(name)
            if not isinstance(value, np.ndarray):
                return None
            length = value.shape[axis]
            slices.append(np.ascontiguousarray(value.take(length - 1 - place if back else place, axis)))
            before[name] = _part(value, axis, length - place if back else 0, length if back else place)
        state = [self.value(name) for name in carried] if place == 0 else self.after(before, len(carried))
        return None if state is None else dict(zip(self.formal, [*state, *slices], strict=False))


def _with(model: Model, changed: Mapping[str, Value]) -> Model:
    """A copy of a model in which some values are others, of other lengths: fed, or stored."""
    proto = ModelProto()
    proto.CopyFrom(model.proto)
    graph = proto.graph
    for place, tensor in enumerate(graph.initializer):
        value = changed.get(tensor.name)
        if isinstance(value, np.ndarray):
            graph.initializer[place].CopyFrom(numpy_helper.from_array(value, tensor.name))
    for declared in graph.input:
        if declared.name in changed and (kind := type_of(changed[declared.name])) is not None:
            declared.type.CopyFrom(kind)
    for declared in graph.output:
        declared.ClearField("type")  # what the node returns has other lengths too
    del graph.value_info[:]
    return dataclasses.replace(model, proto=proto)


def _part(value: Array, axis: int, start: int, end: int) -> Array:
    return np.ascontiguousarray(value[(slice(None),) * (axis % value.ndim) + (slice(start, end),)])


def _integer(node: NodeProto, name: str, default: int) -> int:
    return next((attribute.i for attribute in node.attribute if attribute.name == name), default)


def _integers(node: NodeProto, name: str) -> list[int]:
    return next((list(attribute.ints) for attribute in node.attribute if attribute.name == name), [])
