"""Read inputs from what `--inputs` names, and write them."""

from __future__ import annotations

import os
import re
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from onnxbench.core.data_set import read_data_set, read_pb, write_data_set
from onnxbench.core.feed_check import check
from onnxbench.core.feed_script import from_script, plain_values
from onnxbench.core.graph import GraphView
from onnxbench.core.sizes import fed_inputs
from onnxbench.core.values import Array, Value, dtype_name, is_narrow, with_str
from onnxbench.errors import ModelError, UsageError, quote

__all__ = ["check", "read", "write_data_set", "write_npz"]


#: How an .npy file begins.
_NPY = b"\x93NUMPY"


def read(text: str, view: GraphView) -> dict[str, Value]:
    """The checked inputs from a file, a test data set, Polygraphy's JSON, or `script.py:function`.

    Raises:
        ModelError: OB301 if there is no such file; OB307 if it cannot be read, or the script fails.
        NameNotFound, UsageError: what `check` finds.
    """
    script, colon, function = text.rpartition(":")
    if colon and script.endswith(".py"):
        return check(from_script(Path(script), function, view), view)
    path = Path(text)
    if path.is_dir():
        return check(read_data_set(_data_set_in(path), view), view)
    if not path.is_file():
        raise ModelError("OB301", f"there is no file {quote(text)} to read inputs from")
    return check(_read_file(path, view), view)


def _read_file(path: Path, view: GraphView) -> Mapping[str, Value]:
    suffix = path.suffix.lower()
    if suffix == ".npz":
        return _read_npz(path, view)
    if suffix == ".npy":
        return {_only_input(path, view): with_str(_load(path))}
    if suffix == ".pb":
        name = _only_input(path, view)
        return {name: read_pb(path, view.inputs[name].type)}
    if suffix == ".json":
        return _read_polygraphy(path, view)
    hint = (
        f"--inputs {path.name}:load_data"
        if suffix == ".py"
        else "give .npz, .npy, .pb, .json, a folder, or script.py:function"
    )
    problem = "needs the function to call" if suffix == ".py" else "has no format that inputs are read from"
    raise UsageError("OB201", f"{quote(str(path))} {problem}", hint=hint)


def _data_set_in(folder: Path) -> Path:
    """The folder itself if it holds input_0.pb, else the one test_data_set_* in it."""
    if any(re.fullmatch(r"input_\d+\.pb", path.name) for path in folder.iterdir()):
        return folder
    found = sorted(path for path in folder.glob("test_data_set_*") if path.is_dir())
    if len(found) == 1:
        return found[0]
    if found:
        hint = f"--inputs {found[0]}"
        raise UsageError("OB201", f"{quote(str(folder))} holds {len(found)} test data sets", hint=hint)
    raise ModelError("OB307", f"{quote(str(folder))} holds no input_0.pb and no test_data_set_0")


def _only_input(path: Path, view: GraphView) -> str:
    names = list(fed_inputs(view))
    if len(names) != 1:
        text = f"{quote(path.name)} holds one value, and the model takes {len(names)} inputs"
        raise UsageError("OB206", text, hint="give an .npz file or a folder with input_0.pb, input_1.pb, ...")
    return names[0]


def _load(path: Path) -> Any:
    try:
        with path.open("rb") as file:
            known = file.read(len(_NPY)) == _NPY or zipfile.is_zipfile(file)
        if not known:  # NumPy says of such a file that it holds pickled data
            raise ModelError("OB307", f"{quote(str(path))} is no {path.suffix} file, whatever its name says")
        return np.load(path, allow_pickle=False)
    except (ValueError, TypeError, OSError, EOFError, SyntaxError, zipfile.BadZipFile) as fault:
        raise _unreadable(path, fault) from None


def _read_npz(path: Path, view: GraphView) -> dict[str, Value]:
    found: dict[str, Value] = {}
    archive = _load(path)
    if isinstance(archive, np.ndarray):
        raise ModelError("OB307", f"{quote(str(path))} is an .npy file with another suffix")
    with archive:
        for name in archive.files:
            try:
                found[name] = with_str(archive[name])
            except (ValueError, TypeError, OSError, EOFError, SyntaxError, zipfile.BadZipFile) as fault:
                raise _unreadable(path, fault) from None
    if list(found) == ["arr_0"] and "arr_0" not in view.inputs:  # saved without names
        return {_only_input(path, view): found["arr_0"]}
    return found


def _read_polygraphy(path: Path, view: GraphView) -> dict[str, Value]:
    """The first set of inputs of a file written by `polygraphy run --save-inputs`."""
    from polygraphy.json import load_json  # here, because it is slow to import and seldom wanted

    try:
        loaded = load_json(str(path))
    except Exception as fault:  # Polygraphy's own exceptions, and whatever its decoders meet
        raise _unreadable(path, fault) from None
    if not isinstance(loaded, list) or not loaded or not isinstance(loaded[0], Mapping):
        raise ModelError(
            "OB307", f"{quote(str(path))} holds no inputs as Polygraphy saves them, which is a list of dicts"
        )
    return plain_values(loaded[0], view)


def _unreadable(path: Path, fault: Exception) -> ModelError:
    return ModelError("OB307", f"{quote(str(path))} cannot be read: {' '.join(str(fault).split())}")


def write_npz(path: Path, feeds: Mapping[str, Value]) -> list[str]:
    """Write what npz can hold, and return the names it cannot: ml_dtypes, sequences, optionals, odd strings.

    Not by `np.savez`, which takes names as keyword arguments and so fails on an input called "file".
    """
    left: list[str] = []
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    with zipfile.ZipFile(partial, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        for name, value in feeds.items():
            array = _npz_array(value)
            if array is None:
                left.append(name)
                continue
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                np.lib.format.write_array(file, array, allow_pickle=False)
    partial.replace(path)
    return left


def _npz_array(value: Value) -> Array | None:
    """What to store; None if it would not come back as it was (NumPy drops zeros at the end of a string)."""
    if not isinstance(value, np.ndarray) or is_narrow(value.dtype):
        return None
    if dtype_name(value.dtype) != "string":
        return value
    text = with_str(value)
    if any(item.endswith("\0") or not _encodes(item) for item in text.flat):
        return None
    return text.astype(np.str_)


def _encodes(item: str) -> bool:
    try:
        item.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
