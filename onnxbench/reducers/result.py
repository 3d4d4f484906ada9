"""What a reduction found, as data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from onnxbench.core.compare import Difference
from onnxbench.core.graph import Node
from onnxbench.core.scopes import scopes, source_line
from onnxbench.reducers.catalogue import Known
from onnxbench.reducers.course import Point
from onnxbench.reducers.releases import Release
from onnxbench.reducers.slowness import Race

SCHEMA = "onnxbench.reduce/1"

Status = Literal["minimal", "best", "localized", "proven", "not-reproduced"]


@dataclass(slots=True)
class Record:
    """What a shrinking pass achieved: candidates that were run, and how many of them were kept."""

    name: str
    tried: int = 0
    accepted: int = 0


@dataclass(slots=True)
class Culprit:
    """A node of the reproducer, as the original has it.

    Attributes:
        name: its own; may be empty.
        operator: without the domain.
        output, outputs: the first value that it makes, and all.
        scope: the modules that it lies in, outermost first, with a slash between them; "" if the exporter left none.
        line: the user's source line that it comes from, as "model.py:123"; "" if the exporter left none.
    """

    name: str
    operator: str
    output: str
    outputs: list[str] = field(default_factory=list)
    scope: str = ""
    line: str = ""

    @classmethod
    def of(cls, node: Node) -> Culprit:
        made = [name for name in node.outputs if name]
        scope, line = "/".join(scopes(node.proto)), source_line(node.proto)
        return cls(node.proto.name, node.proto.op_type, next(iter(made), ""), made, scope, line)


@dataclass(frozen=True, slots=True)
class Along:
    """How far a node is off, norm-wise: fed right values, and with all before it on the suspect.

    0 where it is right, None where that is no number or was not measured.
    """

    node: str
    operator: str
    isolated: float | None
    cumulative: float | None


@dataclass(frozen=True, slots=True)
class Passing:
    """A model that passes and differs little from the reproducer, in the bundle as passing.onnx.

    Attributes:
        differs: how it differs, as sentences.
        own_inputs: whether it is fed other values, those in passing.npz.
    """

    differs: Sequence[str]
    own_inputs: bool


@dataclass(frozen=True, slots=True)
class Slowness:
    """How slow the suspect was seen to be on the original and on the reproducer, None where a run failed."""

    original: Race | None
    reproducer: Race | None


@dataclass(slots=True)
class Workaround:
    """A way around that was seen to work on the whole model.

    Attributes:
        kind: "setting" of the suspect, or a rewritten "model".
        how: the runtime as one would type it, or what was done to the model.
        verified: whether its numbers were compared with right ones; else it only runs.
    """

    kind: Literal["setting", "model"]
    how: str
    verified: bool


@dataclass(slots=True)
class Suspect:
    """Nodes that are wrong by themselves, fed right values: how far the worst of their outputs is off.

    Attributes:
        nodes: one, or two that follow each other.
        isolated: the difference, as `Difference.to_dict()`.
        cumulative: the same when the nodes before them ran on the suspect too; None if that was not measured.
    """

    nodes: list[Culprit]
    isolated: dict[str, Any]
    cumulative: dict[str, Any] | None = None

    @classmethod
    def of(cls, nodes: Sequence[Node], isolated: Difference) -> Suspect:
        return cls([Culprit.of(node) for node in nodes], isolated.to_dict())


@dataclass(slots=True)
class Reduction:
    """The report of `reduce`.

    Attributes:
        model: label of the original.
        suspect, trusted: the runtimes, as typed; `versions` has their releases.
        status: "minimal" if no single node can go (each was tried), "best" if the search was stopped,
            "localized" and "proven" if no more was asked for.
        signature: the failure, as `Signature.to_dict()` with a sentence.
        message: what the runtime said of the reproducer, in its own words.
        judge: the trusted runtime that told what is right, where the suspect gave numbers.
        failed, runs: how often the original failed, of how many runs.
        nodes_before, nodes_after: nodes of the top graph; `all_nodes_*` add bodies and functions.
        bytes_before, bytes_after: of the model as a file, weights included.
        checks: candidates judged in the search for nodes; `shrink_checks` those of shrinking.
        curve: what was left, from the original on, each time that it became smaller.
        passes: what each shrinking pass achieved.
        culprits: the nodes that are left.
        differences: of the reproducer's outputs, for wrong numbers.
        slowness: how many times slower than the judge the suspect is, for slowness; None if the search was stopped.
        suspects: the nodes that are wrong by themselves, the worst first, for wrong numbers.
        along: the error along the network, for wrong numbers; of a long one some nodes.
        passing: a model that passes and differs little, if one was met and is in the bundle.
        lowest_failing: the suspect at the lowest optimization level that fails, as one would type it; "" if unknown.
        cured_by_disabling: optimizations of the suspect of which switching off any one makes the reproducer pass.
        releases: what the reproducer does on other releases of the suspect; `since` says which was the first to fail.
        known: reported failures that the reproducer looks like.
        workarounds: what was seen to work on the whole model; `workaround` is the rewritten model's file, if one was asked for.
        by_products: other failures that candidates showed, with their counts.
        notes: what the reader should know, as sentences.
        bundle: folder of the reproducer, if one was written.
        output: the model file, if one was asked for.
        confirmed: whether the bundle's repro.py failed again in a fresh process; None if it was not run.
        interrupted: the signal number that stopped the search, or 0.
    """

    model: str
    suspect: str
    trusted: list[str]
    status: Status
    versions: dict[str, str] = field(default_factory=dict)
    signature: dict[str, Any] = field(default_factory=dict)
    message: str = ""
    judge: str = ""
    failed: int = 0
    runs: int = 0
    nodes_before: int = 0
    nodes_after: int = 0
    all_nodes_before: int = 0
    all_nodes_after: int = 0
    bytes_before: int = 0
    bytes_after: int = 0
    checks: int = 0
    shrink_checks: int = 0
    seconds: float = 0.0
    curve: list[Point] = field(default_factory=list)
    passes: list[Record] = field(default_factory=list)
    culprits: list[Culprit] = field(default_factory=list)
    differences: Sequence[dict[str, Any]] = ()
    slowness: Slowness | None = None
    suspects: list[Suspect] = field(default_factory=list)
    along: list[Along] = field(default_factory=list)
    passing: Passing | None = None
    lowest_failing: str = ""
    cured_by_disabling: list[str] = field(default_factory=list)
    releases: list[Release] = field(default_factory=list)
    since: str = ""
    known: list[Known] = field(default_factory=list)
    workarounds: list[Workaround] = field(default_factory=list)
    workaround: str | None = None
    by_products: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    bundle: str | None = None
    output: str | None = None
    confirmed: bool | None = None
    interrupted: int = 0

    @property
    def exit_code(self) -> int:
        if self.interrupted:
            return 128 + self.interrupted
        return 1 if self.status == "not-reproduced" else 0

    def to_dict(self) -> dict[str, Any]:
        from dataclasses import asdict

        return {"schema": SCHEMA, **asdict(self)}
