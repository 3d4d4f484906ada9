"""The onnx package's checker and shape inference, as runtimes of which every model that they accept is right."""

from __future__ import annotations

from typing import Any

from onnxbench.errors import UsageError, quote
from onnxbench.runtimes.base import Runtime, Spec
from onnxbench.runtimes.job import Job


class _Validity(Runtime):
    package = "onnx"
    decides = True
    needs_feeds = False

    def parse(self, spec: Spec) -> dict[str, Any]:
        if spec.arguments:
            raise UsageError("OB205", f"{self.name} takes no options: {quote(str(spec))}")
        return {}

    def version(self) -> str:
        import onnx

        return onnx.__version__


class Checker(_Validity):
    """A model fails if the checker refuses it, dies or does not answer; it computes nothing."""

    name = "checker"
    sentence = "the onnx package's checker, which computes nothing: what it refuses fails"
    function = "onnxbench.runtimes.validity:check"

    def script(self) -> str:
        return _CHECKER + _VERSION


class Inference(_Validity):
    """A model fails if strict shape inference refuses it, dies or does not answer; it computes nothing."""

    name = "inference"
    sentence = "the onnx package's strict shape inference, which computes nothing: what it refuses fails"
    function = "onnxbench.runtimes.validity:infer"

    def script(self) -> str:
        return _INFERENCE + _VERSION


def check(job: Job) -> dict[str, Any]:
    """Nothing, or what the checker raises."""
    from onnx import ModelProto, checker

    try:
        checker.check_model(ModelProto.FromString(job.model), full_check=True)
    except Exception as error:
        raise type(error)(first(str(error))) from None
    return {}


def infer(job: Job) -> dict[str, Any]:
    """Nothing, or what inference raises."""
    from onnx import ModelProto, shape_inference

    model = ModelProto.FromString(job.model)
    try:
        shape_inference.infer_shapes(model, check_type=True, strict_mode=True, data_prop=True)
    except Exception as error:
        raise type(error)(first(str(error))) from None
    return {}


def first(message: str) -> str:
    """The first of the errors in a message: those of the nodes that follow are no failures of their own."""
    head, *parts = message.split("(op_type:")
    return head + "(op_type:" + parts[0] if parts else message


_CHECKER = """\
import onnx


def run(model_path, feeds):
    try:
        onnx.checker.check_model(model_path, full_check=True)
    except Exception as error:
        raise type(error)(first(str(error))) from None
    return {}


"""
_INFERENCE = """\
import onnx
import onnx.shape_inference


def run(model_path, feeds):
    model = onnx.load(model_path, load_external_data=False)
    try:
        onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True, data_prop=True)
    except Exception as error:
        raise type(error)(first(str(error))) from None
    return {}


"""
_VERSION = """\
def first(message):
    head, *parts = message.split("(op_type:")
    return head + "(op_type:" + parts[0] if parts else message


def version():
    return "onnx " + onnx.__version__
"""
