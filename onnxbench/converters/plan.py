"""What a conversion would do to each node, and how far down and up each node can go; nothing is written or run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from onnx import ModelProto, NodeProto

from onnxbench.converters import header, schemas
from onnxbench.converters.engine import Engine
from onnxbench.converters.facts import Facts
from onnxbench.converters.names import label_of
from onnxbench.converters.options import ConvertOptions
from onnxbench.converters.site import Refused, Storage
from onnxbench.core.graph import plain_domain
from onnxbench.core.model import Model
from onnxbench.core.slimming import slim


@dataclass(frozen=True, slots=True)
class Row:
    """One node.

    Attributes:
        node: its label.
        op: its operator.
        where: the body or function that it stands in; empty for the main graph.
        action: what becomes of it.
        steps: those in which it takes another form.
        reason: why it is refused.
        result: operators of what takes its place.
        lowest, highest: opsets of its domain that it can be taken to, as far as is known; None of a domain that is not
            converted.
    """

    node: str
    op: str
    where: str
    action: Literal["unchanged", "rewritten", "refused"]
    steps: tuple[str, ...] = ()
    reason: str = ""
    result: tuple[str, ...] = ()
    lowest: int | None = None
    highest: int | None = None

    def to_dict(self) -> dict[str, Any]:
        names = ("node", "op", "where", "action", "reason", "lowest", "highest")
        return {**{name: getattr(self, name) for name in names}, "steps": list(self.steps), "result": list(self.result)}


@dataclass(slots=True)
class Plan:
    """What a conversion would do.

    Attributes:
        model: label of the model.
        before, after: opset version by domain.
        rows: every node, in order, bodies before the node that holds them.
    """

    model: str
    before: Mapping[str, int]
    after: Mapping[str, int]
    rows: list[Row] = field(default_factory=list)

    @property
    def exit_code(self) -> int:
        return 1 if any(row.action == "refused" for row in self.rows) else 0

    @property
    def lowest(self) -> int | None:
        """The lowest opset of ai.onnx that the whole model can be taken to."""
        return max((row.lowest for row in self.rows if row.lowest is not None), default=None)

    @property
    def highest(self) -> int | None:
        """The highest opset of ai.onnx that the whole model can be taken to."""
        return min((row.highest for row in self.rows if row.highest is not None), default=None)

    def to_dict(self) -> dict[str, Any]:
        return {
            "schema": "onnxbench.convert-plan/1",
            "model": self.model,
            "before": dict(self.before),
            "after": dict(self.after),
            "lowest": self.lowest,
            "highest": self.highest,
            "nodes": [row.to_dict() for row in self.rows],
        }


def plan_model(model: Model, options: ConvertOptions) -> Plan:
    """What `convert_model` would do with the same options.

    Raises:
        ModelError: OB305, and UsageError: OB201, as `convert_model` does.
    """
    header.refuse_unknown(options.targets)
    header.refuse_unexpandable(options.expand)
    header.refuse_unclear(model)
    source = slim(model)
    result = ModelProto()
    result.CopyFrom(source.proto)
    engine = _Planner(source, result, options)
    engine.run()
    before = header.opsets_of(source.proto)
    after = {**before, **{d: v for d, v in options.targets.items() if d in before or not d}}
    return Plan(model.label, header.spelled(before), header.spelled(after), engine.rows)


@dataclass
class _Planner(Engine):
    """An engine that notes what becomes of each node."""

    rows: list[Row] = field(default_factory=list)

    def _node(
        self,
        node: NodeProto,
        copy: NodeProto,
        index: int,
        facts: Facts,
        storage: Storage,
        where: str,
        opsets: dict[str, int],
    ) -> list[NodeProto] | None:
        refusals, rewrites = len(self.refusals), len(self.rewrites)
        made = super()._node(node, copy, index, facts, storage, where, opsets)
        lowest, highest = self._range(node, index, facts, opsets)
        row = Row(label_of(node), node.op_type, where, "unchanged", lowest=lowest, highest=highest)
        if len(self.refusals) > refusals:
            refusal = self.refusals[-1]
            row = replace(row, action="refused", steps=(refusal.step,), reason=refusal.reason)
        elif len(self.rewrites) > rewrites:
            done = self.rewrites[-1]
            row = replace(row, action="rewritten", steps=done.steps, result=done.result)
        self.rows.append(row)
        return made

    def _range(
        self, node: NodeProto, index: int, facts: Facts, opsets: Mapping[str, int]
    ) -> tuple[int | None, int | None]:
        domain = plain_domain(node.domain)
        start = opsets.get(domain)
        if start is None or domain not in self.options.targets or self.is_call(node):
            return None, None
        if schemas.schema(domain, node.op_type, start) is None:
            return start, start
        lowest, highest = start, start
        low, high = 1, start
        while low < high:  # the lowest that it can reach, taking for granted that everything between can be reached too
            middle = (low + high) // 2
            if self._reaches(node, start, middle, index, facts):
                high = middle
            else:
                low = middle + 1
        lowest = high
        low, high = start, schemas.newest(domain)
        while low < high:
            middle = (low + high + 1) // 2
            if self._reaches(node, start, middle, index, facts):
                low = middle
            else:
                high = middle - 1
        highest = low
        return lowest, highest

    def _reaches(self, node: NodeProto, start: int, end: int, index: int, facts: Facts) -> bool:
        copy = NodeProto()
        copy.CopyFrom(node)
        try:
            self.walk(copy, start, end, facts, Storage(True, self.names), index)
        except Refused:
            return False
        return True
