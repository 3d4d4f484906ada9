"""The folder that a reduction hands back: a model, its inputs, and a script that fails again."""

from __future__ import annotations

import errno
import itertools
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from onnxbench.core.atomic import unwritable
from onnxbench.core.data_set import write_data_set
from onnxbench.core.feed_files import write_npz
from onnxbench.core.graph import GraphView
from onnxbench.core.model import Model, save
from onnxbench.core.scratch import DRAFT, Scratch
from onnxbench.core.text import readable
from onnxbench.core.values import Value
from onnxbench.errors import MachineError, SafetyStop, UsageError, quote
from onnxbench.reducers.passing import Near


@dataclass(frozen=True, slots=True)
class Contents:
    """What goes into a bundle.

    Attributes:
        model: the reproducer.
        inputs: a value for each of its inputs.
        expected: right outputs, as far as a trusted runtime gave them.
        script: the text of repro.py.
    """

    model: Model
    inputs: Mapping[str, Value]
    expected: Mapping[str, Value]
    script: str


#: What a bundle holds; a folder with anything else in it, but data files, is not replaced.
_FILES = {
    *("model.onnx", "model.onnxtxt", "inputs.npz", "expected.npz", "repro.py", "REPORT.md", "report.json"),
    *("report.html", "passing.onnx", "passing.npz"),
    *("journal.jsonl", "names.json"),
    *("test_data_set_0", "__pycache__"),
}


def refuse_taken(folder: Path, force: bool) -> None:
    """Raise OB202 if a bundle's folder is there and may not be replaced, OB201 if none can have that name.

    Only an empty folder or an earlier bundle is ever replaced: `--force` must not remove somebody's files.
    """
    if folder.name in ("", ".."):
        raise UsageError("OB201", f"{quote(str(folder))} names no new folder", hint="--bundle DIR")
    try:
        if not folder.exists() and not folder.is_symlink():
            return
    except (OSError, ValueError) as error:
        raise UsageError("OB201", f"{quote(str(folder))} cannot be a folder's name: {error}") from None
    if not folder.is_dir():
        raise UsageError("OB202", f"{quote(str(folder))} exists and is no folder", hint="--bundle another name")
    empty = not any(folder.iterdir())
    if not empty and not force:
        raise UsageError("OB202", f"the folder {quote(str(folder))} exists", hint="--force, or --bundle another name")
    if any(path.name not in _FILES and path.suffix != ".data" for path in folder.iterdir()):
        raise UsageError(
            "OB202", f"{quote(str(folder))} holds other files than a bundle's", hint="--bundle another name"
        )


class Draft:
    """A bundle that is being written beside its place; `publish` or `replace` moves it there, and without that nothing is left."""

    def __init__(self, place: Path) -> None:
        self.place, self.said = place, ""
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            self._scratch = Scratch.within(place.parent, DRAFT)
        except OSError as error:
            raise unwritable(place, error) from None
        self.folder = self._scratch.path

    def __enter__(self) -> Draft:
        return self

    def __exit__(self, *_: object) -> None:
        self._scratch.remove()

    def write(self, contents: Contents) -> None:
        """Everything but the reports."""
        view = GraphView(contents.model.proto, contents.model.proto.graph)
        try:
            save(contents.model, self.folder / "model.onnx")
            text = readable(contents.model.proto)
            if text is not None:
                (self.folder / "model.onnxtxt").write_text(text, encoding="utf-8")
            write_data_set(self.folder / "test_data_set_0", contents.inputs, contents.expected, view)
            write_npz(self.folder / "inputs.npz", contents.inputs)
            if contents.expected:
                write_npz(self.folder / "expected.npz", contents.expected)
            (self.folder / "repro.py").write_text(contents.script, encoding="utf-8")
        except OSError as error:
            raise unwritable(self.place, error) from None
        except MachineError as error:  # names the draft, which will not be there
            raise unwritable(self.place, error.__cause__) if isinstance(error.__cause__, OSError) else error from None

    def confirm(self, interpreter: str, timeout: float, tries: int) -> bool:
        """Whether repro.py fails again, in a fresh process, in one of so many tries of so many seconds."""
        return any(self._fails(interpreter, timeout * 2 + 60) for _ in range(tries))

    def _fails(self, interpreter: str, timeout: float) -> bool:
        environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
        environment["ORT_DISABLE_TELEMETRY"] = "1"  # which would leave a file where temporary ones go
        log = tempfile.TemporaryFile()  # noqa: SIM115 -- closed below
        process = subprocess.Popen(
            [interpreter, "-B", "repro.py"],
            cwd=self.folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C is ours to handle
        )
        try:
            return process.wait(timeout) == 1
        except subprocess.TimeoutExpired:
            return False
        finally:
            _stop(process)
            log.seek(0)
            self.said = " ".join(log.read()[-400:].decode("utf-8", "replace").split())
            log.close()

    def add_passing(self, near: Near) -> None:
        """A neighbour of the reproducer that passes, with its inputs if they are others."""
        try:
            save(near.reproducer.model, self.folder / "passing.onnx")
            if not near.fed_alike:
                write_npz(self.folder / "passing.npz", near.reproducer.feeds)
        except OSError as error:
            raise unwritable(self.place, error) from None

    def add(self, name: str, text: str) -> None:
        try:
            (self.folder / name).write_text(text, encoding="utf-8")
        except OSError as error:
            raise unwritable(self.place, error) from None

    def publish(self, place: Path) -> bool:
        """Put the folder in a place that is free; False if it is taken, perhaps by another run that started meanwhile."""
        try:
            self.folder.chmod(0o777 & ~_umask())
            self.folder.rename(place)
        except OSError as error:
            if error.errno in (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR):
                return False
            raise unwritable(place, error) from None
        return True

    def replace(self, place: Path) -> None:
        """Put the folder in its place, an earlier bundle aside first; that one comes back if anything goes wrong."""
        refuse_taken(place, force=True)  # again, for the search may have taken hours
        aside = Path(tempfile.mkdtemp(prefix=".onnxbench-", dir=place.parent))
        old = aside / "old"
        try:
            if place.exists():
                place.rename(old)
            if not self.publish(place):
                raise UsageError(
                    "OB202", f"the folder {quote(str(place))} was taken meanwhile", hint="--bundle another name"
                )
        except OSError as error:
            raise unwritable(place, error) from None
        finally:
            if old.exists() and not place.exists():
                old.rename(place)
            shutil.rmtree(aside, ignore_errors=True)


def write_text(place: Path, text: str) -> None:
    """Write a file beside a bundle."""
    try:
        place.write_text(text, encoding="utf-8")
    except OSError as error:
        raise unwritable(place, error) from None


def numbered(place: Path) -> Iterator[Path]:
    """A place, and others beside it."""
    yield place
    yield from (place.with_name(f"{place.name}-{number}") for number in itertools.count(2))


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End a repro.py that still runs, gently at first: a killed one would leave its child and its temporary folder."""
    process.terminate()
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def unconfirmed(model: str, said: str) -> SafetyStop:
    """The error of a reproducer that does not fail in a fresh process."""
    return SafetyStop(
        "OB501",
        f"what is left of {model} does not fail again in a fresh process, so no bundle was written",
        hint=f"the fresh process said: {said}" if said else "",
    )
