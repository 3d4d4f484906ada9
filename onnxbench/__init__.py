"""A bench for surgery on ONNX models and for debugging them.

The names below are the public API. Each is imported when it is first used, so that importing onnxbench costs nothing, and so
that a worker in an older Python (see `onnxbench.worker`) can import the package: Python 3.9 syntax here.
"""

import importlib

__version__ = "0.1.0"

_HOMES = {
    "AnswerIsNo": "errors",
    "BenchError": "errors",
    "Conversion": "converters.report",
    "ConvertOptions": "converters.options",
    "Diff": "inspecting.diff",
    "Difference": "core.difference",
    "FoldOptions": "folding.options",
    "GraphView": "core.graph",
    "Inspection": "inspecting.inspection",
    "Limits": "runtimes.base",
    "MachineError": "errors",
    "Model": "core.model",
    "ModelError": "errors",
    "Node": "core.graph",
    "Outcome": "runtimes.outcome",
    "Piece": "core.subgraph",
    "Reduction": "reducers.result",
    "Request": "reducers.request",
    "Runtime": "runtimes.base",
    "SafetyStop": "errors",
    "Selection": "core.select",
    "Shapes": "core.shapes",
    "Spec": "runtimes.base",
    "Tolerance": "core.compare",
    "UsageError": "errors",
    "call": "isolate",
    "carve": "core.subgraph",
    "convert": "converters.run",
    "diff": "inspecting.diff",
    "differ": "core.compare",
    "extract": "extracting.extract",
    "find": "runtimes.find",
    "fold": "folding.run",
    "generate": "core.feeds",
    "infer": "core.types",
    "inspect": "inspecting.inspect",
    "load": "core.model",
    "propagate": "core.shapes",
    "record": "recording",
    "reduce": "reducers.reduce",
    "save": "core.model",
    "select": "core.select",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError("module 'onnxbench' has no attribute %r" % name)
    return getattr(importlib.import_module("onnxbench." + _HOMES[name]), name)


def __dir__() -> "list[str]":
    return [*__all__, "__version__"]
