"""What came of a call in a worker process, and where such calls run."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Ok:
    """The function returned `value`, after `seconds`."""

    value: Any
    seconds: float = 0.0
    output: str = ""


@dataclass(frozen=True, slots=True)
class Error:
    """The function raised: the exception's class name, its text, the traceback."""

    kind: str
    message: str
    trace: str = ""
    output: str = ""


@dataclass(frozen=True, slots=True)
class Crash:
    """The process died: `signal` is 'SIGSEGV' and the like, or 'exit 3'; 'no answer' if it hung up and lived on."""

    signal: str
    output: str = ""


@dataclass(frozen=True, slots=True)
class Timeout:
    """The function was still at work after `seconds` and was killed."""

    seconds: float
    output: str = ""


@dataclass(frozen=True, slots=True)
class Memory:
    """The process went over its cap of resident memory, or ran out of it; `used` is in bytes, 0 if unknown."""

    used: int
    output: str = ""


Result = Ok | Error | Crash | Timeout | Memory


@dataclass(frozen=True, slots=True)
class Interpreter:
    """A Python to work in. `foreign` ones see this package only, none of our other modules.

    Attributes:
        executable: path of the interpreter.
        warm: modules to import once, before workers are forked.
        foreign: whether it belongs to another environment.
        environment: variables to add, as pairs.
    """

    executable: str = sys.executable
    warm: tuple[str, ...] = ("numpy", "onnx", "onnxruntime")
    foreign: bool = False
    environment: tuple[tuple[str, str], ...] = ()


HERE = Interpreter()
#: Starts sooner, for work on models that runs none.
LIGHT = Interpreter(warm=("numpy", "onnx"))
