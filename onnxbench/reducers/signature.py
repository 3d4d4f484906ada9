"""What makes two failures the same failure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from typing import Any

from onnx import GraphProto, ModelProto

from onnxbench.core.attributes import subgraphs
from onnxbench.core.compare import Difference
from onnxbench.reducers.normalise import normalise
from onnxbench.runtimes.outcome import Outcome

#: The most telling kind of difference first: a wrong type makes every number wrong too.
_KINDS = ("presence", "dtype", "shape", "nonfinite", "values")


@dataclass(frozen=True, slots=True)
class Signature:
    """The failure that a reduction must keep.

    Attributes:
        kind: "numbers", "error", "crash", "timeout", "memory", "unsupported" or "slow".
        detail: the kind of difference, the signal, or the exception's class.
        phase: "load" or "run", for errors.
        message: the message with placeholders for what differs between candidates.
    """

    kind: str
    detail: str = ""
    phase: str = ""
    message: str = ""

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "detail": self.detail, "phase": self.phase, "message": self.message}

    def sentence(self) -> str:
        """The failure, in a line."""
        match self.kind:
            case "numbers":
                return {
                    "presence": "outputs are missing, or are there that should not be",
                    "values": "wrong numbers",
                    "nonfinite": "NaN or Inf where there should be none (or the reverse)",
                }.get(self.detail, f"wrong {self.detail}")
            case "crash":
                return f"the process dies with {self.detail}"
            case "timeout":
                return "no answer in time"
            case "slow":
                return "slower than the trusted runtime by more than was allowed"
            case "memory":
                return "memory runs over"
            case "error" if self.phase == "check":
                ending = self.detail.replace("exit_", "exit code ")
                return f"the check fails ({': '.join(filter(None, (ending, self.message)))})"
            case _:
                return f"{self.phase} error, {self.detail}: {self.message}"


def of_outcome(outcome: Outcome, names: Set[str]) -> Signature:
    """The signature of a run that failed by itself; `names` are those that its message may hold."""
    if outcome.kind in ("error", "unsupported"):
        message = normalise(outcome.message, names)
        return Signature(outcome.kind, outcome.error, outcome.phase, message)
    return Signature(outcome.kind, outcome.signal)


def of_differences(differences: Sequence[Difference]) -> Signature:
    """The signature of outputs that are not what they should be."""
    return of_kinds({difference.kind for difference in differences})


def of_kinds(kinds: Set[str]) -> Signature:
    """The signature of outputs that differ in these ways from what they should be."""
    return Signature("numbers", min(kinds, key=_KINDS.index))


def names_in(proto: ModelProto) -> set[str]:
    """Every name that a message about this model may hold: nodes, values, functions' and bodies' too."""
    found: set[str] = set()
    for graph in _graphs(proto.graph):
        found.update(value.name for value in (*graph.input, *graph.output))
        found.update(tensor.name for tensor in graph.initializer)
        _add_nodes(found, graph.node)
    for function in proto.functions:
        _add_nodes(found, function.node)
    found.discard("")
    return found


def _add_nodes(found: set[str], nodes: Any) -> None:
    for node in nodes:
        found.add(node.name)
        found.update(node.input)
        found.update(node.output)


def _graphs(graph: GraphProto) -> Iterator[GraphProto]:
    yield graph
    for node in graph.node:
        for _, body in subgraphs(node):
            yield from _graphs(body)
