"""A runtime that fails on demand: a plug-in like anybody's, found through its entry point."""

from __future__ import annotations

import inspect
from typing import Any

import misbehaving_faults

from onnxbench.errors import UsageError
from onnxbench.runtimes import packing
from onnxbench.runtimes.base import Runtime, Spec, parse_pairs
from onnxbench.runtimes.job import Job


class Misbehaving(Runtime):
    """ONNX Runtime without optimizations, and a planted fault; `misbehaving_faults` has the options."""

    name = "misbehaving"
    package = "onnxbench-misbehaving"
    sentence = "fails on demand, for tests"
    function = "misbehaving:run_job"

    def parse(self, spec: Spec) -> dict[str, Any]:
        options = parse_pairs(spec)
        unknown = set(options) - misbehaving_faults.OPTIONS
        if unknown:
            raise UsageError("OB205", f"misbehaving has no option {sorted(unknown)[0]!r}")
        return dict(options)

    def version(self) -> str:
        return "0"

    def cheap(self) -> Runtime:
        same = Misbehaving(self.spec)
        same.options = {**self.options, "cheap": "1"}
        return same

    def script(self) -> str:
        source = inspect.getsource(misbehaving_faults)
        return f"{source}\n\nOPTIONS_GIVEN = {self.options!r}\n{_SCRIPT}"


def run_job(job: Job) -> dict[str, Any]:
    """Outputs by name, unless the planted fault strikes."""

    def phase(name: str) -> None:
        job.phase = name

    feeds = {name: packing.unpack(value) for name, value in job.feeds.items()}
    return misbehaving_faults.run_faulty(job.model, job.folder, feeds, job.fetch, job.options, phase)


_SCRIPT = """

def run(model_path, feeds):
    with open(model_path, "rb") as file:
        return run_faulty(file.read(), str(pathlib.Path(model_path).parent), feeds, None, OPTIONS_GIVEN, phase)


def version():
    return "misbehaving 0"
"""
