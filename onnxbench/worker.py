"""The child side of `isolate`: a warm zygote that forks workers, each serving one call after another.

Runs under other interpreters too (`onnxruntime@VENV`), which may be older and need not have onnxbench: standard library
only, Python 3.9 syntax, and this package reachable without the rest of our site-packages.
"""

from __future__ import annotations

import sys

if __name__ == "__main__":  # started as a file: our own folder must not shadow anybody's modules
    del sys.path[0]

import array
import contextlib
import fcntl
import gc
import importlib
import importlib.util
import os
import pickle
import resource
import signal
import socket
import struct
import time
import traceback
from collections.abc import Collection, Iterator
from typing import Any, NoReturn

_HEADER = struct.Struct("!Q")
_SET_SUBREAPER = 36  # of prctl(2)
_GRACE = 2.0  # seconds between the end of a worker's channel and its own


def send(channel: socket.socket, message: Any) -> None:
    """Write one pickled message, prefixed by its length."""
    body = pickle.dumps(message, protocol=4)
    channel.sendall(_HEADER.pack(len(body)))
    channel.sendall(body)


def receive(channel: socket.socket) -> Any:
    """Read one message; None at the end of the stream."""
    body = _receive_bytes(channel)
    return None if body is None else pickle.loads(body)


def _receive_bytes(channel: socket.socket) -> bytearray | None:
    header = _read(channel, _HEADER.size)
    return None if header is None else _read(channel, _HEADER.unpack(header)[0])


def _read(channel: socket.socket, count: int) -> bytearray | None:
    data = bytearray(count)
    view, filled = memoryview(data), 0
    while filled < count:
        got = channel.recv_into(view[filled:])
        if not got:
            return None
        filled += got
    return data


def resolve(target: str) -> Any:
    """The function behind 'module:qualname'."""
    module, _, qualname = target.partition(":")
    found: Any = importlib.import_module(module)
    for part in qualname.split("."):
        found = getattr(found, part)
    return found


def serve(channel: socket.socket) -> None:
    """Answer calls until the other side closes: ('ok', result), ('memory',) or ('error', class, message, traceback)."""
    while True:
        call = _receive_bytes(channel)
        if call is None:
            return
        with _ends_with(channel):
            answer = _perform(call)
        for name in ("stdout", "stderr"):
            _flush(name)
        channel.sendall(_HEADER.pack(len(answer)))
        channel.sendall(answer)


