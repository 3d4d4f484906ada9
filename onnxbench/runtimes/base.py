"""What every runtime is: a name with options that runs a model in a worker and says what came of it."""

from __future__ import annotations

import dataclasses
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from onnxbench import isolate
from onnxbench.core.model import Model
from onnxbench.errors import UsageError, quote
from onnxbench.runtimes import packing
from onnxbench.runtimes.job import perform
from onnxbench.runtimes.outcome import Outcome


@dataclass(frozen=True, slots=True)
class Limits:
    """What one run may take: seconds of wall time (None: no end), bytes of resident memory (None: no cap)."""

    timeout: float | None = 60.0
    memory: int | None = None


@dataclass(frozen=True, slots=True)
class Spec:
    """A runtime as typed: NAME[@VENV][:key=value,...]."""

    name: str
    venv: str = ""
    arguments: str = ""

    def __str__(self) -> str:
        venv = f"@{self.venv}" if self.venv else ""
        arguments = f":{self.arguments}" if self.arguments else ""
        return f"{self.name}{venv}{arguments}"


class Runtime(ABC):
    """A runtime with its options.

    A new one is a subclass in a file of its own, registered under the entry-point group `onnxbench.runtimes`. Its
    worker function gets a `Job`, sets `job.phase = "run"` once the model is loaded, and returns outputs by name or
    raises.

    Attributes:
        name: what users type.
        package: what pip installs.
        sentence: what it is, for `onnxbench runtimes`.
        function: 'module:name' of the worker function.
        decides: whether a run that ends well is right, whatever its outputs.
        needs_feeds: whether a run needs values for the inputs.
    """

    name: ClassVar[str]
    package: ClassVar[str]
    sentence: ClassVar[str]
    function: ClassVar[str]
    decides: ClassVar[bool] = False
    needs_feeds: bool = True

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self.options = self.parse(spec)
        self.interpreter = self.choose_interpreter(spec)

    def __str__(self) -> str:
        return str(self.spec)

    @abstractmethod
    def parse(self, spec: Spec) -> dict[str, Any]:
        """The options as plain data.

        Raises:
            UsageError: OB205 for an option that this runtime does not have, or a value it cannot take.
        """

    @abstractmethod
    def version(self) -> str:
        """The version installed.

        Raises:
            MachineError: OB401, with the pip line, if it is not.
        """

    @abstractmethod
    def script(self) -> str:
        """Python source, free of onnxbench, that defines `run(model_path, feeds) -> dict` for a bundle's repro.py."""

    @classmethod
    def installed_version(cls) -> str:
        """The version that is found without any option; a runtime that needs options has none."""
        return cls(Spec(cls.name)).version()

    def choose_interpreter(self, spec: Spec) -> isolate.Interpreter:
        """The Python that runs it; `@VENV` only where a runtime allows it."""
        if spec.venv:
            raise UsageError("OB205", f"{self.name} does not run in another environment: {quote(str(spec))}")
        return isolate.HERE

    def plain(self) -> Runtime | None:
        """The same runtime without optimizations, if it has such a mode."""
        return None

    def cheap(self) -> Runtime:
        """The same runtime, by the same name, with settings that save time and should change nothing else."""
        return self

    def levels(self) -> Sequence[Runtime]:
        """The same runtime at each of its optimization levels, the lowest first, itself at its own last."""
        return ()

    def optimizers(self) -> Sequence[str]:
        """Names of optimizations that can be switched off one by one."""
        return ()

    def without(self, optimizers: Sequence[str]) -> Runtime:
        """The same runtime with optimizations switched off besides those that are."""
        return self

    def in_environment(self, venv: str) -> Runtime:
        """The same runtime in another virtual environment.

        Raises:
            UsageError: OB205 if this runtime does not run elsewhere.
        """
        return type(self)(Spec(self.spec.name, venv, self.spec.arguments))

    def explain(self, outcome: Outcome) -> Outcome:
        """The outcome with what this runtime's messages tell: the node, whether an operator is unsupported."""
        return outcome

    def run(
        self,
        model: Model,
        feeds: Mapping[str, Any],
        fetch: Sequence[str] | None = None,
        *,
        limits: Limits | None = None,
        spill: Path | None = None,
    ) -> Outcome:
        """Run the model once, in a worker.

        Args:
            model: large weights should be external (`core.weights.slim`), or each run copies them.
            feeds: values by input name; memory-mapped arrays are read by the worker where they lie.
            fetch: wanted outputs; None for all.
            limits: timeout and memory cap.
            spill: a file to which large outputs are appended; they come back memory-mapped.
        """
        limits = limits or Limits()
        request = {
            "function": self.function,
            "model": model.proto.SerializeToString(),
            "folder": str(model.folder) if model.folder is not None else None,
            "feeds": {name: packing.pack(value) for name, value in feeds.items()},
            "fetch": list(fetch) if fetch is not None else None,
            "options": self.options,
            "spill": str(spill) if spill is not None else None,
        }

        def ask() -> isolate.Result:
            return isolate.call(
                perform, (request,), timeout=limits.timeout, memory=limits.memory, interpreter=self.interpreter
            )

        started = time.monotonic()
        result = ask()
        if isinstance(result, isolate.Memory) and not result.used:
            result = ask()  # somebody killed it: the model only if it happens again
        return self.explain(_outcome(result, time.monotonic() - started))


def _outcome(result: isolate.Result, elapsed: float) -> Outcome:
    match result:
        case isolate.Ok(value={"outputs": outputs, "seconds": seconds, "run_seconds": run_seconds}):
            unpacked = {name: packing.unpack(value) for name, value in outputs.items()}
            return Outcome("ok", unpacked, seconds=seconds, run_seconds=run_seconds)
        case isolate.Ok(value=answer):
            phase, error, message = answer["phase"], answer["error"], answer["message"]
            return Outcome("error", phase=phase, error=error, message=message, seconds=elapsed)
        case isolate.Error():
            return Outcome("error", phase="load", error=result.kind, message=result.message, seconds=elapsed)
        case isolate.Crash():
            return Outcome("crash", signal=result.signal, seconds=elapsed, output=result.output)
        case isolate.Timeout():
            return Outcome("timeout", seconds=result.seconds, output=result.output)
        case isolate.Memory():
            return Outcome("memory", seconds=elapsed, output=result.output)


def as_unsupported(outcome: Outcome) -> Outcome:
    """The same failure, as one of an operator that the runtime does not have."""
    return dataclasses.replace(outcome, kind="unsupported")


def parse_pairs(spec: Spec) -> dict[str, str]:
    """`key=value,key=value` as a dict.

    Raises:
        UsageError: OB205 for a part without `=`.
    """
    pairs: dict[str, str] = {}
    for part in filter(None, spec.arguments.split(",")):
        key, equals, value = part.partition("=")
        if not equals:
            raise UsageError("OB205", f"{quote(part)} in {quote(str(spec))} is not key=value")
        pairs[key.strip()] = value.strip()
    return pairs
