"""ONNX Runtime, of this environment or of another one (`onnxruntime@VENV`)."""

from __future__ import annotations

import dataclasses
import re
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
            return str(result.value)
        reason = result.message if isinstance(result, isolate.Error) else "the import dies"
        pip = f"{self.spec.venv}/bin/pip" if self.spec.venv else "pip"
        raise MachineError("OB401", f"onnxruntime cannot be imported: {reason}", hint=f"{pip} install onnxruntime")

    def plain(self) -> OnnxRuntime | None:
        if self.options.get("opt") == "disable":
            return None
        parts = (part.strip() for part in self.spec.arguments.split(","))
        kept = [part for part in parts if part and part.partition("=")[0].strip() not in ("opt", "disable")]
        return OnnxRuntime(Spec(self.name, self.spec.venv, ",".join([*kept, "opt=disable"])))

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
    return [str(Path(part).expanduser().absolute()) for part in _list(text)]


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
import os

os.environ["ORT_DISABLE_TELEMETRY"] = "1"
import onnxruntime

OPTIONS = {options!r}


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
    session = onnxruntime.InferenceSession(
        model,
        settings,
        providers=OPTIONS.get("ep") or ["CPUExecutionProvider"],
        disabled_optimizers=OPTIONS.get("disable") or None,
    )
    phase("run")
    names = [value.name for value in session.get_outputs()]
    return dict(zip(names, session.run(names, feeds)))


def version():
    return "onnxruntime " + onnxruntime.__version__
"""
