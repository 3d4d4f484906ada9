"""The values that a piece takes and gives when the whole model runs once."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from onnxbench.core import scratch
from onnxbench.core.atomic import unwritable
from onnxbench.core.compare import Tolerance, differ_all
from onnxbench.core.data_set import write_data_set
from onnxbench.core.graph import GraphView, draws
from onnxbench.core.model import Model
from onnxbench.core.sizes import fed_inputs
from onnxbench.core.values import Value
from onnxbench.core.weights import array
from onnxbench.errors import ModelError, SafetyStop, UsageError, quote
from onnxbench.extracting.choosing import Cut
from onnxbench.extracting.recorder import Recorder


@dataclass(frozen=True, slots=True)
class Data:
    """Recorded values by name."""

    inputs: Mapping[str, Value]
    outputs: Mapping[str, Value]

    FOLDER: ClassVar[str] = "test_data_set_0"

    @contextlib.contextmanager
    def written(self, folder: Path, piece: Model) -> Iterator[None]:
        """Write them as a test data set around what writes the piece: the folder appears, whole, once that is there.

        Raises:
            MachineError: OB402 if it cannot be written; before the piece is, where that can be told.
        """
        view = GraphView(piece.proto, piece.proto.graph)
        try:
            with scratch.Scratch.within(folder.parent, scratch.DRAFT) as draft:
                made = draft.path / self.FOLDER
                write_data_set(made, self.inputs, self.outputs, view)
                yield
                if folder.is_dir():
                    folder.rename(draft.path / "older")
                made.rename(folder)
        except OSError as error:
            raise unwritable(folder, error) from None


def refuse_folder(folder: Path, force: bool) -> None:
    """Raise if a data set cannot be written there: OB202 if something is there."""
    if folder.is_dir() and not folder.is_symlink() and (force or not any(folder.iterdir())):
        return
    if folder.exists() or folder.is_symlink():
        raise UsageError("OB202", f"{quote(str(folder))} exists already", hint="--force replaces a data set")


def record_data(source: Model, piece: Model, cut: Cut, recorder: Recorder) -> tuple[Data, str]:
    """Values of the piece's inputs and outputs from a run of the source, and why the piece was not seen to give them.

    Raises:
        ModelError: OB308 if the source cannot be run.
        SafetyStop: OB501 if the piece computes something else.
    """
    view = GraphView(piece.proto, piece.proto.graph)
    weights = {n: cut.view.initializers[n] for n in fed_inputs(view) if n in cut.view.initializers}
    names = [name for name in fed_inputs(view) if name not in weights]
    recorder.feeds(source)  # what is wrong with the inputs is said as it is
    values = recorder.values(cut.view, [*names, *cut.outputs])
    stored = {name: array(source, tensor) for name, tensor in weights.items()}
    missing = [name for name in (*names, *cut.outputs) if name not in values and name not in cut.view.initializers]
    if missing:
        words = (
            f"no run of {source.label} gives the value of {quote(missing[0])}: {recorder.why or 'it is not computed'}"
        )
        raise ModelError("OB308", words, hint="leave out --with-data, or give --inputs")
    inputs = {name: stored[name] if name in stored else values[name] for name in fed_inputs(view)}
    kept = {name: array(source, cut.view.initializers[name]) for name in cut.outputs if name not in values}
    data = Data(inputs, {name: kept[name] if name in kept else values[name] for name in cut.outputs})
    return data, _confirm(source, piece, data, recorder)


def _confirm(source: Model, piece: Model, data: Data, recorder: Recorder) -> str:
    """Run the piece on what was recorded."""
    if any(draws(node) for node in piece.proto.graph.node):
        return "it draws random numbers"
    reason = ""
    for runtime in recorder.runtimes():
        outcome = runtime.run(piece, data.inputs, limits=recorder.limits)
        if outcome.ok:
            differences = differ_all(data.outputs, outcome.outputs, Tolerance())
            if not differences:
                return ""
            words = f"the piece of {source.label} does not compute what the whole does: {differences[0].sentence()}"
            raise SafetyStop("OB501", words)
        reason = reason or f"the piece {outcome.sentence()} on {runtime}"
    return reason
