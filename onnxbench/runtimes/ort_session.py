"""ONNX Runtime inside a worker: make a session, run it once.

Also imported by older interpreters (see `onnxbench.worker`): numpy and onnxruntime only, Python 3.9 syntax.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from onnxbench.runtimes import packing
from onnxbench.runtimes.job import Job

LEVELS = {
    "disable": "ORT_DISABLE_ALL",
    "basic": "ORT_ENABLE_BASIC",
    "extended": "ORT_ENABLE_EXTENDED",
    "layout": "ORT_ENABLE_LAYOUT",
    "all": "ORT_ENABLE_ALL",
}


def version() -> str:
    """The release that is installed here."""
    import onnxruntime

    return str(onnxruntime.__version__)


def providers() -> list[str]:
    """The execution providers of this build."""
    import onnxruntime

    return list(onnxruntime.get_available_providers())


def run(job: Job) -> dict[str, Any]:
    """Outputs by name, or whatever ONNX Runtime raises."""
    session = make_session(job.model, job.folder, job.options)
    job.phase = "run"
    return run_session(session, job.feeds, job.fetch)


def make_session(model: bytes, folder: str | None, options: dict[str, Any]) -> Any:
    """A session with the options of `onnxbench.runtimes.onnxruntime`, as plain data."""
    import onnxruntime

    settings = onnxruntime.SessionOptions()
    settings.log_severity_level = 4
    level = options.get("opt")
    if level:
        settings.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, LEVELS[level])
    settings.intra_op_num_threads = options.get("threads", 0)
    if options.get("mode") == "parallel":
        settings.execution_mode = onnxruntime.ExecutionMode.ORT_PARALLEL
    if options.get("deterministic"):
        settings.use_deterministic_compute = True
    for key, value in options.get("session", {}).items():
        settings.add_session_config_entry(key, value)
    if folder is not None:
        settings.add_session_config_entry("session.model_external_initializers_file_folder_path", folder)
    for library in options.get("custom_ops", ()):
        settings.register_custom_ops_library(library)
    providers = options.get("ep") or ["CPUExecutionProvider"]
    _refuse_missing(providers, onnxruntime.get_available_providers(), "is not in this build of ONNX Runtime")
    session = onnxruntime.InferenceSession(
        model,
        settings,
        providers=providers,
        disabled_optimizers=options.get("disable") or None,
        enable_fallback=0,  # or a session that fails is made again on the CPU, with other options
    )
    _refuse_missing(providers, session.get_providers(), "cannot be used on this machine")
    return session


def _refuse_missing(wanted: list[str], there: list[str], reason: str) -> None:
    """ONNX Runtime goes on without a provider that it lacks, and the CPU's answer passes for that provider's."""
    for name in wanted:
        if name not in there:
            raise LookupError(f"execution provider {name} {reason}, which has {', '.join(there)}")


def run_session(session: Any, feeds: dict[str, Any], fetch: list[str] | None) -> dict[str, Any]:
    """Outputs by name. Types that numpy cannot hold travel as OrtValues, by their bytes."""
    known = {value.name for value in [*session.get_inputs(), *session.get_overridable_initializers()]}
    names = fetch or [value.name for value in session.get_outputs()]
    used = {name: packed for name, packed in feeds.items() if name in known}
    kinds = {value.name: value.type for value in session.get_outputs()}
    values = {name: _to_ort(packed) if _is_carried(packed) else packing.unpack(packed) for name, packed in used.items()}
    if not any(_needs_bytes(kinds.get(name, "")) for name in names):
        return dict(zip(names, session.run(names, values)))
    tensors = [name for name in names if kinds.get(name, "tensor").startswith("tensor")]
    others = [name for name in names if name not in tensors]
    wrapped = {name: _as_ort_value(name, value) for name, value in values.items()}
    found = dict(zip(tensors, map(_from_ort, session.run_with_ort_values(tensors, wrapped))))
    if others:
        found.update(zip(others, session.run(others, values)))
    return {name: found[name] for name in names}


def _is_carried(packed: Any) -> bool:
    return (
        packed is not None
        and packed[0] in ("tensor", "map")
        and (packed[1] in packing.CARRIERS or packed[1] in packing.BITS)
    )


def _needs_bytes(kind: str) -> bool:
    return any(word in kind for word in ("bfloat16", "float8", "float4", "int4", "int2")) and kind.startswith("tensor")


def _as_ort_value(name: str, value: Any) -> Any:
    import onnxruntime

    if isinstance(value, onnxruntime.OrtValue):
        return value
    if not isinstance(value, np.ndarray) or value.dtype == object:
        kind = "strings" if isinstance(value, np.ndarray) else "a sequence or an empty optional"
        raise TypeError(
            f"{name}: ONNX Runtime's Python API takes no {kind} where an output has a type that numpy lacks"
        )
    return onnxruntime.OrtValue.ortvalue_from_numpy(value)


def _to_ort(packed: Any) -> Any:
    import onnxruntime

    element, shape = packed[1], tuple(packed[2])
    if packed[0] == "map":
        count = int(np.prod(shape, dtype=np.int64)) * np.dtype(packing.CARRIERS[element]).itemsize
        with open(packed[3], "rb") as file:  # noqa: PTH123
            file.seek(packed[4])
            data = file.read(count)
    else:
        data = packed[3]
    if element in packing.CARRIERS:
        bits = np.frombuffer(data, packing.CARRIERS[element]).reshape(shape)
    else:  # ONNX Runtime takes the shape from the array and reads only as many bytes as the packed elements need
        bits = np.zeros(shape, np.uint8)
        bits.reshape(-1)[: len(data)] = np.frombuffer(data, np.uint8)
    return onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(bits, element)


def _from_ort(value: Any) -> Any:
    if not value.is_tensor() or not _needs_bytes(value.data_type()):
        return value.numpy()
    element, shape = value.element_type(), tuple(value.shape())
    count = int(np.prod(shape, dtype=np.int64))
    size = (
        count * np.dtype(packing.CARRIERS[element]).itemsize
        if element in packing.CARRIERS
        else -(-count * packing.BITS[element] // 8)
    )
    return packing.Raw(element, shape, ctypes.string_at(value.data_ptr(), size))
