"""What a conversion did: each rewritten node, each refused one, and how the result was verified."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

State = Literal["verified", "certified", "unverified", "unchanged", "refused", "mismatch"]
#: What the command ends with, by state.
EXIT_CODES: Mapping[str, int] = {"refused": 1, "mismatch": 5}


@dataclass(frozen=True, slots=True)
class Rewrite:
    """A node that has another form now.

    Attributes:
        node: its label.
        op: its operator.
        where: the body or function that it stands in; empty for the main graph.
        steps: each step that it took, like "Softmax 11 to 13", in order.
        result: operators of the new nodes, in order.
    """

    node: str
    op: str
    where: str
    steps: tuple[str, ...]
    result: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        return {
            "node": self.node,
            "op": self.op,
            "where": self.where,
            "steps": list(self.steps),
            "result": list(self.result),
        }


@dataclass(frozen=True, slots=True)
class Refusal:
    """A node that has no form in the target opset, or none that is known to mean the same.

    Attributes:
        node: its label.
        op: its operator.
        where: the body or function that it stands in; empty for the main graph.
        step: the step that it cannot take, like "Softmax 13 to 12".
        reason: why, in a sentence without a full stop.
    """

    node: str
    op: str
    where: str
    step: str
    reason: str

    def to_dict(self) -> dict[str, str]:
        return {"node": self.node, "op": self.op, "where": self.where, "step": self.step, "reason": self.reason}


@dataclass(frozen=True, slots=True)
class Certificate:
    """A rewritten node, old form against new form, alone.

    Attributes:
        node: label of the node.
        op: its operator.
        where: the body or function that it stands in.
        state: "same", "differs", or "untold" (no runtime ran the old form on what was made up for it).
        runs: inputs on which both gave the same.
        reason: why it is untold, or how they differ.
        old, new: both forms as models, in ONNX text, to run again.
        like: label of the node whose forms are the same, if another has them: then they stand there.
        by_body: whether the new form is the body that the specification gives for the operator.
    """

    node: str
    op: str
    where: str
    state: Literal["same", "differs", "untold"]
    runs: int = 0
    reason: str = ""
    old: str = ""
    new: str = ""
    like: str = ""
    by_body: bool = False

    def to_dict(self) -> dict[str, Any]:
        names = ("node", "op", "where", "state", "runs", "reason", "old", "new", "like", "by_body")
        return {name: getattr(self, name) for name in names}


@dataclass(slots=True)
class Conversion:
    """The report of one conversion.

    Attributes:
        model: label of the source.
        before, after: opset version by domain ("ai.onnx" is spelled out).
        ir_before, ir_after: IR versions.
        nodes: nodes that were looked at, those of bodies and functions included.
        rewrites: nodes that changed, in order.
        refusals: nodes that could not; nothing is written if there is one.
        certificates: of rewritten nodes.
        state: "verified" (whole models gave the same), "certified" (rewritten nodes alone did), "unverified",
            "unchanged" (nothing had to be done), "refused" or "mismatch" (nothing is written).
        reason: why it is no more than that.
        furthest: of a refused model the opsets nearest to the targets that it can be taken to, by domain, if there are any.
        runs: whole-model runs that were compared.
        notes: what else a reader should know.
        output: file that was written, if one was.
        seconds: wall time.
    """

    model: str
    before: dict[str, int] = field(default_factory=dict)
    after: dict[str, int] = field(default_factory=dict)
    ir_before: int = 0
    ir_after: int = 0
    nodes: int = 0
    rewrites: list[Rewrite] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)
    certificates: list[Certificate] = field(default_factory=list)
    state: State = "unverified"
    reason: str = ""
    furthest: dict[str, int] = field(default_factory=dict)
    runs: int = 0
    notes: list[str] = field(default_factory=list)
    output: str = ""
    seconds: float = 0.0

    @property
    def exit_code(self) -> int:
        return EXIT_CODES.get(self.state, 0)

    def by_step(self) -> dict[str, int]:
        """How many nodes took each step."""
        return dict(Counter(step for rewrite in self.rewrites for step in rewrite.steps))

    def to_dict(self) -> dict[str, Any]:
        return {
            "schema": "onnxbench.convert/1",
            "model": self.model,
            "before": self.before,
            "after": self.after,
            "ir_before": self.ir_before,
            "ir_after": self.ir_after,
            "nodes": self.nodes,
            "by_step": self.by_step(),
            "rewrites": [entry.to_dict() for entry in self.rewrites],
            "refusals": [entry.to_dict() for entry in self.refusals],
            "furthest": self.furthest,
            "verification": {
                "state": self.state,
                "reason": self.reason,
                "runs": self.runs,
                "certificates": [entry.to_dict() for entry in self.certificates],
            },
            "notes": self.notes,
            "output": self.output,
            "seconds": round(self.seconds, 3),
        }
