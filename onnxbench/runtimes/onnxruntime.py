"""ONNX Runtime, of this environment or of another one (`onnxruntime@VENV`)."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from onnxbench import isolate
from onnxbench.errors import MachineError, UsageError, quote
from onnxbench.runtimes import ort_session
from onnxbench.runtimes.base import Runtime, Spec, as_unsupported, parse_pairs
from onnxbench.runtimes.outcome import Outcome

LEVELS = ("disable", "basic", "extended", "layout", "all")
_NODE = re.compile(
    r"[Nn]ode(?: with)?(?: name)?:? ?'([^']+)'|Name:'([^']+)'|[Nn]ode \((.+?)\)(?= |$)|In Node, \(\"([^\"]+)\""
)
_SPINNING = "session.intra_op.allow_spinning"
_PROVIDER_SUFFIX = "ExecutionProvider"


class OnnxRuntime(Runtime):
    """Options, separated by commas; lists inside a value with `+`.

    `opt=disable|basic|extended|layout|all` · `ep=CUDA+CPU` execution providers in order · `threads=N` within an
    operator · `mode=sequential|parallel` · `deterministic=1` · `disable=OPTIMIZER+OPTIMIZER` · `custom_ops=lib.so` ·
    `session.KEY=VALUE`.
    """

    name = "onnxruntime"
    package = "onnxruntime"
    sentence = "ONNX Runtime; options opt, ep, threads, mode, deterministic, disable, custom_ops, session.KEY; @VENV"
    function = "onnxbench.runtimes.ort_session:run"

    def parse(self, spec: Spec) -> dict[str, Any]:
        options: dict[str, Any] = {}
        for key, value in parse_pairs(spec).items():
            if key.startswith("session."):
                options.setdefault("session", {})[key.removeprefix("session.")] = value
            elif key in _PARSERS:
                try:
                    options[key] = _PARSERS[key](value)
                except ValueError as error:
                    raise UsageError("OB205", f"{key}={value} in {quote(str(spec))}: {error}") from None
            else:
                known = ", ".join([*_PARSERS, "session.KEY"])
                raise UsageError("OB205", f"onnxruntime has no option {quote(key)}", hint=f"options: {known}")
        return options

    def choose_interpreter(self, spec: Spec) -> isolate.Interpreter:
        if not spec.venv:
            return isolate.HERE
        executable = venv_python(spec.venv)
        return isolate.Interpreter(executable, warm=("numpy", "onnxruntime"), foreign=True)

    def version(self) -> str:
        result = isolate.call(ort_session.version, (), interpreter=self.interpreter)
        if isinstance(result, isolate.Ok):
            self._refuse_missing(self.options.get("ep", []))
            return str(result.value)
        reason = result.message if isinstance(result, isolate.Error) else "the import dies"
        pip = f"{self.spec.venv}/bin/pip" if self.spec.venv else "pip"
        raise MachineError("OB401", f"onnxruntime cannot be imported: {reason}", hint=f"{pip} install onnxruntime")

    def _refuse_missing(self, providers: list[str]) -> None:
        if not providers:
            return
        result = isolate.call(ort_session.providers, (), interpreter=self.interpreter)
        there = result.value if isinstance(result, isolate.Ok) else []
        lacking = [name for name in providers if name not in there]
        if lacking:
            raise MachineError(
                "OB401",
                f"execution provider {quote(lacking[0])} is not in this build of ONNX Runtime, which has {', '.join(there)}",
                hint="install the build that has it, such as onnxruntime-gpu, or leave ep= out",
            )

    def plain(self) -> OnnxRuntime | None:
        if self.options.get("opt") == "disable":
            return None
        return self._with("opt=disable", "opt", "disable")

    def cheap(self) -> OnnxRuntime:
        """Threads that wait for work sleep, instead of burning the time of others."""
        same = OnnxRuntime(self.spec)
        same.options["session"] = {_SPINNING: "0", **self.options.get("session", {})}
        return same

    def levels(self) -> Sequence[OnnxRuntime]:
        own = self.options.get("opt", "all")
        below = LEVELS[: LEVELS.index(own)]
        return [*(self._with(f"opt={level}", "opt") for level in below), self]

    def optimizers(self) -> Sequence[str]:
        """Of this release, or of the last listed one before it: ONNX Runtime has no call that lists them."""
        listed = json.loads((resources.files("onnxbench.runtimes") / "optimizers.json").read_text())
        release = _numbers(self.version())
        older = [text for text in listed if _numbers(text) <= release]
        off = self.options.get("disable", [])
        return [name for name in listed[max(older or listed, key=_numbers)] if name not in off]

    def without(self, optimizers: Sequence[str]) -> OnnxRuntime:
        off = [*self.options.get("disable", []), *optimizers]
        return self._with(f"disable={'+'.join(off)}", "disable") if off else self

    def _with(self, part: str, *instead: str) -> OnnxRuntime:
        """The same with an option added, or put in the place of others."""
        parts = (part.strip() for part in self.spec.arguments.split(","))
        kept = [p for p in parts if p and p.partition("=")[0].strip() not in instead]
        return OnnxRuntime(Spec(self.name, self.spec.venv, ",".join([*kept, part])))

    def explain(self, outcome: Outcome) -> Outcome:
        if outcome.kind != "error":
            return outcome
        found = _NODE.search(outcome.message)
        named = dataclasses.replace(outcome, node=next(filter(None, found.groups()), "")) if found else outcome
        return as_unsupported(named) if outcome.error == "NotImplemented" else named

    def script(self) -> str:
        return _SCRIPT.format(options=self.options, levels=ort_session.LEVELS)


def venv_python(venv: str) -> str:
    """The interpreter of a virtual environment, given its folder or the interpreter itself.

    Raises:
        MachineError: OB401 if there is none.
    """
    place = Path(venv).expanduser()
    for candidate in (place / "bin" / "python", place / "Scripts" / "python.exe", place):
        if candidate.is_file():
            return str(candidate.absolute())
    raise MachineError(
        "OB401", f"no Python in {quote(venv)}", hint=f"python3 -m venv {venv} && {venv}/bin/pip install onnxruntime"
    )


def _numbers(release: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", release)[:3])


def _level(text: str) -> str:
    if text not in LEVELS:
        raise ValueError(f"expected one of {', '.join(LEVELS)}")
    return text


def _mode(text: str) -> str:
    if text not in ("sequential", "parallel"):
        raise ValueError("expected sequential or parallel")
    return text


def _count(text: str) -> int:
    if not text.isdecimal():
        raise ValueError("expected a whole number")
    return int(text)


def _flag(text: str) -> bool:
    if text not in ("0", "1"):
        raise ValueError("expected 0 or 1")
    return text == "1"


def _list(text: str) -> list[str]:
    return [part for part in text.split("+") if part]


def _providers(text: str) -> list[str]:
    return [name if name.endswith(_PROVIDER_SUFFIX) else name + _PROVIDER_SUFFIX for name in _list(text)]


def _libraries(text: str) -> list[str]:
    places = [Path(part).expanduser().absolute() for part in _list(text)]
    absent = [place for place in places if not place.is_file()]
    if absent:
        raise ValueError(f"there is no file {quote(str(absent[0]))}")
    return [str(place) for place in places]


_PARSERS: dict[str, Any] = {
    "opt": _level,
    "ep": _providers,
    "threads": _count,
    "mode": _mode,
    "deterministic": _flag,
    "disable": _list,
    "custom_ops": _libraries,
}

_SCRIPT = """\
import ctypes
import os