@contextlib.contextmanager
def _ends_with(channel: socket.socket) -> Iterator[None]:
    """While a call runs, end at once if the other side goes: killed together with the zygote, it leaves nobody who would."""
    if sys.platform != "linux":
        yield
        return
    handle = channel.fileno()
    flags = fcntl.fcntl(handle, fcntl.F_GETFL)
    fcntl.fcntl(handle, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(
        handle, fcntl.F_SETFL, flags | fcntl.FASYNC
    )  # nothing is sent meanwhile: SIGIO is the end of the channel
    yield
    with contextlib.suppress(OSError):  # the function may have closed it
        fcntl.fcntl(handle, fcntl.F_SETFL, flags)


def _perform(call: bytearray) -> bytes:
    """The pickled answer to a pickled call."""
    try:
        target, arguments = pickle.loads(call)
        answer: tuple[Any, ...] = ("ok", resolve(target)(*arguments))
    except MemoryError:
        answer = ("memory",)
    except BaseException as error:  # a plug-in may raise SystemExit: that is its failure, not ours
        answer = ("error", type(error).__name__, text_of(error), traceback.format_exc())
    try:
        return pickle.dumps(answer, protocol=4)
    except MemoryError:
        answer = ("memory",)
    except BaseException as error:  # a result may do anything when it is pickled
        answer = ("error", type(error).__name__, "the result cannot be sent: " + text_of(error), "")
    return pickle.dumps(answer, protocol=4)


def text_of(error: BaseException) -> str:
    """What an exception says; it may fail to say anything."""
    try:
        return str(error)
    except Exception:
        return "(an error without text)"


def _flush(name: str) -> None:
    """Flush a standard stream; one that the function closed is opened again for the next call."""
    try:
        getattr(sys, name).flush()
    except Exception:
        setattr(sys, name, getattr(sys, f"__{name}__"))
        if getattr(sys, name).closed:
            setattr(sys, name, open(1 if name == "stdout" else 2, "w", closefd=False))  # noqa: SIM115 -- for the next calls


def zygote(control: socket.socket) -> NoReturn:
    """Fork a worker for each request, and tell how it ended when asked. Ends, with all workers, if the parent does."""
    living: set[int] = set()
    while True:
        request, handles = _receive_with_handles(control)
        if request is None:
            for pid in living:
                _kill(pid)
            end_children()
            os._exit(0)
        if request[0] == "fork":
            made = _fork()
            if made == 0:
                control.close()
                _become_worker(*handles)
            for handle in handles:
                os.close(handle)
            if isinstance(made, int):
                living.add(made)
            send(control, made)
        else:
            living.discard(request[1])
            ending = _wait(request[1])
            end_children(living)  # what that one had started is ours now
            send(control, ending)


def _fork() -> int | str:
    """What `os.fork` gives, or why there can be no more processes."""
    try:
        return os.fork()
    except OSError as error:
        return error.strerror or str(error)


def _wait(pid: int) -> int | str:
    """How a worker ended, as `subprocess` counts; "killed" if it did not by itself. What it started ends with it."""
    deadline, own = time.monotonic() + _GRACE, True
    done, status = os.waitpid(pid, os.WNOHANG)
    while not done:
        if time.monotonic() > deadline:
            own = False
            _kill(pid)
            done, status = os.waitpid(pid, 0)
        else:
            time.sleep(0.001)
            done, status = os.waitpid(pid, os.WNOHANG)
    _kill_group(pid)
    if not own:
        return "killed"
    return -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def _receive_with_handles(control: socket.socket) -> tuple[Any, tuple[int, ...]]:
    handles: array.array[int] = array.array("i")
    try:
        header, ancillary, _, _ = control.recvmsg(_HEADER.size, socket.CMSG_LEN(2 * handles.itemsize))
    except OSError:
        return None, ()
    if len(header) < _HEADER.size:
        return None, ()
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            handles.frombytes(data[: len(data) - len(data) % handles.itemsize])
    body = _read(control, _HEADER.unpack(header)[0])
    return (None, ()) if body is None else (pickle.loads(body), tuple(handles))


def _become_worker(channel_handle: int, log_handle: int) -> NoReturn:
    os.setsid()
    _adopt_orphans()
    os.dup2(log_handle, 1)
    os.dup2(log_handle, 2)
    os.close(log_handle)
    code = 0
    try:
        serve(socket.socket(fileno=channel_handle))
    except BaseException:
        traceback.print_exc()
        code = 1
    os._exit(code)


def end_children(spared: Collection[int] = ()) -> None:
    """End the children of this process, and what becomes its child when those end: orphans, whatever their session."""
    deadline, foreign = time.monotonic() + _GRACE, set(spared)
    while time.monotonic() < deadline:
        found = _children() - foreign
        if not found:
            return
        for pid in found:
            try:
                os.kill(pid, signal.SIGKILL)
                if os.waitpid(pid, os.WNOHANG) == (0, 0):
                    time.sleep(0.001)
            except OSError:  # of another user, as sudo makes them
                foreign.add(pid)


def _children() -> set[int]:
    """The children of this process; none where the system does not tell."""
    found: set[int] = set()
    with contextlib.suppress(OSError):
        for thread in os.listdir("/proc/self/task"):
            with open(f"/proc/self/task/{thread}/children") as file:
                found.update(map(int, file.read().split()))
    return found


def _adopt_orphans() -> None:
    """Become the parent of all descendants that lose theirs, instead of the system's first process."""
    _control_process(_SET_SUBREAPER, 1)


def _control_process(option: int, value: int) -> None:
    """prctl(2), where there is one."""
    if sys.platform == "linux":
        with contextlib.suppress(Exception):
            import ctypes

            ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _kill(pid: int) -> None:
    _kill_group(pid)
    with contextlib.suppress(OSError):
        os.kill(pid, signal.SIGKILL)


def _kill_group(pid: int) -> None:
    with contextlib.suppress(OSError):
        os.killpg(pid, signal.SIGKILL)


def _stub_package(folder: str) -> None:
    """Make `import onnxbench` work without opening the rest of the folder it lies in to this interpreter."""
    place = os.path.join(folder, "__init__.py")
    spec = importlib.util.spec_from_file_location("onnxbench", place, submodule_search_locations=[folder])
    assert spec is not None
    assert spec.loader is not None
    package = importlib.util.module_from_spec(spec)
    sys.modules["onnxbench"] = package
    spec.loader.exec_module(package)


def be_zygote(control: socket.socket) -> NoReturn:
    """Set up as the parent asks, then fork on demand."""
    setup = receive(control)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    _adopt_orphans()
    if setup["path"] is None:
        _stub_package(setup["package"])
    else:
        sys.path[:] = setup["path"]
    for module in setup["warm"]:
        with contextlib.suppress(Exception):  # the call that needs it will say so, in its own words
            importlib.import_module(module)
    sys.stdout.flush()  # or every worker would say again what an import printed
    sys.stderr.flush()
    gc.freeze()  # what is imported stays: no collection of a worker need look at it, nor copy its pages
    gc.set_threshold(100_000, 20, 50)
    send(control, "ready")
    zygote(control)


if __name__ == "__main__":
    be_zygote(socket.socket(fileno=int(sys.argv[1])))
