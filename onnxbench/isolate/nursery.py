"""The warm process of an interpreter, and the workers forked from it."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from onnxbench import worker
from onnxbench.errors import MachineError, quote
from onnxbench.isolate import forking
from onnxbench.isolate.memory import resident
from onnxbench.isolate.results import Crash, Error, Interpreter, Memory, Ok, Result, Timeout

_TAIL = 64 * 1024  # bytes of a worker's output that are kept
_CALLS_PER_WORKER = 256  # then it is replaced: runtimes leak a little with every session
_PACKAGE = Path(worker.__file__).parent
_START = 120.0  # seconds that an interpreter may take to import what it is warmed with


@dataclass(slots=True)
class _Worker:
    pid: int
    channel: socket.socket
    log: IO[bytes]
    control: socket.socket  # of the zygote that forked it
    calls: int = 0

    def output(self) -> str:
        handle = self.log.fileno()
        start = max(0, os.fstat(handle).st_size - _TAIL)
        text = os.pread(handle, _TAIL, start).decode("utf-8", "replace")
        os.ftruncate(handle, 0)
        os.lseek(handle, 0, os.SEEK_SET)  # the worker writes at the same place: handles that were passed share it
        return text

    def close(self) -> None:
        self.channel.close()
        self.log.close()


@dataclass
class Nursery:
    """The warm process of one interpreter, and the idle workers forked from it."""

    interpreter: Interpreter
    lock: threading.Lock = field(default_factory=threading.Lock)
    idle: list[_Worker] = field(default_factory=list)
    control: socket.socket | None = None
    process: subprocess.Popen[bytes] | forking.Copy | None = None
    log: IO[bytes] | None = None  # of a warm process that has not said yet that it is ready

    def call(self, target: str, arguments: tuple[Any, ...], timeout: float | None, memory: int | None) -> Result:
        with self.lock:
            busy = self._take()
        started = time.monotonic()
        try:
            answer = _exchange(busy, (target, arguments), started, timeout, memory)
        except BaseException:  # Ctrl-C: the worker may be in the middle of anything
            self._end(busy)
            raise
        if isinstance(answer, (Timeout, Memory)) or answer is None:
            return self._autopsy(busy, answer)
        output = busy.output()
        self._give_back(busy, memory)
        return _read_answer(answer, time.monotonic() - started, output)

    def _give_back(self, busy: _Worker, memory: int | None) -> None:
        busy.calls += 1
        swollen = memory is not None and resident(busy.pid) > memory // 2
        if busy.calls >= _CALLS_PER_WORKER or swollen:
            self._end(busy)
        else:
            with self.lock:
                self.idle.append(busy)

    def _autopsy(self, dead: _Worker, verdict: Timeout | Memory | None) -> Result:
        output = dead.output()
        code = self._end(dead, kill=verdict is not None)
        if isinstance(verdict, Timeout):
            return Timeout(verdict.seconds, output)
        if isinstance(verdict, Memory) or code == -signal.SIGKILL:  # a kill that is not ours: the kernel ran out
            return Memory(verdict.used if verdict else 0, output)
        return Crash("no answer" if code is None else _ending(code), output)

    def _take(self) -> _Worker:
        """An idle worker that is still alive, or a new one."""
        while self.idle:
            found = self.idle.pop()
            if not _has_news(found.channel, 0.0):  # nobody asked it anything: news would be its death
                return found
            self._bury(found, kill=True)
        return self._fork()

    def _end(self, worker_: _Worker, *, kill: bool = True) -> int | None:
        with self.lock:
            return self._bury(worker_, kill=kill)

    def _bury(self, worker_: _Worker, *, kill: bool) -> int | None:
        """How a worker ended; None if it had to be killed without a verdict, or its zygote is dead too."""
        if kill:
            _kill_group(worker_.pid)
        worker_.close()
        if worker_.control is not self.control:
            return None
        try:
            code = self._ask(("wait", worker_.pid))
        except OSError:
            _kill_group(worker_.pid)
            return None
        return code if isinstance(code, int) else None

    def _fork(self) -> _Worker:
        if self.process is None or self.process.poll() is not None:
            self._restart()
        self._expect()
        ours, theirs = socket.socketpair()
        log = tempfile.TemporaryFile()  # noqa: SIM115 -- lives as long as the worker
        try:
            made = self._ask_for_worker(theirs.fileno(), log.fileno())
        finally:
            theirs.close()
        if not isinstance(made, int):
            raise _no_process(made)
        assert self.control is not None
        return _Worker(made, ours, log, self.control)

    def _ask_for_worker(self, *handles: int) -> Any:
        """The process id of a new worker, or why there is none."""
        try:
            return self._ask(("fork",), *handles)
        except OSError:  # the zygote died a moment ago
            self._restart()
            self._expect()
        try:
            return self._ask(("fork",), *handles)
        except OSError:
            raise _no_process("the process that forks it died") from None

    def _ask(self, request: tuple[Any, ...], *handles: int) -> Any:
        """The zygote's answer. One that was not read would be taken for the next: then the zygote has to go."""
        assert self.control is not None
        try:
            _send_with_handles(self.control, request, list(handles))
            answer = worker.receive(self.control)
            if answer is None:
                raise BrokenPipeError
        except BaseException:
            self._abandon()
            raise
        return answer

    def _abandon(self) -> None:
        """Let go of the zygote, which ends its workers and itself."""
        if self.control is not None:
            self.control.close()
            self.control = None
        for worker_ in self.idle:
            worker_.close()
        self.idle.clear()
        if self.process is not None:
            if self.log is not None:  # it is still importing
                self.process.kill()
                self.log.close()
                self.log = None
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(5)
            self.process = None

    def _restart(self) -> None:
        self._abandon()
        self._start()

    def start_early(self) -> None:
        """Start the warm process as a copy of this one, without waiting until it is ready. If that cannot be, a call tells."""
        with self.lock, contextlib.suppress(OSError):
            if self.process is None:
                self._start(copied=True)

    def _start(self, *, copied: bool = False) -> None:
        ours, theirs = socket.socketpair()
        self.log = tempfile.TemporaryFile()  # noqa: SIM115 -- until the process is ready
        try:
            if copied:
                self.process = forking.fork(theirs, self.log.fileno(), _variables(self.interpreter))
            else:
                self.process = self._spawn(theirs)
        finally:
            theirs.close()
        self.control = ours
        path = None if self.interpreter.foreign else list(sys.path)
        setup = {"path": path, "package": str(_PACKAGE), "warm": self.interpreter.warm}
        with contextlib.suppress(OSError):  # it may be anything, or be dead already
            worker.send(ours, setup)

    def _spawn(self, theirs: socket.socket) -> subprocess.Popen[bytes]:
        assert self.log is not None
        try:
            return subprocess.Popen(
                [self.interpreter.executable, str(_PACKAGE / "worker.py"), str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=self.log,
                stderr=self.log,
                pass_fds=[theirs.fileno()],
                env=_environment(self.interpreter),
                start_new_session=True,
            )
        except OSError as error:
            self.log.close()
            self.log = None
            raise MachineError(
                "OB403", f"cannot start {quote(self.interpreter.executable)}: {error.strerror}"
            ) from None

    def _expect(self) -> None:
        """Wait until the warm process says that it is ready.

        Raises:
            MachineError: OB403 if it does not; any program may sit at the other side.
        """
        if self.log is None:
            return
        assert self.control is not None
        assert self.process is not None
        if not _is_ready(self.control):
            self.log.seek(0)
            lines = self.log.read().decode("utf-8", "replace").strip().splitlines()
            self._abandon()
            reason = f": {lines[-1]}" if lines else ""
            raise MachineError("OB403", f"{quote(self.interpreter.executable)} cannot start a worker process{reason}")
        self.log.close()
        self.log = None

    def close(self) -> None:
        with self.lock:
            self._abandon()


def _no_process(reason: str) -> MachineError:
    return MachineError("OB403", f"cannot start a worker process: {reason}", hint="ulimit -u; ulimit -n")


def _is_ready(control: socket.socket) -> bool:
    control.settimeout(_START)
    try:
        return bool(worker.receive(control) == "ready")
    except OSError:
        return False
    finally:
        control.settimeout(None)


def _exchange(
    busy: _Worker, message: Any, started: float, timeout: float | None, memory: int | None
) -> Any | Timeout | Memory | None:
    """The worker's answer; None if it died."""
    try:
        worker.send(busy.channel, message)
    except OSError:
        return None
    pause = 0.005
    while not _has_news(busy.channel, pause):
        if timeout is not None and time.monotonic() - started > timeout:
            return Timeout(timeout)
        if memory is not None and (used := resident(busy.pid)) > memory:
            return Memory(used)
        pause = min(pause * 1.5, 0.03)
        if timeout is not None:
            pause = max(0.001, min(pause, started + timeout - time.monotonic()))
    try:
        return worker.receive(busy.channel)
    except OSError:
        return None
    except Exception as error:  # it pickles but does not come back: the function's doing
        return ("error", type(error).__name__, f"the result cannot be read: {error}", "")


def _has_news(channel: socket.socket, patience: float) -> bool:
    """Whether there is something to read, or the other side has gone. Unlike select(2), for any handle."""
    channel.settimeout(patience)
    try:
        channel.recv(1, socket.MSG_PEEK)
    except (TimeoutError, BlockingIOError):
        return False
    except OSError:
        return True
    finally:
        channel.settimeout(None)
    return True


def _kill_group(pid: int) -> None:
    with contextlib.suppress(OSError):
        os.killpg(pid, signal.SIGKILL)


def _read_answer(answer: Any, seconds: float, output: str) -> Result:
    if answer[0] == "ok":
        return Ok(answer[1], seconds, output)
    if answer[0] == "memory":
        return Memory(0, output)
    _, kind, message, trace = answer
    return Error(kind, message, trace, output)


def _ending(code: int) -> str:
    if code >= 0:
        return f"exit {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"


def _environment(interpreter: Interpreter) -> dict[str, str]:
    environment = dict(os.environ)
    if interpreter.foreign:
        for name in ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "__PYVENV_LAUNCHER__"):
            environment.pop(name, None)
    return environment | _variables(interpreter)


def _variables(interpreter: Interpreter) -> dict[str, str]:
    """What a warm process must find in its environment."""
    # Threads do not survive a fork, so none may run in the warm process: no BLAS pool, no telemetry thread.
    own = {"ORT_DISABLE_TELEMETRY": "1", "OPENBLAS_NUM_THREADS": "1", "RUST_BACKTRACE": "0"}
    return own | dict(interpreter.environment)


def _send_with_handles(control: socket.socket, message: Any, handles: list[int]) -> None:
    import pickle

    body = pickle.dumps(message, protocol=4)
    if handles:
        socket.send_fds(control, [worker._HEADER.pack(len(body))], handles)
    else:
        control.sendall(worker._HEADER.pack(len(body)))
    control.sendall(body)
