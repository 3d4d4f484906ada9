"""How many times slower one runtime is than another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from onnxbench.core.model import Model
from onnxbench.core.values import Value
from onnxbench.runtimes.base import Limits, Runtime

#: Runs of each side, in turn: the fastest counts, for whatever else the machine does only makes a run slower.
_RUNS = 5
#: Runs that take so long say enough after fewer.
_LONG_S, _FEW = 2.0, 2


@dataclass(frozen=True, slots=True)
class Race:
    """How many times as long as the judge the suspect takes, by the fastest of so many runs of each."""

    times: float
    runs: int


def slowness(
    suspect: Runtime, judge: Runtime, model: Model, feeds: Mapping[str, Value], limits: Limits
) -> float | None:
    """The ratio of the fastest runs, loading apart; None if a run fails."""
    ran = race(suspect, judge, model, feeds, limits)
    return ran.times if ran is not None else None


def race(suspect: Runtime, judge: Runtime, model: Model, feeds: Mapping[str, Value], limits: Limits) -> Race | None:
    """Both on the same model in turn, loading apart; None if a run fails.

    Each run is of a fresh session, so what a runtime does on its first run only is in it.
    """
    best: dict[str, float] = {}
    runs = 0
    while runs < _RUNS and not (runs >= _FEW and best["suspect"] > _LONG_S):
        for name, runtime in (("suspect", suspect), ("judge", judge)):
            outcome = runtime.run(model, feeds, limits=limits)
            if not outcome.ok:
                return None
            best[name] = min(best.get(name, outcome.run_seconds), outcome.run_seconds)
        runs += 1
    return Race(best["suspect"] / max(best["judge"], 1e-9), runs)
