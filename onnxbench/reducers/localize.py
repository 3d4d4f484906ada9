"""Find the nodes that are wrong by themselves, in a few sessions: each is fed right values, so that no drift can mislead.

First every node alone, then, if each of them is right, every two nodes that follow each other: a fusion needs both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from onnx import TypeProto

from onnxbench.core.attributes import subgraphs
from onnxbench.core.compare import Difference, Tolerance, differ
from onnxbench.core.explode import explode
from onnxbench.core.graph import GraphView, Node, draws
from onnxbench.core.model import Model
from onnxbench.core.values import Value
from onnxbench.errors import AnswerIsNo
from onnxbench.runtimes.base import Limits, Runtime

#: Components and bytes of values in one session.
_COMPONENTS, _BYTES = 1024, 256 << 20
_RANK = {"presence": 4, "dtype": 4, "shape": 3, "nonfinite": 2, "values": 1}


@dataclass(frozen=True, slots=True)
class Suspicion:
    """Nodes whose outputs are wrong though their inputs are right; `isolated` is the worst of these differences."""

    nodes: tuple[Node, ...]
    isolated: Difference


@dataclass(slots=True)
class Localizer:
    """Runs a graph in pieces that do not touch.

    Attributes:
        suspect: the runtime that gives wrong numbers.
        model, view: the graph.
        values: right values of all inputs and nodes, as far as they are known.
        types: inferred types.
        workspace: folder for large outputs.
        sessions: how many were made.
    """

    suspect: Runtime
    model: Model
    view: GraphView
    values: Mapping[str, Value]
    types: Mapping[str, TypeProto]
    tolerance: Tolerance
    limits: Limits
    workspace: Path
    sessions: int = 0
    _found: list[Suspicion] = field(default_factory=list)

    def find(self) -> list[Suspicion]:
        """The suspects, the worst first; nodes alone, or else pairs."""
        for groups in (self._nodes(), self._pairs()):
            for chunk in self._chunks(groups):
                self._ask(chunk)
            if self._found:
                break
        return sorted(self._found, key=_badness, reverse=True)

    def _nodes(self) -> Iterator[tuple[Node, ...]]:
        return ((node,) for node in self.view.order if self._is_known(node))

    def _pairs(self) -> Iterator[tuple[Node, ...]]:
        for node in self.view.order:
            if not self._is_known(node) or any(True for _ in subgraphs(node.proto)):
                continue
            before = {self.view.producer[name] for name in node.inputs if name in self.view.producer}
            yield from ((first, node) for first in sorted(before, key=lambda n: n.index) if self._is_known(first))

    def _is_known(self, node: Node) -> bool:
        makes_known = any(name in self.values for name in node.outputs if name)
        return makes_known and not draws(node.proto) and all(self._has(name) for name in node.inputs if name)

    def _has(self, name: str) -> bool:
        return name in self.values or name in self.view.initializers or name in self.view.sparse

    def _chunks(self, groups: Iterator[tuple[Node, ...]]) -> Iterator[list[tuple[Node, ...]]]:
        chunk: list[tuple[Node, ...]] = []
        total = 0
        for group in groups:
            size = sum(_bytes(self.values.get(name)) for node in group for name in (*node.inputs, *node.outputs))
            if chunk and (len(chunk) == _COMPONENTS or total + size > _BYTES):
                yield chunk
                chunk, total = [], 0
            chunk.append(group)
            total += size
        if chunk:
            yield chunk

    def _ask(self, groups: Sequence[tuple[Node, ...]]) -> None:
        """Run groups side by side; halve them if that fails, until the one that fails is alone and left out."""
        try:
            exploded = explode(self.model, self.view, groups, self.values, self.types)
        except AnswerIsNo:
            return
        self.sessions += 1
        place = self.workspace / f"exploded-{id(self.view):x}-{self.sessions}.bin"
        outcome = self.suspect.run(exploded.model, exploded.feeds, limits=self.limits, spill=place)
        if not outcome.ok:
            if len(groups) > 1 and outcome.kind not in ("timeout", "memory"):
                middle = len(groups) // 2
                self._ask(groups[:middle])
                self._ask(groups[middle:])
            return
        worst: dict[int, Difference] = {}
        for fresh, (group, name) in exploded.origin.items():
            if name not in self.values:
                continue
            if fresh in outcome.outputs:
                difference = differ(self.values[name], outcome.outputs[fresh], self.tolerance, name)
            else:
                difference = Difference(name, "presence", detail="wanted, but not there")
            if difference is not None and (group not in worst or _rank(difference) > _rank(worst[group])):
                worst[group] = difference
        place.unlink(missing_ok=True)
        self._found += [Suspicion(groups[group], difference) for group, difference in worst.items()]


def _badness(suspicion: Suspicion) -> tuple[float, float]:
    return _rank(suspicion.isolated)


def _rank(difference: Difference) -> tuple[float, float]:
    error = difference.norm_rel
    return _RANK[difference.kind], error if np.isfinite(error) else difference.share


def _bytes(value: Value) -> int:
    if isinstance(value, list):
        return sum(map(_bytes, value))
    return value.nbytes if isinstance(value, np.ndarray) else 0
