"""What came of running a model once."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

Kind = Literal["ok", "error", "crash", "timeout", "memory", "unsupported", "unknown"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """Plain data; only the fields of its `kind` are set.

    Attributes:
        kind: "ok", or the class of failure; "unknown" says nothing of the model.
        outputs: values by name (ok).
        phase: "load" while the session is made, then "run" (error, unsupported).
        error: class name of the exception (error, unsupported).
        message: its text, as the runtime gave it.
        node: the node that the message names, if it names one.
        signal: "SIGSEGV" and the like, or "exit N" (crash).
        seconds: wall time of loading and running, or until it failed, or the timeout that passed; `run_seconds` of running
            alone (ok).
        output: what the process printed before a crash.
    """

    kind: Kind
    outputs: dict[str, Any] = field(default_factory=dict)
    phase: str = ""
    error: str = ""
    message: str = ""
    node: str = ""
    signal: str = ""
    seconds: float = 0.0
    run_seconds: float = 0.0
    output: str = ""

    @property
    def ok(self) -> bool:
        return self.kind == "ok"

    def sentence(self) -> str:
        """What happened, in a line."""
        if self.kind == "ok":
            return f"runs ({self.seconds:.3g} s)"
        if self.kind == "crash":
            return f"dies with {self.signal}"
        if self.kind == "timeout":
            return f"does not answer within {self.seconds:g} s"
        if self.kind == "memory":
            return "runs over its memory cap"
        if self.kind == "unknown":
            return f"cannot tell: {self.message}"
        verb = "refuses to load" if self.phase == "load" else "fails when it runs"
        return f"{verb}: {self.error}: {' '.join(self.message.split())[:300]}"
