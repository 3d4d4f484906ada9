"""How many times slower one runtime is than another."""

from __future__ import annotations

from collections.abc import Mapping

from onnxbench.core.model import Model
from onnxbench.core.values import Value
from onnxbench.runtimes.base import Limits, Runtime

#: Runs of each side, in turn: the fastest counts, for whatever else the machine does only makes a run slower.
_RUNS = 5
#: Runs that take so long say enough after fewer.
_LONG_S, _FEW = 2.0, 2


def slowness(
    suspect: Runtime, judge: Runtime, model: Model, feeds: Mapping[str, Value], limits: Limits
) -> float | None:
    """The ratio of the fastest runs, loading apart; None if a run fails.

    Each run is of a fresh session, so what a runtime does on its first run only is in it.
    """
    best: dict[str, float] = {}
    for done in range(_RUNS):
        for name, runtime in (("suspect", suspect), ("judge", judge)):
            outcome = runtime.run(model, feeds, limits=limits)
            if not outcome.ok:
                return None
            best[name] = min(best.get(name, outcome.run_seconds), outcome.run_seconds)
        if best["suspect"] > _LONG_S and done + 1 >= _FEW:
            break
    return best["suspect"] / max(best["judge"], 1e-9)
