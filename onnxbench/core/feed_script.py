"""Take inputs from a user's function, by the convention of Polygraphy's data loaders."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from onnx import TypeProto

from onnxbench.core.graph import GraphView
from onnxbench.core.values import Value
from onnxbench.errors import ModelError, quote


def from_script(path: Path, function: str, view: GraphView) -> dict[str, Value]:
    """What the function returns: a dict of inputs, or the first of an iterable of dicts.

    Raises:
        ModelError: OB301 if there is no such script; OB307 if it fails, in its own words, or returns something else.
    """
    if not path.is_file():
        raise ModelError("OB301", f"there is no script {quote(str(path))}")
    label = f"{path.name}:{function}"
    try:
        made = _called(path, function)
        given = made if isinstance(made, Mapping) else next(iter(made), None)
    except (Exception, SystemExit) as fault:
        text = " ".join(f"{type(fault).__name__}: {fault}".split())
        raise ModelError("OB307", f"{quote(label)} failed: {text}") from None
    if not isinstance(given, Mapping):
        hint = "return a dict from input name to array, or an iterable of such dicts"
        raise ModelError("OB307", f"{quote(label)} gives no dict of inputs", hint=hint)
    return plain_values(given, view)


def plain_values(given: Mapping[Any, Any], view: GraphView) -> dict[str, Value]:
    """Values out of what scripts and Polygraphy hold: numbers, lists, tensors of other libraries."""
    types = {name: info.type for name, info in view.inputs.items()}
    try:
        return {str(name): _plain(value, types.get(name)) for name, value in given.items()}
    except Exception as fault:  # other libraries' tensors fail in their own ways
        raise ModelError("OB307", f"an input is no array: {' '.join(str(fault).split())}") from None


def _plain(value: Any, declared: TypeProto | None) -> Value:
    kind = None if declared is None else declared.WhichOneof("value")
    if kind == "optional_type" and declared is not None:
        return None if value is None else _plain(value, declared.optional_type.elem_type)
    if kind == "sequence_type" and declared is not None and isinstance(value, list | tuple):
        return [_plain(item, declared.sequence_type.elem_type) for item in value]
    if value is None:
        return None
    load = getattr(value, "load", None)  # Polygraphy swaps large arrays out to files
    return np.asarray(load() if callable(load) else value)


def _called(path: Path, function: str) -> Any:
    """Run the script and call its function, with the script's folder importable meanwhile."""
    spec = importlib.util.spec_from_file_location(f"onnxbench_inputs_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with _importable(path.resolve().parent):
        spec.loader.exec_module(module)
        found = getattr(module, function, None)
        if found is None:
            raise NameError(f"there is no function {function} in it")
        made = found()
        return made if isinstance(made, Mapping) else iter([next(iter(made), None)])


@contextmanager
def _importable(folder: Path) -> Iterator[None]:
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))
