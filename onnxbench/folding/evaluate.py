"""Evaluate constant nodes in a worker: many in one session, those that fail by themselves, each as a last resort alone."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from onnxbench.core.graph import Node
from onnxbench.core.subgraph import carve
from onnxbench.core.values import Value, dtype_name, dtype_of, is_narrow
from onnxbench.errors import AnswerIsNo, BenchError
from onnxbench.folding.scope import Scope
from onnxbench.recording import record
from onnxbench.runtimes.base import Runtime
from onnxbench.runtimes.find import find


class Evaluator:
    """Values of constant nodes of one scope.

    ONNX Runtime without optimizations computes them; what it cannot, the reference evaluator may. Values of types that
    evaluators are known to disagree about (bf16, 8 bits and fewer, strings) are believed only if both give the same.
    """

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._runtimes: list[Runtime] = [find("onnxruntime:opt=disable"), find("reference")]

    def run(self, nodes: Sequence[Node], wanted: Sequence[str]) -> dict[str, Value]:
        """The wanted values, as far as they can be computed.

        Args:
            nodes: all that it takes, in an order that can run.
            wanted: values that some of them make.
        """
        try:
            found = self._together(self._runtimes[0], nodes, wanted)
        except AnswerIsNo:
            return {}
        if found is None:
            found = self._one_by_one(nodes, wanted)
        doubted = self._doubted(nodes)
        doubtful = [name for name in wanted if name in found and (name in doubted or _is_doubtful(found[name]))]
        if doubtful:
            second = self._together(self._runtimes[1], nodes, doubtful) or {}
            for name in doubtful:
                if name not in second or not _is_same(found[name], second[name]):
                    del found[name]
        return found

    def _together(self, runtime: Runtime, nodes: Sequence[Node], wanted: Sequence[str]) -> dict[str, Value] | None:
        scope = self._scope
        piece = carve(scope.model, scope.view, nodes, {}, outputs=list(wanted))
        outcome = runtime.run(piece.model, piece.feeds, limits=scope.options.limits)
        return dict(outcome.outputs) if outcome.ok else None

    def _one_by_one(self, nodes: Sequence[Node], wanted: Sequence[str]) -> dict[str, Value]:
        scope = self._scope
        with tempfile.TemporaryDirectory(prefix="onnxbench-") as folder:
            try:
                known: Mapping[str, Value] = record(
                    self._runtimes,
                    scope.model,
                    scope.view,
                    {},
                    workspace=Path(folder),
                    limits=scope.options.limits,
                    only=nodes,
                ).values
            except BenchError:
                return {}
            return {name: _held(known[name]) for name in wanted if name in known}

    def _doubted(self, nodes: Sequence[Node]) -> set[str]:
        """Values that are made with ones of a type that evaluators disagree about."""
        doubted: set[str] = set()
        for node in nodes:
            inputs = any(name in doubted or _is_doubted(self._scope.element(name)) for name in node.inputs if name)
            doubted.update(name for name in node.outputs if inputs or _is_doubted(self._scope.element(name)))
        return doubted


def _held(value: Value) -> Value:
    return np.array(value) if isinstance(value, np.memmap) else value


def _is_doubtful(value: Value) -> bool:
    return not isinstance(value, np.ndarray) or is_narrow(value.dtype) or dtype_name(value.dtype) == "string"


def _is_doubted(element: int | None) -> bool:
    dtype = dtype_of(element) if element is not None else None
    return dtype is not None and (is_narrow(dtype) or dtype_name(dtype) == "string")


def _is_same(one: Value, other: Value) -> bool:
    if not isinstance(one, np.ndarray) or not isinstance(other, np.ndarray):
        return False
    if one.dtype != other.dtype or one.shape != other.shape:
        return False
    if dtype_name(one.dtype) == "string":
        return bool(np.array_equal(one, other))
    return one.tobytes() == other.tobytes()
