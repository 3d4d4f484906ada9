"""The warm process as a copy of this one, which has imported already what a new interpreter would import again.

Only of a process that is our own, before it does anything: a program that uses onnxbench may have threads, whose locks would
stay locked in the copy for ever.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from onnxbench import interrupts, process, worker
from onnxbench.isolate.results import Interpreter

#: What every command needs itself sooner or later.
_SHARED = ("numpy", "onnx")


def is_possible(interpreter: Interpreter) -> bool:
    """Whether a copy of this process, as it is now, can serve as the warm process of an interpreter."""
    return (
        process.is_own
        and sys.platform == "linux"
        and interpreter.executable == sys.executable
        and not interpreter.foreign
        and set(_SHARED) <= set(interpreter.warm)
        and threading.active_count() == 1
    )


def import_shared() -> None:
    """Import what this process and its copy both need. No BLAS pool: its threads would not survive a fork."""
    with _one_thread():
        import_held()


def import_held() -> None:
    """Import what is native with interrupts held, which it does not survive."""
    with interrupts.held():
        for module in _SHARED:
            importlib.import_module(module)


@contextlib.contextmanager
def _one_thread() -> Iterator[None]:
    name = "OPENBLAS_NUM_THREADS"
    before = os.environ.get(name)
    os.environ[name] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


@dataclass
class Copy:
    """A forked process, with what `subprocess.Popen` has."""

    pid: int
    returncode: int | None = None

    def poll(self) -> int | None:
        if self.returncode is None:
            try:
                done, status = os.waitpid(self.pid, os.WNOHANG)
            except ChildProcessError:  # somebody else has waited for it
                done, status = self.pid, 0
            if done:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def wait(self, timeout: float) -> int | None:
        deadline = time.monotonic() + timeout
        while self.poll() is None and time.monotonic() < deadline:
            time.sleep(0.001)
        return self.returncode

    def kill(self) -> None:
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)


def fork(control: socket.socket, log: int, environment: dict[str, str]) -> Copy:
    """A copy of this process that goes on as the zygote at the other end of `control`, and prints to `log`."""
    sys.stdout.flush()
    sys.stderr.flush()
    # No signal may strike between the fork and the copy's own handlers, or there would be two of this process.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        pid = os.fork()
        if pid == 0:
            _become_zygote(control, log, environment, before)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return Copy(pid)


def _become_zygote(control: socket.socket, log: int, environment: dict[str, str], mask: Any) -> None:
    code = 1
    try:
        os.setsid()
        for number in signal.valid_signals():
            if callable(signal.getsignal(number)):
                signal.signal(number, signal.SIG_DFL)
        null = os.open(os.devnull, os.O_RDONLY)
        for place, source in enumerate((null, log, log)):
            os.dup2(source, place)
        _close_all_but(control.fileno())
        _kept.append((sys.stdin, sys.stdout, sys.stderr))
        for handle, name in enumerate(("stdin", "stdout", "stderr")):
            stream = open(handle, "w" if handle else "r", closefd=False)  # noqa: SIM115 -- for as long as the process lives
            setattr(sys, name, stream)
            setattr(sys, f"__{name}__", stream)
        os.environ.update(environment)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        worker.be_zygote(control)
    except BaseException:
        code = 70
    finally:
        os._exit(code)


#: Streams of the process that was copied: they must not be flushed or closed here.
_kept: list[Any] = []


def _close_all_but(kept: int) -> None:
    for place in Path("/proc/self/fd").iterdir():
        handle = int(place.name)
        if handle > 2 and handle != kept:
            with contextlib.suppress(OSError):
                os.close(handle)
