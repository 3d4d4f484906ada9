"""A Python function as a runtime: the original PyTorch model as trusted side, or a stand-in for a device."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from onnxbench.errors import UsageError, quote
from onnxbench.runtimes.base import Runtime, Spec
from onnxbench.runtimes.job import Job


class PythonFunction(Runtime):
    """`python:FILE:FUNCTION`: a function of (model bytes, feeds) or of (feeds) that returns outputs by name.

    A function with one parameter gets the feeds and computes the whole model itself, so it cannot run a piece of it:
    good for comparing, and for expected values, but a reduction needs one that takes the model too.
    """

    name = "python"
    package = ""
    sentence = "python:FILE:FUNCTION, a function (feeds) or (model_bytes, feeds) that returns outputs by name"
    function = "onnxbench.runtimes.python:run_job"

    def parse(self, spec: Spec) -> dict[str, Any]:
        file, colon, function = spec.arguments.rpartition(":")
        if not colon or not function.isidentifier():
            raise UsageError("OB205", f"{quote(str(spec))} is not python:FILE:FUNCTION", hint="-r python:model.py:run")
        place = Path(file).expanduser().absolute()
        if not place.is_file():
            raise UsageError("OB205", f"no file {quote(file)} for {quote(str(spec))}")
        return {"file": str(place), "function": function}

    @classmethod
    def installed_version(cls) -> str:
        return ""

    def version(self) -> str:
        return ""

    def script(self) -> str:
        return _SCRIPT.format(**{key: repr(value) for key, value in self.options.items()})


def run_job(job: Job) -> dict[str, Any]:
    """Outputs by name, or whatever the function raises."""
    from onnxbench.runtimes import packing

    function = load_function(job.options["file"], job.options["function"])
    model = whole(job) if takes_model(function) else b""
    job.phase = "run"
    feeds = {name: packing.unpack(packed) for name, packed in job.feeds.items()}
    return dict(function(model, feeds) if takes_model(function) else function(feeds))


def whole(job: Job) -> bytes:
    """The model with all its weights: a function that gets bytes knows no folder."""
    from onnx import ModelProto

    from onnxbench.core.model import Model
    from onnxbench.core.placing import embedded

    if job.folder is None:
        return job.model
    return bytes(embedded(Model(ModelProto.FromString(job.model), Path(job.folder))).SerializeToString())


def load_function(file: str, name: str) -> Any:
    """The function `name` of a Python file, which may import its neighbours."""
    import importlib.util
    import sys

    folder = str(Path(file).parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    spec = importlib.util.spec_from_file_location(f"onnxbench_function_{Path(file).stem}", file)
    if spec is None or spec.loader is None:
        raise ImportError(f"{file} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[module.__name__] = module  # dataclasses and pickle look their module up
    spec.loader.exec_module(module)
    return getattr(module, name)


def takes_model(function: Any) -> bool:
    """Whether it wants the model before the feeds: two parameters or more without a default."""
    import inspect

    required = [p for p in inspect.signature(function).parameters.values() if p.default is p.empty]
    return len(required) > 1


_SCRIPT = """\
import importlib.util
import inspect
import pathlib
import sys

FILE, FUNCTION = {file}, {function}


def run(model_path, feeds):
    sys.path.insert(0, str(pathlib.Path(FILE).parent))
    spec = importlib.util.spec_from_file_location("function_" + pathlib.Path(FILE).stem, FILE)
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    function = getattr(module, FUNCTION)
    phase("run")
    if sum(p.default is p.empty for p in inspect.signature(function).parameters.values()) > 1:
        return dict(function(pathlib.Path(model_path).read_bytes(), feeds))
    return dict(function(feeds))


def version():
    return FUNCTION + " of " + FILE
"""
