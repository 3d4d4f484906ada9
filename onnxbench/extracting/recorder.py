"""Record values of a model in one run, those inside bodies too."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from onnxbench.core.graph import GraphView, Node
from onnxbench.core.model import Model
from onnxbench.core.values import Value
from onnxbench.errors import BenchError
from onnxbench.extracting.tracing import trace

if TYPE_CHECKING:  # most pieces are cut without a run
    from onnxbench.runtimes.base import Limits, Runtime

Feeds = Mapping[str, Value]


@dataclass(slots=True)
class Recorder:
    """Runs what comes before some values, once, and keeps what it gave.

    Attributes:
        model: what is run.
        feeds: gives values for its inputs.
        limits: of each run.
        why: why values are missing, in a sentence.
    """

    model: Model
    feeds: Callable[[Model], Feeds]
    limits: Limits
    why: str = ""
    _known: dict[int, dict[str, Value]] = field(default_factory=dict)
    _workspace: Path | None = None
    _slim: Model | None = None

    def values(self, view: GraphView, names: Sequence[str]) -> dict[str, Value]:
        """As many of the values as can be had, those of the graphs around it among them; `why` says why not all."""
        try:
            return self._in(view, names)
        except BenchError as error:
            self.why = self.why or error.message
            return {}

    def _in(self, view: GraphView, names: Sequence[str]) -> dict[str, Value]:
        known = self._known.get(id(view.graph))
        if known is None:
            known = self._known[id(view.graph)] = self._given(view)
        nodes, _ = trace(view, names, known)
        if nodes:
            from onnxbench.recording import record

            recording = record(
                self.runtimes(),
                self._light(),
                view,
                known,
                workspace=self._folder(),
                limits=self.limits,
                only=_runnable(view, nodes),
            )
            known.update(recording.values)
            self.why = self.why or next(iter(recording.missing.values()), "")
        return known

    def runtimes(self) -> list[Runtime]:
        """Who runs it: the first that can."""
        from onnxbench.runtimes.find import find

        return [find("onnxruntime:opt=disable"), find("reference")]

    def _given(self, view: GraphView) -> dict[str, Value]:
        """What is known before any node of a graph runs."""
        if view.parent is None or view.owner is None:
            return dict(self.feeds(self.model))
        outside = dict(self._in(view.parent, [name for name in view.owner.inputs if name]))
        if view.inputs:
            outside.update(self._first_round(view.parent, view.owner, outside))
        return outside

    def _first_round(self, around: GraphView, owner: Node, known: Feeds) -> Feeds:
        from onnxbench.extracting.first_round import first_round

        inputs = first_round(self._light(), around, owner, known)
        if inputs is None:
            self.why = self.why or f"the body of {owner.label} is not run"
        return inputs or {}

    def _light(self) -> Model:
        if self._slim is None:
            from onnxbench.core.slimming import slim

            self._slim = slim(self.model)
        return self._slim

    def _folder(self) -> Path:
        if self._workspace is None:
            from onnxbench.core import scratch

            self._workspace = scratch.until_exit()
        return self._workspace


def _runnable(view: GraphView, nodes: Sequence[Node]) -> list[Node]:
    wanted = {node.index for node in nodes}
    return [node for node in view.order if node.index in wanted]
