"""A command of the user's that tells whether a model fails: `reduce --check`."""

from __future__ import annotations

import os
import re
import shlex
import signal
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from onnxbench.core.feed_files import write_npz
from onnxbench.core.model import Model, save
from onnxbench.core.scratch import Scratch
from onnxbench.errors import UsageError, quote
from onnxbench.isolate.command import LONGEST, run_command
from onnxbench.runtimes.base import Limits, Runtime, Spec
from onnxbench.runtimes.outcome import Outcome

#: Exit codes that say nothing of the model: cannot tell, cannot be run, not found.
_CANNOT_TELL, _CANNOT_START = 125, (126, 127)


@dataclass(frozen=True, slots=True)
class Criterion:
    """Which endings of a check are the failure; by default those like the original's.

    Attributes:
        codes: exit codes that are the failure.
        pattern: a regular expression that the output holds when it is the failure.
        anything: every ending but 0 and "cannot tell" is the failure.
    """

    codes: tuple[int, ...] = ()
    pattern: str = ""
    anything: bool = False

    def holds(self, code: int, output: str) -> bool | None:
        """Whether an ending is the failure; None if its code and last line tell."""
        if self.anything:
            return True
        if not self.codes and not self.pattern:
            return None
        return (not self.codes or code in self.codes) and (
            not self.pattern or re.search(self.pattern, output, re.MULTILINE) is not None
        )


class Command(Runtime):
    """`--check CMD`: exit code 0 means that the failure is gone, 125 cannot tell, any other code or a signal that it is there.

    The command is split as a shell does, and run without one. `{model}` and `{inputs}` stand for the files of the
    candidate; without `{model}` its path is the last argument.
    """

    name = "check"
    package = ""
    sentence = "a command that tells whether a model fails"
    function = ""
    decides = True

    def __init__(self, command: str, criterion: Criterion | None = None) -> None:
        super().__init__(Spec("check", "", command))
        self.criterion = criterion or Criterion()
        self.needs_feeds = any("{inputs}" in part for part in self.options["argv"])

    def parse(self, spec: Spec) -> dict[str, Any]:
        try:
            argv = shlex.split(spec.arguments)
        except ValueError as error:
            raise UsageError("OB201", f"--check {quote(spec.arguments)} cannot be split: {error}") from None
        if not argv:
            raise UsageError("OB201", "--check names no command")
        return {"argv": argv if any("{model}" in part for part in argv) else [*argv, "{model}"]}

    def version(self) -> str:
        return ""

    def run(
        self,
        model: Model,
        feeds: Mapping[str, Any],
        fetch: Sequence[str] | None = None,
        *,
        limits: Limits | None = None,
        spill: Path | None = None,
    ) -> Outcome:
        """Write the model, and its inputs if they are asked for, and run the command on them."""
        with Scratch.temporary() as scratch:
            place, inputs = scratch.path / "model.onnx", scratch.path / "inputs.npz"
            save(model, place)
            if self.needs_feeds:
                write_npz(inputs, feeds)
            filled = {"{model}": str(place), "{inputs}": str(inputs)}
            argv = [_filled(part, filled) for part in self.options["argv"]]
            return self._observe(argv, limits or Limits())

    def _observe(self, argv: list[str], limits: Limits) -> Outcome:
        started = time.monotonic()
        ending = run_command(argv, timeout=limits.timeout, memory=limits.memory)
        if ending.stopped == "lost":  # somebody killed the worker, not the command
            ending = run_command(argv, timeout=limits.timeout, memory=limits.memory)
        seconds = time.monotonic() - started
        if ending.fault:
            return Outcome("unknown", phase="start", message=f"{quote(argv[0])} cannot start: {ending.fault}")
        if ending.stopped == "lost":
            return Outcome("unknown", phase="run", message="the process that ran it was killed")
        if ending.stopped is not None:
            return Outcome(ending.stopped, seconds=seconds, output=ending.output)
        assert ending.code is not None
        return self._outcome(ending.code, ending.output, seconds)

    def _outcome(self, code: int, output: str, seconds: float) -> Outcome:
        lines = [line.strip() for line in output.splitlines() if line.strip()]
        last = lines[-1] if lines else ""
        if code == 0:
            return Outcome("ok", seconds=seconds)
        if code in (_CANNOT_TELL, *_CANNOT_START):
            phase = "run" if code == _CANNOT_TELL else "start"
            return Outcome("unknown", phase=phase, message=f"it ends with {code}: {last}", output=output)
        ending = f"exit_{code}" if code > 0 else signal.Signals(-code).name
        there = self.criterion.holds(code, output)
        if there is not None:
            ending, last = ("fails", "") if there else (f"other_{ending}", last)
        return Outcome("error", phase="check", error=ending, message=last, seconds=seconds, output=output)

    def script(self) -> str:
        argv = [str(Path(part).absolute()) if Path(part).is_file() else part for part in self.options["argv"]]
        argv[0] = self.options["argv"][0] if os.sep not in self.options["argv"][0] else argv[0]
        chosen = (self.criterion.codes, self.criterion.pattern, self.criterion.anything)
        return _SCRIPT.format(argv=argv, cwd=str(Path.cwd()), criterion=chosen, longest=LONGEST)


def _filled(part: str, values: Mapping[str, str]) -> str:
    return re.sub(r"\{model\}|\{inputs\}", lambda found: values[found.group()], part)


_SCRIPT = """\
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile

ARGV = {argv!r}
CWD = {cwd!r}  # where the search ran: relative paths of the check lead from there
CODES, PATTERN, ANYTHING = {criterion!r}


def run(model_path, feeds):
    around = os.path.dirname(sys.argv[-1])  # a folder that goes even if this process is killed
    with tempfile.TemporaryDirectory(dir=around) as folder:
        for path in HERE.iterdir():  # copies: the command may write where the model lies
            if path.suffix in (".onnx", ".npz", ".data"):
                shutil.copy(str(path), folder)
        model, inputs = os.path.join(folder, os.path.basename(model_path)), os.path.join(folder, "inputs.npz")
        argv = [part.replace("{{model}}", model).replace("{{inputs}}", inputs) for part in ARGV]
        phase("check")
        with open(os.path.join(folder, "log"), "w+b") as log:  # no pipe: what the command leaves running may hold it
            code = subprocess.call(
                argv,
                cwd=CWD if os.path.isdir(CWD) else None,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
            log.seek(max(0, log.seek(0, os.SEEK_END) - {longest}))
            output = log.read().decode("utf-8", "replace")
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    last = lines[-1] if lines else ""
    if code == 0:
        return {{}}
    ending = "exit_%d" % code if code > 0 else signal.Signals(-code).name
    if code in (125, 126, 127):
        ending = "cannot_tell"
    elif ANYTHING or CODES or PATTERN:
        there = ANYTHING or (not CODES or code in CODES) and (not PATTERN or re.search(PATTERN, output, re.M))
        ending, last = ("fails", "") if there else ("other_" + ending, last)
    raise type(ending, (Exception,), {{}})(last)


def version():
    return "the check " + ARGV[0]
"""
