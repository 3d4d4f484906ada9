"""Evaluate constant nodes in a worker: many in one session, those that fail by themselves, each as a last resort alone."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from onnx import TensorProto

from onnxbench.core.border import home_of
from onnxbench.core.graph import Node
from onnxbench.core.model import Model
from onnxbench.core.subgraph import carve
from onnxbench.core.values import Value, dtype_name, is_narrow
from onnxbench.core.weights import array
from onnxbench.errors import AnswerIsNo, BenchError
from onnxbench.folding.doubts import doubted
from onnxbench.folding.scope import Scope, holder
from onnxbench.recording import record
from onnxbench.runtimes.base import Limits, Runtime, Spec
from onnxbench.runtimes.find import find
from onnxbench.runtimes.outcome import Outcome
from onnxbench.runtimes.reference import Reference


class Evaluator:
    """Values of constant nodes of one scope.

    ONNX Runtime without optimizations computes them; what it has no kernel for, the reference evaluator may. Values that
    are made with types that evaluators are known to disagree about (bf16, 8 bits and fewer, strings) are believed only
    if both give the same.
    """

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._runtime: Runtime = find("onnxruntime:opt=disable")
        self._second: Runtime = find("reference")

    def run(self, nodes: Sequence[Node], wanted: Sequence[str]) -> dict[str, Value]:
        """The wanted values, as far as they can be computed.

        Args:
            nodes: all that it takes, in an order that can run.
            wanted: values that some of them make.
        """
        outcome = self._together(self._runtime, nodes, wanted)
        if outcome is None:
            return {}
        if outcome.ok:
            return self._believed(nodes, outcome.outputs)
        return self._believed(nodes, self._one_by_one(nodes, wanted, hangs=outcome.kind == "timeout"))

    def _together(self, runtime: Runtime, nodes: Sequence[Node], wanted: Sequence[str]) -> Outcome | None:
        scope = self._scope
        try:
            piece = carve(scope.model, scope.view, nodes, self._around(nodes), outputs=list(wanted))
        except AnswerIsNo:
            return None
        return runtime.run(piece.model, piece.feeds, limits=scope.options.limits)

    def _one_by_one(self, nodes: Sequence[Node], wanted: Sequence[str], *, hangs: bool) -> dict[str, Value]:
        scope = self._scope
        with tempfile.TemporaryDirectory(prefix="onnxbench-") as folder:
            try:
                known: Mapping[str, Value] = record(
                    [_LastResort(self._runtime)],
                    scope.model,
                    scope.view,
                    self._around(nodes),
                    workspace=Path(folder),
                    limits=scope.options.limits,
                    hangs=hangs,
                    only=nodes,
                ).values
            except BenchError:
                return {}
            return {name: _held(known[name]) for name in wanted if name in known}

    def _around(self, nodes: Sequence[Node]) -> dict[str, Value]:
        """What these nodes of a body read of Constants around it; initializers come along by themselves."""
        view = self._scope.view
        if view.parent is None or view.isolated:
            return {}
        read = {name for node in nodes for name in node.inputs if name and not view.defines(name)}
        homes = {name: home for name in read if (home := home_of(view, name)) is not None and name in home.producer}
        held = {name: holder(home, name) for name, home in homes.items()}
        return {name: array(self._scope.model, t) for name, t in held.items() if isinstance(t, TensorProto)}

    def _believed(self, nodes: Sequence[Node], found: Mapping[str, Value]) -> dict[str, Value]:
        doubts = doubted(self._scope, nodes)
        doubtful = [name for name, value in found.items() if name in doubts or _is_doubtful(value)]
        if not doubtful:
            return dict(found)
        outcome = self._together(self._second, nodes, doubtful)
        second = outcome.outputs if outcome is not None and outcome.ok else {}
        wrong = {name for name in doubtful if name not in second or not is_same(found[name], second[name])}
        return {name: value for name, value in found.items() if name not in wrong}


class _LastResort(Reference):
    """The reference for a single operator that another runtime has no kernel for.

    What that refuses, hangs or dies on stays as it is: an integer divided by zero has no value, whoever gives it one.
    """

    def __init__(self, first: Runtime) -> None:
        super().__init__(Spec(self.name))
        self._first = first

    def run(
        self,
        model: Model,
        feeds: Mapping[str, Any],
        fetch: Sequence[str] | None = None,
        *,
        limits: Limits | None = None,
        spill: Path | None = None,
    ) -> Outcome:
        outcome = self._first.run(model, feeds, fetch, limits=limits, spill=spill)
        if outcome.kind != "unsupported" or len(model.proto.graph.node) > 1:
            return outcome
        return super().run(model, feeds, fetch, limits=limits, spill=spill)


def _held(value: Value) -> Value:
    return np.array(value) if isinstance(value, np.memmap) else value


def _is_doubtful(value: Value) -> bool:
    return not isinstance(value, np.ndarray) or is_narrow(value.dtype) or dtype_name(value.dtype) == "string"


def is_same(one: Value, other: Value) -> bool:
    """Whether two tensors are the same to the last bit; of sequences it is not told."""
    if not isinstance(one, np.ndarray) or not isinstance(other, np.ndarray):
        return False
    if one.dtype != other.dtype or one.shape != other.shape:
        return False
    if dtype_name(one.dtype) == "string":
        return bool(np.array_equal(one, other))
    return one.tobytes() == other.tobytes()
