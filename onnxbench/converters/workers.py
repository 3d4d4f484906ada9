"""Conversions in worker processes: whatever a model does to one, it comes back as data."""

from __future__ import annotations

from onnxbench import isolate
from onnxbench.converters import one, survey
from onnxbench.converters.one import Answer, Job
from onnxbench.converters.survey import Look
from onnxbench.isolate import Crash, Error, Interpreter, Memory, Ok, Result, Timeout
from onnxbench.runtimes.base import Limits

#: A worker runs models in workers of its own: they hang and die there, and it lives on.
_CONVERTERS = Interpreter(warm=("numpy", "onnx", "onnxbench.converters.one", "onnxbench.converters.run"))
#: One conversion may take as long as so many runs of its model.
RUNS = 10


def warm_up() -> None:
    """Start what conversions will need, while the caller is busy with something else."""
    isolate.warm_up(_CONVERTERS)


def convert(job: Job) -> Answer:
    """Convert one model in a worker process."""
    limits = job.options.limits
    seconds = None if limits.timeout is None else RUNS * limits.timeout
    result = isolate.call(one.convert_one, (job,), timeout=seconds, memory=limits.memory, interpreter=_CONVERTERS)
    if isinstance(result, Ok) and isinstance(result.value, Answer):
        return result.value
    error, code = _failure(result, "the conversion")
    return Answer("failed", error=error, code=code)


def look(source: str, limits: Limits) -> Look:
    """Look at one model in a worker process."""
    result = isolate.call(survey.look, (source,), timeout=limits.timeout, memory=limits.memory, interpreter=_CONVERTERS)
    if isinstance(result, Ok) and isinstance(result.value, Look):
        return result.value
    error, code = _failure(result, "reading it")
    return Look(error=error, code=code)


def _failure(result: Result, what: str) -> tuple[dict[str, str], int]:
    """What to say of a call that gave nothing, and the exit code of that."""
    code, fact, hint = "OB701", f"{what} gave no answer", "please report it"
    match result:
        case Timeout(seconds):
            code, fact, hint = "OB108", f"{what} took more than {seconds:g} s", "--timeout gives it more"
        case Memory():
            code, fact, hint = "OB108", f"{what} needs more memory than it may have", "--max-memory, or fewer --jobs"
        case Crash(signal):
            code, fact, hint = "OB108", f"{what} ended its process: {signal}", ""
        case Error(kind, message):
            fact = f"a bug of onnxbench: {kind}: {' '.join(message.split())[:300]}"
    return {"code": code, "message": fact, "hint": hint}, 1 if code == "OB108" else 70
