"""Saving a model: all of it or nothing, in the format that the suffix asks for."""

from __future__ import annotations

import stat
import sys
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from onnx import ModelProto

from onnxbench.core import formats, placing
from onnxbench.core.atomic import Draft, unwritable
from onnxbench.core.losses import losses
from onnxbench.errors import BenchError, MachineError, UsageError, quote

if TYPE_CHECKING:
    from onnxbench.core.model import Model

#: Larger files are checked by their size alone.
_READ_BACK = 16 * 1024 * 1024


def save_stream(model: Model, stdout: BinaryIO | None) -> None:
    """Write protobuf to a stream, with every weight inside."""
    data = formats.dump(placing.embedded(model), "protobuf", model.label)
    stream = stdout if stdout is not None else sys.stdout.buffer
    stream.write(data)
    stream.flush()


def save_file(model: Model, target: Path, *, force: bool, allow_lossy: bool) -> None:
    """Write a file, and a data file beside it if one is needed; see `onnxbench.core.model.save`."""
    refuse_target(target, force)
    try:
        with Draft(target.parent) as weights, Draft(target.parent) as graph:
            placement = placing.Placement(model, target.parent, target.stem)
            data_file = placement.settle(weights)
            data = _dump(placement.proto, target, allow_lossy)
            graph.write(data)
            graph.flush()
            _read_back(graph.path, data, target, allow_lossy)
            _publish(weights, data_file, graph, target)
    except OSError as error:
        raise unwritable(target, error) from error


def _publish(weights: Draft, data_file: Path | None, graph: Draft, target: Path) -> None:
    """Data first: at no moment does a graph stand there whose weights do not."""
    is_new = data_file is not None and not data_file.exists()
    if data_file is not None:
        weights.publish(data_file)
    try:
        graph.publish(target)
    except BaseException:
        if is_new:
            weights.retract()
        raise


def refuse_target(target: Path, force: bool) -> None:
    """Raise if a file cannot be written there: OB201 if it is no place for a file, OB202 if it is taken."""
    try:
        mode = target.lstat().st_mode
    except FileNotFoundError:
        if not target.parent.is_dir():
            hint = f"mkdir -p {quote(str(target.parent))}"
            raise UsageError("OB201", f"there is no folder {quote(str(target.parent))}", hint=hint) from None
        return
    except (OSError, ValueError) as error:
        raise UsageError("OB201", f"cannot write to {quote(str(target))}: {error}") from error
    if stat.S_ISDIR(mode):
        raise UsageError("OB201", f"{quote(str(target))} is a folder", hint=f"-o {quote(str(target / 'model.onnx'))}")
    if not stat.S_ISREG(mode) and not stat.S_ISLNK(mode):
        raise UsageError("OB201", f"{quote(str(target))} is not a file", hint="use - to write to standard output")
    if not force:
        raise UsageError("OB202", f"{quote(str(target))} exists already", hint="--force overwrites it")


def refuse_losses(proto: ModelProto, target: Path) -> None:
    """Raise OB203 if the format of the target's suffix would lose something of the model."""
    lost = losses(proto, formats.of_suffix(target), target.name)
    if lost:
        raise UsageError(
            "OB203",
            f"{quote(target.name)} would lose {', '.join(lost)}",
            hint=f"--allow-lossy, or write {quote(target.stem + '.onnx')}",
        )


def _dump(proto: ModelProto, target: Path, allow_lossy: bool) -> bytes:
    if not allow_lossy:
        refuse_losses(proto, target)
    return formats.dump(proto, formats.of_suffix(target), target.name)


def _read_back(path: Path, data: bytes, target: Path, allow_lossy: bool) -> None:
    """Make sure that what stands on the disk is the model, before it takes anybody's place."""
    form = formats.of_suffix(target)
    intact = path.stat().st_size == len(data)
    if intact and len(data) <= _READ_BACK:
        intact = path.read_bytes() == data
        if form == "protobuf" or not allow_lossy:
            _parses(data, form, target)
    if not intact:
        raise MachineError("OB402", f"what was written to {quote(str(target))} does not read back", hint="df -h; dmesg")


def _parses(data: bytes, form: formats.Format, target: Path) -> None:
    try:
        formats.parse(data, form, target.name)
    except BenchError as error:
        raise type(error)(error.code, f"nothing was written: {error.message}", hint=error.hint) from error
