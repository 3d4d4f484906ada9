"""What a conversion would do to each node, and how far down and up each node can go; nothing is written or run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any, Literal

from onnx import FunctionProto, GraphProto, NodeProto

from onnxbench.converters import header, schemas
from onnxbench.converters.about import as_graph, chosen
from onnxbench.converters.engine import Engine, is_experiment
from onnxbench.converters.facts import Facts
from onnxbench.converters.names import label_of
from onnxbench.converters.options import ConvertOptions
from onnxbench.converters.reach import reaches
from onnxbench.converters.run import converted
from onnxbench.converters.storage import Storage
from onnxbench.core.graph import plain_domain
from onnxbench.core.model import Model
from onnxbench.core.slimming import slim


@dataclass(frozen=True, slots=True)
class Row:
    """One node.

    Attributes:
        node: its label.
        name: its own name; empty if it has none.
        output: the first value that it makes; nodes without a name are found by it.
        op: its operator.
        domain: of the operator; "" is ai.onnx.
        where: the body or function that it stands in; empty for the main graph.
        graph: number of that among all graphs of the model.
        index: its place among the nodes there.
        action: what becomes of it.
        steps: those in which it takes another form.
        reason: why it is refused.
        result: operators of what takes its place.
        lowest, highest: opsets of its domain that it can be taken to, as far as is known; None of a domain that is not
            converted.
    """

    node: str
    name: str
    output: str
    op: str
    domain: str
    where: str
    graph: int
    index: int
    action: Literal["unchanged", "rewritten", "refused"] = "unchanged"
    steps: tuple[str, ...] = ()
    reason: str = ""
    result: tuple[str, ...] = ()
    lowest: int | None = None
    highest: int | None = None

    def to_dict(self) -> dict[str, Any]:
        found = {name: value for name, value in asdict(self).items() if name != "graph"}
        return {**found, "domain": self.domain or "ai.onnx", "steps": list(self.steps), "result": list(self.result)}


@dataclass(slots=True)
class Plan:
    """What a conversion would do.

    Attributes:
        model: label of the model.
        before, after: opset version by domain.
        ir_before, ir_after: IR versions; after is None if a node is refused.
        rows: every node, in order, bodies before the node that holds them.
        asked: those that are asked about; all, if nobody asks about some.
        notes: what else a reader should know.
    """

    model: str
    before: Mapping[str, int]
    after: Mapping[str, int]
    ir_before: int = 0
    ir_after: int | None = None
    rows: list[Row] = field(default_factory=list)
    asked: list[Row] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def exit_code(self) -> int:
        return 1 if self.refused else 0

    @property
    def refused(self) -> list[Row]:
        """Those that are asked about and cannot be converted."""
        return [row for row in self.asked if row.action == "refused"]

    @property
    def lowest(self) -> int | None:
        """The lowest opset of ai.onnx that the whole model can be taken to."""
        return self._lowest("")

    @property
    def highest(self) -> int | None:
        """The highest opset of ai.onnx that the whole model can be taken to."""
        return self._highest("")

    @property
    def furthest(self) -> dict[str, int]:
        """As `reach.furthest` finds it: a domain that cannot move does not keep the others from moving."""
        found = {}
        # Calls of functions that have the name of an operator: refused wherever they go.
        fixed = {row.domain for row in self.rows if row.action == "refused" and row.lowest is None}
        for name, target in self.after.items():
            domain, start = plain_domain(name), self.before.get(name, target)
            if domain in fixed:
                continue
            falls = target < start
            nearest = self._lowest(domain) if falls else self._highest(domain)
            nearest = target if nearest is None else max(nearest, target) if falls else min(nearest, target)
            if nearest < start if falls else nearest > start:
                found[name] = nearest
        return found

    def to_dict(self) -> dict[str, Any]:
        return {
            "schema": "onnxbench.convert-plan/1",
            "model": self.model,
            "before": dict(self.before),
            "after": dict(self.after),
            "ir_before": self.ir_before,
            "ir_after": self.ir_after,
            "lowest": self.lowest,
            "highest": self.highest,
            "nodes": [row.to_dict() for row in self.asked],
            "notes": self.notes,
        }

    def _lowest(self, domain: str) -> int | None:
        return max((row.lowest for row in self.rows if row.lowest is not None and row.domain == domain), default=None)

    def _highest(self, domain: str) -> int | None:
        return min((row.highest for row in self.rows if row.highest is not None and row.domain == domain), default=None)


def plan_model(model: Model, options: ConvertOptions, about: Sequence[str] = ()) -> Plan:
    """What `convert_model` would do with the same options.

    Args:
        model: the model; not changed.
        options: what is asked of the conversion.
        about: selections of nodes that are asked about, in bodies and functions too; all if there are none.

    Raises:
        ModelError: OB305, and UsageError: OB201, as `convert_model` does.
        NameNotFound: OB303 if a selection selects no node anywhere.
        UsageError: OB204 for a selection that cannot be read.
    """
    header.refuse_unknown(options.targets)
    header.refuse_unheard(options)
    header.refuse_unclear(model)
    source, engine, notes = converted(slim(model), options, partial(_Planner, about=bool(about)))
    before = header.opsets_of(source.proto)
    after = {
        **before,
        **{d: options.end(d, before.get(d, v)) for d, v in options.targets.items() if d in before or not d},
    }
    plan = Plan(model.label, header.spelled(before), header.spelled(after), source.proto.ir_version, rows=engine.rows)
    plan.notes = notes
    if not engine.refusals:
        header.stamp(source.proto, engine.result, options)
        plan.ir_after = engine.result.ir_version
        plan.notes = [*notes, *header.notes(plan.before, engine.result)]
    plan.asked = chosen(source.proto, plan.rows, engine.graphs, about) if about else plan.rows
    return plan


@dataclass
class _Planner(Engine):
    """An engine that notes what becomes of each node.

    Attributes:
        about: whether the graphs are kept.
        rows: of every node.
        graphs: copies of the main graph, of each body and each function, as they stand.
    """

    about: bool = False
    rows: list[Row] = field(default_factory=list)
    graphs: list[GraphProto] = field(default_factory=list)
    _around: list[int] = field(default_factory=list)  # numbers of the graphs that the node at hand stands in

    def _holder(
        self,
        nodes: Sequence[NodeProto],
        holder: GraphProto | FunctionProto,
        facts: Facts,
        where: str,
        opsets: dict[str, int],
    ) -> None:
        self._around.append(len(self.graphs))
        self.graphs.append(as_graph(holder) if self.about else GraphProto())
        super()._holder(nodes, holder, facts, where, opsets)
        self._around.pop()

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
        output, domain = next(iter(node.output), ""), plain_domain(node.domain)
        row = Row(label_of(node), node.name, output, node.op_type, domain, where, self._around[-1], index)
        row = replace(row, lowest=lowest, highest=highest)
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
        if schemas.schema(domain, node.op_type, start) is None and not is_experiment(domain, node.op_type, start):
            return start, start
        low, high = 1, start
        while low < high:  # the lowest that it can reach, taking for granted that everything between can be reached too
            middle = (low + high) // 2
            if reaches(self, node, start, middle, index, facts):
                high = middle
            else:
                low = middle + 1
        lowest = high
        low, high = start, schemas.newest(domain)
        while low < high:
            middle = (low + high + 1) // 2
            if reaches(self, node, start, middle, index, facts):
                low = middle
            else:
                high = middle - 1
        highest = low
        return lowest, highest
