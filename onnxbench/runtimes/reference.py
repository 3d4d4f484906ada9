"""The reference evaluator of the onnx package: slow, complete for recent opsets, wrong for some old ones."""

from __future__ import annotations

from typing import Any

from onnxbench.errors import UsageError, quote
from onnxbench.runtimes.base import Runtime, Spec, as_unsupported
from onnxbench.runtimes.job import Job
from onnxbench.runtimes.outcome import Outcome


class Reference(Runtime):
    """A tie-breaker, not an oracle: wrong for BatchNormalization 9 to 13, Softmax before 13 and other old forms."""

    name = "reference"
    package = "onnx"
    sentence = "the onnx package's reference evaluator; a tie-breaker below opset 13"
    function = "onnxbench.runtimes.reference:run_job"

    def parse(self, spec: Spec) -> dict[str, Any]:
        if spec.arguments:
            raise UsageError("OB205", f"reference takes no options: {quote(str(spec))}")
        return {}

    def version(self) -> str:
        import onnx

        return onnx.__version__

    def explain(self, outcome: Outcome) -> Outcome:
        lacking = (
            outcome.error in ("OpRunNotImplementedError", "NotImplementedError")
            or "No implementation" in outcome.message
        )
        return as_unsupported(outcome) if outcome.kind == "error" and lacking else outcome

    def script(self) -> str:
        return _SCRIPT


def run_job(job: Job) -> dict[str, Any]:
    """Outputs by name, or whatever the evaluator raises."""
    from pathlib import Path

    import onnx
    from onnx.reference import ReferenceEvaluator

    from onnxbench.core.model import Model
    from onnxbench.core.placing import embedded
    from onnxbench.runtimes import packing

    model = onnx.ModelProto.FromString(job.model)
    if job.folder is not None:
        model = embedded(Model(model, Path(job.folder)))
    evaluator = ReferenceEvaluator(model)
    job.phase = "run"
    names = job.fetch or list(evaluator.output_names)
    feeds = {name: packing.unpack(job.feeds[name]) for name in evaluator.input_names if name in job.feeds}
    return dict(zip(names, evaluator.run(names, feeds), strict=True))


_SCRIPT = """\
import onnx
from onnx.reference import ReferenceEvaluator


def run(model_path, feeds):
    evaluator = ReferenceEvaluator(onnx.load(model_path))
    phase("run")
    return dict(zip(evaluator.output_names, evaluator.run(None, feeds)))


def version():
    return "the reference evaluator of onnx " + onnx.__version__
"""
