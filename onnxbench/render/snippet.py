"""A few lines of Python that fail, without any file, where the model is small enough."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

    from onnxbench.core.values import Value
    from onnxbench.reducers.finding import Finding

#: Characters of the model's text, and elements of all inputs, that a reader takes in.
_TEXT, _ELEMENTS = 2000, 64
_LEVELS = {
    "disable": "ORT_DISABLE_ALL",
    "basic": "ORT_ENABLE_BASIC",
    "extended": "ORT_ENABLE_EXTENDED",
    "layout": "ORT_ENABLE_LAYOUT",
    "all": "ORT_ENABLE_ALL",
}


def snippet(finding: Finding, text: str) -> str | None:
    """The script; None where it would be long, or would not be the same model or the same settings.

    Args:
        finding: what was found.
        text: the reproducer in ONNX text.
    """
    from onnxbench.core.tensors import is_external, tensors
    from onnxbench.core.text import reads_back

    run = _run(finding.report.suspect)
    feeds = _feeds(finding.feeds)
    held = len(text) <= _TEXT and "'''" not in text and not text.endswith("'")
    if run is None or feeds is None or not held or any(is_external(tensor) for tensor in tensors(finding.model.proto)):
        return None
    if not reads_back(text):
        return None
    needs, lines = run
    made = f"model = onnx.parser.parse_model(r'''{text}''')"
    return "\n".join([*needs, "import numpy as np", "import onnx.parser", "", made, f"feeds = {feeds}", *lines])


def _run(suspect: str) -> tuple[list[str], list[str]] | None:
    """Imports, and lines that run `model` on `feeds`; None for a suspect that takes more than that."""
    name, _, options = suspect.partition(":")
    runtime = name.partition("@")[0]
    if runtime == "reference" and not options:
        return ["from onnx.reference import ReferenceEvaluator"], ["print(ReferenceEvaluator(model).run(None, feeds))"]
    key, _, level = options.partition("=")
    if runtime != "onnxruntime" or (options and (key != "opt" or level not in _LEVELS)):
        return None
    made = 'session = ort.InferenceSession(model.SerializeToString(), {}providers=["CPUExecutionProvider"])'
    if not options:
        return ["import onnxruntime as ort"], [made.format(""), "print(session.run(None, feeds))"]
    settings = [
        "options = ort.SessionOptions()",
        f"options.graph_optimization_level = ort.GraphOptimizationLevel.{_LEVELS[level]}",
    ]
    return ["import onnxruntime as ort"], [*settings, made.format("options, "), "print(session.run(None, feeds))"]


def _feeds(feeds: Mapping[str, Value]) -> str | None:
    """The inputs as a Python expression; None if they are many, or of types that NumPy writes in other ways."""
    import numpy as np

    if not all(isinstance(value, np.ndarray) and value.dtype.str[1:2] in "fiub" for value in feeds.values()):
        return None
    arrays = {name: value for name, value in feeds.items() if isinstance(value, np.ndarray)}
    if sum(value.size for value in arrays.values()) > _ELEMENTS:
        return None
    return "{" + ", ".join(f"{name!a}: {_array(value)}" for name, value in arrays.items()) + "}"


def _array(value: np.ndarray) -> str:
    """An array as one types it."""
    import numpy as np

    kind = repr(value.dtype.name)
    if not value.size or not np.isfinite(value).all():
        return f"np.frombuffer({value.tobytes()!r}, {kind}).reshape({value.shape})"
    first = value.reshape(-1)[0]
    if value.ndim and bool((value == first).all()):
        return f"np.full({value.shape}, {first.item()!r}, {kind})"
    return f"np.array({value.tolist()!r}, {kind})"
