"""One run of a model, as seen inside a worker.

Also imported by older interpreters (see `onnxbench.worker`): numpy only, Python 3.9 syntax.
"""

from __future__ import annotations

import time
from typing import Any

from onnxbench.runtimes import packing
from onnxbench.worker import resolve, text_of


class Job:
    """What a runtime's worker function gets.

    Attributes:
        model: the serialised ModelProto; large tensors are external.
        folder: what external tensors are relative to, or None.
        feeds: packed values by input name (`packing.unpack` makes arrays of them).
        fetch: names of the wanted outputs, or None for all.
        options: the runtime's own, as plain data.
        phase: "load" until the function says "run".
        loaded: when it said so.
    """

    def __init__(self, request: dict[str, Any]) -> None:
        self.model: bytes = request["model"]
        self.folder: str | None = request["folder"]
        self.feeds: dict[str, Any] = request["feeds"]
        self.fetch: list[str] | None = request["fetch"]
        self.options: dict[str, Any] = request["options"]
        self.loaded = 0.0
        self.phase = "load"

    @property
    def phase(self) -> str:
        return self._phase

    @phase.setter
    def phase(self, name: str) -> None:
        self._phase = name
        self.loaded = time.perf_counter()


def perform(request: dict[str, Any]) -> dict[str, Any]:
    """Run a job by the function it names: {"outputs"} of packed values, or {"error"} with its phase."""
    job = Job(request)
    started = time.perf_counter()
    try:
        outputs = resolve(request["function"])(job)
        seconds, run_seconds = time.perf_counter() - started, time.perf_counter() - job.loaded
        place = request.get("spill")
        packed = {name: packing.spill(packing.pack(value), place) for name, value in outputs.items()}
    except MemoryError:
        raise
    except BaseException as error:
        return {"error": type(error).__name__, "message": text_of(error), "phase": job.phase}
    return {"outputs": packed, "seconds": seconds, "run_seconds": run_seconds}
