"""How the error of wrong numbers grows along a network: what each node gives when all before it ran on the suspect too."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from onnxbench.core.compare import Difference, Tolerance, differ
from onnxbench.core.values import Value
from onnxbench.recording import record
from onnxbench.reducers.engine import Engine
from onnxbench.runtimes.base import Limits


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
