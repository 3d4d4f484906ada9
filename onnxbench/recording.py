"""Run a model once and keep the values it computes, on disk where they are large."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from onnx import TypeProto

from onnxbench.core.counts import is_endless
from onnxbench.core.graph import GraphView, Node
from onnxbench.core.model import Model
from onnxbench.core.subgraph import carve
from onnxbench.core.values import Value
from onnxbench.errors import AnswerIsNo
from onnxbench.runtimes.base import Limits, Runtime
from onnxbench.runtimes.outcome import Outcome

#: Nodes per session: the values of so many are in the worker's memory at once, before they go to disk.
CHUNK = 256
#: A run may take so many times the slowest one so far, once there is one, when the model is known to hang.
_PATIENCE = 20.0


@dataclass(slots=True)
class Recording:
    """Values by name, and why others are missing.

    Attributes:
        values: what was recorded, and what was known before; large arrays are memory-mapped.
        missing: a sentence for each node whose values could not be had, by node index.
    """

    values: dict[str, Value]
    missing: dict[int, str] = field(default_factory=dict)


def record(
    runtimes: Sequence[Runtime],
    model: Model,
    view: GraphView,
    known: Mapping[str, Value],
    *,
    workspace: Path,
    types: Mapping[str, TypeProto] | None = None,
    limits: Limits | None = None,
    hangs: bool = False,
    only: Sequence[Node] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Recording:
    """Record the outputs of every node of a view.

    Nodes run in runs of up to `CHUNK`, with every output exposed; a run that fails is halved until the node that fails
    is alone, and that node goes to the next runtime. What depends on a missing value is missing too.

    Args:
        runtimes: most trusted first; they should not optimize, since exposing a value changes what they fuse.
        model: the model of the view.
        view: the main graph, a body, or a function call.
        known: values of the view's inputs, and of what its bodies capture.
        workspace: folder for large values.
        types: types by name, where the file declares none.
        limits: for each run.
        hangs: learn the timeout from the runs that end, since the model holds a node that does not.
        only: nodes to record, in an order that can run; None for all.
        progress: called with nodes done and nodes in all.
    """
    recorder = _Recorder(runtimes, model, view, workspace, types or {}, limits or Limits(), hangs)
    recorder.result.values.update(known)
    order = view.order if only is None else only
    start, size = 0, 1 if hangs else CHUNK
    while start < len(order):
        recorder.run(order[start : start + size])
        start += size
        size = min(CHUNK, size * 2)
        if progress is not None:
            progress(min(start, len(order)), len(order))
    return recorder.result


@dataclass(slots=True)
class _Recorder:
    runtimes: Sequence[Runtime]
    model: Model
    view: GraphView
    workspace: Path
    types: Mapping[str, TypeProto]
    limits: Limits
    hangs: bool
    result: Recording = field(default_factory=lambda: Recording({}))
    slowest: float = 0.0
    files: int = 0

    def run(self, nodes: Sequence[Node]) -> None:
        able = self._runnable(nodes)
        if not able or self._try(self.runtimes[0], able) is None:
            return
        if len(able) > 1:
            half = len(able) // 2
            self.run(able[:half])
            self.run(able[half:])
            return
        for runtime in self.runtimes[1:]:
            if self._try(runtime, able) is None:
                return
        if able[0].index not in self.result.missing:
            self.result.missing[able[0].index] = f"{able[0].label} cannot be run alone"

    def _runnable(self, nodes: Sequence[Node]) -> list[Node]:
        """The nodes whose inputs are known or made by others of them."""
        have: set[str] = set()
        able: list[Node] = []
        for node in nodes:
            lacking = next((n for n in node.inputs if n and n not in have and not self._is_known(n)), None)
            if lacking is None:
                able.append(node)
                have.update(node.outputs)
            else:
                self.result.missing.setdefault(node.index, f"{node.label} reads {lacking!r}, which is missing")
        return able

    def _is_known(self, name: str) -> bool:
        if name in self.result.values:
            return True
        return any(name in scope.initializers or name in scope.sparse for scope in self.view.outward())

    def _try(self, runtime: Runtime, nodes: Sequence[Node]) -> str | None:
        """Record the nodes in one session; a reason if it fails."""
        outputs = [name for node in nodes for name in node.outputs if name]
        try:
            piece = carve(self.model, self.view, nodes, self.result.values, types=self.types, outputs=outputs)
        except AnswerIsNo as error:
            return self._note(nodes, error.message)
        if is_endless(piece.model.proto):
            return self._note(nodes, "its functions call each other without an end in sight")
        self.files += 1
        spill = self.workspace / f"values-{id(self.view):x}-{self.files}.bin"
        outcome = runtime.run(piece.model, piece.feeds, limits=self._limits(), spill=spill)
        if not outcome.ok:
            return self._note(nodes, f"{runtime}: {outcome.sentence()}")
        self._keep(outcome, nodes)
        return None

    def _keep(self, outcome: Outcome, nodes: Sequence[Node]) -> None:
        self.slowest = max(self.slowest, outcome.seconds)
        self.result.values.update(outcome.outputs)
        for node in nodes:  # an earlier runtime may have failed
            self.result.missing.pop(node.index, None)

    def _note(self, nodes: Sequence[Node], reason: str) -> str:
        if len(nodes) == 1:
            self.result.missing[nodes[0].index] = f"{nodes[0].label}: {reason}"
        return reason

    def _limits(self) -> Limits:
        if not self.hangs or not self.slowest or self.limits.timeout is None:
            return self.limits
        return dataclasses.replace(self.limits, timeout=min(self.limits.timeout, max(1.0, _PATIENCE * self.slowest)))
