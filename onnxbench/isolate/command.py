"""Run somebody's command where nothing of what it starts outlives it.

A worker starts it: orphans of the command become the worker's children (on Linux), whatever session they are in, and are
ended with it. If we are killed the worker goes, and the command too.
"""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Literal

from onnxbench import isolate, worker
from onnxbench.isolate.memory import resident
from onnxbench.isolate.results import Ok

#: Bytes of a command's output that are read, its last.
LONGEST = 64 << 10


@dataclass(frozen=True, slots=True)
class Ending:
    """How a command ended.

    Attributes:
        code: exit code, or the signal's number with a minus; None if it did not end by itself.
        output: the end of what it printed.
        stopped: what it was stopped for; "lost" if somebody killed the worker that ran it.
        fault: why it could not be started.
    """

    code: int | None = None
    output: str = ""
    stopped: Literal["timeout", "memory", "lost"] | None = None
    fault: str = ""


def run_command(
    argv: Sequence[str],
    *,
    timeout: float | None,
    memory: int | None = None,
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> Ending:
    """Run a command without a shell, and end whatever it leaves running.

    Args:
        argv: the command.
        timeout: seconds of wall time; None waits for ever.
        memory: cap in bytes of resident memory of the command itself.
        folder: where it runs; None for our own.
        environment: its variables; None for our own.

    Returns:
        How it ended. A command that cannot be started is an ending too.
    """
    variables = dict(os.environ if environment is None else environment)
    cores = resource.getrlimit(resource.RLIMIT_CORE)
    where = str(folder) if folder is not None else _here()
    result = isolate.call_light(_observe, (list(argv), where, variables, cores, timeout, memory), timeout=None)
    return result.value if isinstance(result, Ok) else Ending(stopped="lost", output=result.output)


def _here() -> str | None:
    try:
        return str(Path.cwd())
    except OSError:  # it was removed: the worker sits in it all the same
        return None


def _observe(
    argv: list[str],
    folder: str | None,
    environment: dict[str, str],
    cores: tuple[int, int],
    timeout: float | None,
    memory: int | None,
) -> Ending:
    """Run the command in this process, a worker."""
    started = time.monotonic()
    with tempfile.TemporaryFile() as log:
        try:
            with _as_started(cores):
                process = subprocess.Popen(
                    argv,
                    cwd=folder,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
        except (OSError, ValueError) as error:
            return Ending(fault=(error.strerror if isinstance(error, OSError) else "") or str(error))
        stopped = _wait(process, timeout, memory, started)
        if stopped is not None:
            process.kill()
        code = process.wait()
        with contextlib.suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
        worker.end_children()
        return Ending(code if stopped is None else None, _tail(log), stopped)


@contextlib.contextmanager
def _as_started(cores: tuple[int, int]) -> Iterator[None]:
    """What a worker has changed for itself as it was, for the command that starts now."""
    own = resource.getrlimit(resource.RLIMIT_CORE)
    handler = signal.signal(signal.SIGINT, signal.SIG_DFL)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, cores)
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_CORE, (own[0], resource.getrlimit(resource.RLIMIT_CORE)[1]))
        signal.signal(signal.SIGINT, handler)


def _wait(
    process: subprocess.Popen[bytes], timeout: float | None, memory: int | None, started: float
) -> Literal["timeout", "memory"] | None:
    """What the command has to be stopped for: None if it ended by itself."""
    pause = 0.001
    while process.poll() is None:
        if timeout is not None and time.monotonic() - started > timeout:
            return "timeout"
        if memory is not None and resident(process.pid) > memory:
            return "memory"
        time.sleep(pause)
        pause = min(0.02, pause * 1.5)
    return None


def _tail(log: IO[bytes]) -> str:
    log.seek(max(0, log.seek(0, os.SEEK_END) - LONGEST))
    return log.read().decode("utf-8", "replace")
