"""ONNX's checker and shape inference without the rest of onnx: a worker with nothing else starts in a fraction of the time."""

from __future__ import annotations

import importlib
import importlib.machinery
import importlib.util
import sys
from typing import Any

from onnxbench.isolate.results import Interpreter

#: Where the functions below are called. It imports nothing beforehand.
BARE = Interpreter(warm=())
_EXTENSION = "onnx_cpp2py_export"


def check(serialized: bytes, full: bool) -> None:
    """What `onnx.checker.check_model` does with a serialized model; for a worker."""
    try:
        _extension().checker.check_model(serialized, full, False, False)
    except (ImportError, AttributeError, TypeError):  # an onnx that is built otherwise
        importlib.import_module("onnx.checker").check_model(serialized, full_check=full)


def infer(serialized: bytes, strict: bool) -> bytes:
    """A serialized model with what `onnx.shape_inference` adds; for a worker.

    Args:
        serialized: the model.
        strict: refuse where a rule is broken, as ONNX's full check does.
    """
    try:
        return bytes(_extension().shape_inference.infer_shapes(serialized, strict, strict, True))
    except (ImportError, AttributeError, TypeError):
        module = importlib.import_module("onnx.shape_inference")
        made = module.infer_shapes(serialized, check_type=strict, strict_mode=strict, data_prop=True)
        return bytes(made.SerializeToString())


def _extension() -> Any:
    """The compiled part of onnx, loaded without the package around it, which imports numpy and much else."""
    if _EXTENSION in sys.modules:
        return sys.modules[_EXTENSION]
    if "onnx" in sys.modules:
        return importlib.import_module(f"onnx.{_EXTENSION}")
    package = importlib.util.find_spec("onnx")
    places = package.submodule_search_locations if package is not None else None
    spec = importlib.machinery.PathFinder.find_spec(_EXTENSION, places)
    if spec is None or spec.loader is None:
        raise ImportError(_EXTENSION)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.modules[_EXTENSION] = module
    return module
