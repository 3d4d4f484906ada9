"""What is to be extracted, and how."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from onnx import TypeProto

from onnxbench.errors import UsageError
from onnxbench.runtimes.base import Limits


@dataclass(frozen=True, slots=True)
class ExtractRequest:
    """Either ends and starts between which the piece is traced, or the nodes of a block.

    Attributes:
        to: selections where the piece ends: values, or nodes, whose outputs are meant.
        from_: selections where it starts: values, or nodes, whose inputs are meant.
        nodes: selections of nodes of a block.
        ops: operators of its nodes.
        scopes: names of blocks.
        around: nodes in the middle of a block, with what is within some `hops` of them.
        hops: how far that reaches.
        auto_inputs: whether inputs that the piece needs and nobody listed are added.
        value_types: types by name of value, for those that nobody else tells.
        weights_as_inputs: whether initializers become inputs.
        with_data: whether a run is recorded, for its inputs and outputs.
        limits: of each run; checks and inference share a third of its time.
    """

    to: Sequence[str] = ()
    from_: Sequence[str] = ()
    nodes: Sequence[str] = ()
    ops: Sequence[str] = ()
    scopes: Sequence[str] = ()
    around: Sequence[str] = ()
    hops: int = 1
    auto_inputs: bool = False
    value_types: Mapping[str, TypeProto] = field(default_factory=dict)
    weights_as_inputs: bool = False
    with_data: bool = False
    limits: Limits = field(default_factory=Limits)

    @property
    def is_block(self) -> bool:
        """Whether nodes are named, not ends."""
        return bool(self.nodes or self.ops or self.scopes or self.around)

    @property
    def inference_time(self) -> float | None:
        """Seconds for each inference or check."""
        return None if self.limits.timeout is None else max(1.0, self.limits.timeout / 3)

    def validate(self) -> None:
        """Raise OB201 if it is not said what to extract, or in two ways."""
        ends = bool(self.to or self.from_)
        if not ends and not self.is_block:
            hint = "--to VALUE [--from VALUE], or --node, --op, --scope, --around for a block"
            raise UsageError("OB201", "it is not said what to extract", hint=hint)
        if ends and self.is_block:
            both = "--from and --to trace a piece between values; --node, --op, --scope and --around name its nodes"
            raise UsageError("OB201", f"{both}: only one way can be used at once", hint="onnxbench extract --help")