os.environ["ORT_DISABLE_TELEMETRY"] = "1"
import numpy
import onnxruntime

OPTIONS = {options!r}
NARROW = ("bfloat16", "float8", "float4", "int4", "int2")  # NumPy has no such types; they travel as bytes


def run(model_path, feeds):
    settings = onnxruntime.SessionOptions()
    settings.log_severity_level = 4
    if "opt" in OPTIONS:
        level = {levels!r}[OPTIONS["opt"]]
        settings.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, level)
    settings.intra_op_num_threads = OPTIONS.get("threads", 0)
    if OPTIONS.get("mode") == "parallel":
        settings.execution_mode = onnxruntime.ExecutionMode.ORT_PARALLEL
    if OPTIONS.get("deterministic"):
        settings.use_deterministic_compute = True
    for key, value in OPTIONS.get("session", {{}}).items():
        settings.add_session_config_entry(key, value)
    for library in OPTIONS.get("custom_ops", ()):
        settings.register_custom_ops_library(library)
    with open(model_path, "rb") as file:
        model = file.read()
    folder = os.path.dirname(os.path.abspath(model_path))
    settings.add_session_config_entry("session.model_external_initializers_file_folder_path", folder)
    providers = OPTIONS.get("ep") or ["CPUExecutionProvider"]
    session = onnxruntime.InferenceSession(
        model,
        settings,
        providers=providers,
        disabled_optimizers=OPTIONS.get("disable") or None,
        enable_fallback=0,
    )
    for name in providers:
        if name not in session.get_providers():
            raise LookupError("execution provider " + name + " is not there")
    phase("run")
    kinds = {{value.name: value.type for value in session.get_outputs()}}
    feeds = {{name: to_ort(value) if is_narrow(value) else value for name, value in feeds.items()}}
    if not any(kind.startswith("tensor") and any(map(kind.count, NARROW)) for kind in kinds.values()):
        return dict(zip(kinds, session.run(list(kinds), feeds)))
    tensors = [name for name, kind in kinds.items() if kind.startswith("tensor")]
    others = [name for name in kinds if name not in tensors]
    wrapped = {{name: as_ort(value) for name, value in feeds.items()}}
    found = dict(zip(tensors, map(from_ort, session.run_with_ort_values(tensors, wrapped))))
    return {{**found, **(dict(zip(others, session.run(others, feeds))) if others else {{}})}}


def is_narrow(value):
    return isinstance(value, numpy.ndarray) and value.dtype.type.__module__ != "numpy"


def as_ort(value):
    return value if isinstance(value, onnxruntime.OrtValue) else onnxruntime.OrtValue.ortvalue_from_numpy(value)


def to_ort(value):
    from onnx import numpy_helper

    tensor = numpy_helper.from_array(value)
    data = numpy.frombuffer(tensor.raw_data, "u2" if value.dtype.name == "bfloat16" else "u1")
    bits = numpy.zeros(value.shape, data.dtype)  # packed elements fill only its beginning
    bits.reshape(-1)[: data.size] = data
    return onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(bits, tensor.data_type)


def from_ort(value):
    if not any(map(value.data_type().count, NARROW)):
        return value.numpy()
    from onnx import TensorProto, helper, numpy_helper

    tensor = TensorProto(data_type=value.element_type(), dims=value.shape())
    empty = numpy.zeros(value.shape(), helper.tensor_dtype_to_np_dtype(tensor.data_type))
    size = len(numpy_helper.from_array(empty).raw_data)
    tensor.raw_data = ctypes.string_at(value.data_ptr(), size) if size else b""
    return numpy_helper.to_array(tensor)


def version():
    return "onnxruntime " + onnxruntime.__version__
"""
