"""What a fold did: counts, each removed node with its reason, and how the result was verified."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Removal:
    """Something that went, or changed.

    Attributes:
        kind: "node", "rewritten" (a node that stays, with other inputs), "initializer", "input" or "function".
        name: its label.
        op: the operator, of a node.
        where: the body or function that it stood in; empty for the main graph.
        rule: the pass that proposed it.
        reason: why the model computes the same without it, in a few words.
    """

    kind: str
    name: str
    op: str
    where: str
    rule: str
    reason: str

    def to_dict(self) -> dict[str, str]:
        return {
            "kind": self.kind,
            "name": self.name,
            "op": self.op,
            "where": self.where,
            "rule": self.rule,
            "reason": self.reason,
        }


@dataclass(slots=True)
class Folding:
    """The report of one fold.

    Attributes:
        model: label of the source.
        nodes_before, nodes_after: nodes of the main graph; `all_` adds those of bodies and functions.
        bytes_before, bytes_after: with weights, external ones too.
        removals: what went, in order.
        state: "verified", "certified" (single pieces only), "unverified", or "unchanged".
        reason: why it is no more than that.
        runs: whole-model runs that were compared.
        certificates: pieces that were compared.
        notes: what else a reader should know.
        output: file that was written, if one was.
    """

    model: str
    nodes_before: int = 0
    nodes_after: int = 0
    all_nodes_before: int = 0
    all_nodes_after: int = 0
    bytes_before: int = 0
    bytes_after: int = 0
    removals: list[Removal] = field(default_factory=list)
    state: str = "unverified"
    reason: str = ""
    runs: int = 0
    certificates: int = 0
    notes: list[str] = field(default_factory=list)
    output: str = ""
    exit_code: int = 0

    def by_rule(self) -> dict[str, int]:
        """How many nodes and tensors went by each pass."""
        return dict(Counter(removal.rule for removal in self.removals))

    def to_dict(self) -> dict[str, Any]:
        counts = ("nodes_before", "nodes_after", "all_nodes_before", "all_nodes_after", "bytes_before", "bytes_after")
        return {
            "schema": "onnxbench.fold/1",
            "model": self.model,
            **{name: getattr(self, name) for name in counts},
            "by_rule": self.by_rule(),
            "removals": [removal.to_dict() for removal in self.removals],
            "verification": {
                "state": self.state,
                "reason": self.reason,
                "runs": self.runs,
                "certificates": self.certificates,
            },
            "notes": self.notes,
            "output": self.output,
        }
