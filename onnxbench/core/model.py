"""A model in hand: its protobuf, and where the bytes of its external tensors lie."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from onnx import ModelProto

from onnxbench.core import formats, saving, sources
from onnxbench.errors import ModelError, escape


@dataclass(frozen=True, slots=True)
class Model:
    """A model and the folder that its external tensors are relative to.

    Attributes:
        proto: the truth. External tensors stay references until somebody needs their bytes.
        folder: what `location` entries of external tensors are relative to; None if there can be none.
        path: the file it was read from; None for a stream or a model made in memory.
        label: how messages name it.
    """

    proto: ModelProto
    folder: Path | None = None
    path: Path | None = None
    label: str = "the model"


def load(source: str | os.PathLike[str], *, stdin: BinaryIO | None = None) -> Model:
    """Read a model from a file in the format of its suffix, or from standard input (`-`, protobuf).

    External data is not touched.

    Raises:
        ModelError: OB301 if there is no such file, OB302 if it holds no model.
    """
    if os.fspath(source) == "-":
        return Model(formats.parse(sources.read_stream(stdin), "protobuf", "standard input"), label="standard input")
    if not os.fspath(source):
        raise ModelError("OB301", "the name of the model is empty", hint="a variable of the shell may be unset")
    given = Path(source)
    label = escape(given.name)
    proto = formats.parse(sources.read_file(given), formats.of_suffix(given), label)
    path = given.absolute()  # the working folder may change; ".." and links stay as they were given
    return Model(proto, folder=path.parent, path=path, label=label)


def save(
    model: Model,
    target: str | os.PathLike[str],
    *,
    force: bool = False,
    allow_lossy: bool = False,
    stdout: BinaryIO | None = None,
) -> None:
    """Write a model to a file in the format of its suffix, or as protobuf to standard output (`-`).

    The target appears whole or not at all. External weights that lie in the target's folder and were there before stay
    where they are; others are copied into one new data file there. Weights that `slim` took out go in again, unless the
    whole is more than protobuf can hold.

    Args:
        model: what to write; it is not changed.
        target: a path, or `-`.
        force: overwrite an existing file.
        allow_lossy: write a format that cannot hold all of the model.
        stdout: where `-` goes, if not to standard output.

    Raises:
        UsageError: OB202 if the target exists, OB203 if the format would lose something.
        MachineError: OB402 if the disk is full or not writable.
    """
    if os.fspath(target) == "-":
        saving.save_stream(model, stdout)
    else:
        saving.save_file(model, Path(target).absolute(), force=force, allow_lossy=allow_lossy)
