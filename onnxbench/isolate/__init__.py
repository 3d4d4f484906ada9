"""Run a function where it can do no harm: in a worker process with a timeout and a memory cap.

`call` returns what happened as data. Workers persist between calls and are forked from a warm process, so that a call costs
milliseconds and a dead worker is replaced as fast. Any thread may call; each call has a worker to itself.
"""

from __future__ import annotations

import atexit
import contextlib
import threading
from collections.abc import Callable, Sequence
from typing import Any

from onnxbench import process
from onnxbench.errors import MachineError
from onnxbench.isolate import forking
from onnxbench.isolate.memory import machine_memory, resident
from onnxbench.isolate.nursery import Nursery
from onnxbench.isolate.results import HERE, LIGHT, Crash, Error, Interpreter, Memory, Ok, Result, Timeout

__all__ = [
    "HERE",
    "LIGHT",
    "Crash",
    "Error",
    "Interpreter",
    "Memory",
    "Ok",
    "Result",
    "Timeout",
    "call",
    "call_light",
    "machine_memory",
    "resident",
    "shut_down",
    "warm_up",
]


def call(
    function: Callable[..., Any] | str,
    arguments: Sequence[Any] = (),
    *,
    timeout: float | None = 60.0,
    memory: int | None = None,
    interpreter: Interpreter = HERE,
) -> Result:
    """Call a module-level function in a worker process.

    Args:
        function: the function, or its 'module:qualname'; arguments and result must pickle.
        arguments: positional arguments.
        timeout: seconds of wall time, from when the worker has the call; None waits for ever.
        memory: cap in bytes of resident anonymous memory (mapped weights do not count); None sets no cap.
        interpreter: the Python to run in.

    Returns:
        What happened. Nothing that the function does raises here.

    Raises:
        MachineError: OB403 if the interpreter cannot be started.
    """
    target = function if isinstance(function, str) else f"{function.__module__}:{function.__qualname__}"
    return _nursery(interpreter).call(target, tuple(arguments), timeout, memory)


def call_light(
    function: Callable[..., Any] | str,
    arguments: Sequence[Any] = (),
    *,
    timeout: float | None = 60.0,
    memory: int | None = None,
) -> Result:
    """`call`, for a function that needs onnx and no runtime: in the warm process that is there, or one that starts sooner."""
    interpreter = HERE if HERE in _nurseries else LIGHT
    return call(function, arguments, timeout=timeout, memory=memory, interpreter=interpreter)


def warm_up(interpreter: Interpreter = LIGHT) -> None:
    """Start the process that calls will need, while the caller is busy with something else."""
    if forking.is_possible(interpreter):
        forking.import_shared()
        _nursery(interpreter).start_early()
        return
    with contextlib.suppress(RuntimeError):  # no more threads
        threading.Thread(target=_start, args=(interpreter,), daemon=True).start()
    if process.is_own:
        forking.import_held()


def _start(interpreter: Interpreter) -> None:
    with contextlib.suppress(MachineError):  # the call that needs it will say so
        call("os:getpid", interpreter=interpreter)


def _nursery(interpreter: Interpreter) -> Nursery:
    with _nursery_lock:
        if interpreter not in _nurseries:
            _nurseries[interpreter] = Nursery(interpreter)
        return _nurseries[interpreter]


def shut_down() -> None:
    """End every worker; they start again when needed. Runs at exit by itself."""
    with _nursery_lock:
        for nursery in _nurseries.values():
            nursery.close()
        _nurseries.clear()


_nurseries: dict[Interpreter, Nursery] = {}
_nursery_lock = threading.Lock()
atexit.register(shut_down)
