"""How the error of wrong numbers grows along a network: what each node gives when all before it ran on the suspect too."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from onnxbench.core.compare import Difference, Tolerance, differ
from onnxbench.core.graph import GraphView
from onnxbench.core.values import Value
from onnxbench.recording import record
from onnxbench.reducers.engine import Engine
from onnxbench.reducers.localize import Suspicion
from onnxbench.reducers.result import Along
from onnxbench.runtimes.base import Limits

#: Nodes that a report tells of.
_MOST = 2000


def series(view: GraphView, suspicions: Sequence[Suspicion], measured: Mapping[int, Difference | None]) -> list[Along]:
    """Both errors of each node in the order in which they run; of many nodes the suspects and some between.

    Args:
        view: the graph.
        suspicions: the nodes that are wrong by themselves.
        measured: what `cumulative` found.
    """
    alone = {suspicion.nodes[-1].index: suspicion.isolated for suspicion in suspicions}
    nodes = [node for node in view.order if node.index in measured or node.index in alone]
    stride = -(-len(nodes) // max(1, _MOST - len(alone))) if len(nodes) > _MOST else 1
    return [
        Along(
            node.proto.name or next(filter(None, node.outputs), ""),
            node.proto.op_type,
            _norm(alone.get(node.index)),
            _norm(measured[node.index]) if node.index in measured else None,
        )
        for place, node in enumerate(nodes)
        if place % stride == 0 or node.index in alone
    ]


def _norm(difference: Difference | None) -> float | None:
    if difference is None:
        return 0.0
    return difference.norm_rel if math.isfinite(difference.norm_rel) else None


def cumulative(
    engine: Engine, feeds: Mapping[str, Value], tolerance: Tolerance, limits: Limits, workspace: Path
) -> dict[int, Difference | None]:
    """The worst difference of each node's outputs, by node index; None for a node that is right.

    Every value is exposed, so a fault that needs a fusion is not in it; nodes that cannot be told are left out.

    Args:
        engine: has the right values of every node.
        feeds: values of the graph's inputs.
        tolerance: for numbers.
        limits: of one run.
        workspace: folder for large values.
    """
    suspect = engine.oracle.suspect
    seen = record(
        [suspect], engine.model, engine.view, feeds, workspace=workspace, types=engine.types, limits=limits
    ).values
    found: dict[int, Difference | None] = {}
    for node in engine.view.order:
        names = [name for name in node.outputs if name and name in seen and name in engine.values]
        differences = [differ(engine.values[name], seen[name], tolerance, name) for name in names]
        wrong = [difference for difference in differences if difference is not None]
        if names:
            found[node.index] = max(wrong, key=lambda d: d.norm_rel if d.norm_rel == d.norm_rel else 1.0, default=None)
    return found
