"""Look at a model: what is in it, what it costs, what is wrong with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, ParamSpec, TypeVar

from onnxbench import isolate
from onnxbench.core import check, shapes
from onnxbench.core.graph import GraphView
from onnxbench.core.model import Model
from onnxbench.core.shapes import Shapes
from onnxbench.core.symbolic import Size
from onnxbench.errors import ModelError
from onnxbench.inspecting import costs as costing
from onnxbench.inspecting.blocks import blocks
from onnxbench.inspecting.header import header
from onnxbench.inspecting.inspection import Cost, Inspection, NodeRow, Values, as_text, shown
from onnxbench.inspecting.lighten import lighten
from onnxbench.inspecting.made_up import made_up
from onnxbench.inspecting.operators import operators
from onnxbench.inspecting.problems import Facts, find_problems
from onnxbench.inspecting.rules.graph import is_typed
from onnxbench.inspecting.rules.validity import tensor_faults
from onnxbench.inspecting.structure import dead_nodes, label, structure
from onnxbench.inspecting.tensors import tensors_of
from onnxbench.runtimes.base import Limits

_P = ParamSpec("_P")
_T = TypeVar("_T")


def inspect(
    model: Model,
    *,
    dims: Mapping[str, int] | None = None,
    input_shapes: Mapping[str, Sequence[int]] | None = None,
    depth: int = 2,
    timeout: float | None = 20.0,
    memory: int | None = None,
    fail_on: Sequence[str] = (),
) -> Inspection:
    """Everything about one model.

    No external weights are read, and embedded ones are let go of: afterwards `model.proto` has lost the payload of its large
    tensors. Broken models are shown as far as they parse; their faults are among the problems.

    Args:
        model: as loaded; not to be used for its weights afterwards.
        dims: numbers for symbols.
        input_shapes: shapes for inputs.
        depth: levels of the block view.
        timeout: seconds for shape inference, the checker and a question to ONNX Runtime, each.
        memory: their cap in bytes.
        fail_on: problem codes that make the exit code 1.
    """
    with _Asked(model, dims or {}, input_shapes or {}, timeout, memory) as asked:
        view = GraphView(model.proto, model.proto.graph)
        stored = tensors_of(model, view)  # while the weights are there: equal ones are told by their bytes
        faults = tensor_faults(model)
        head, used, dead = header(model, view), operators(view), dead_nodes(view)
        known = asked.shapes.result()
        lighten(model.proto)
        checked = asked.in_background(check.fault, model, timeout=timeout, memory=memory)
        cost = _costs(view, known)
        complaint = checked.result()
    facts = Facts(model, view, known, used, stored, faults, dead, complaint, known.note, Limits(timeout, memory))
    return Inspection(
        model=model.label,
        path=str(model.path) if model.path is not None else None,
        header=head,
        operators=used,
        cost=_shown(cost),
        made_up=made_up(model.proto, known, _sizes(cost)),
        values=_values(view, known),
        tensors=stored,
        structure=structure(view, known),
        blocks=blocks(view, cost, depth),
        dead_nodes=len(dead),
        problems=find_problems(facts),
        fail_on=tuple(fail_on),
    )


class _Asked:
    """Shape inference and the checker, asked in the background, for they run in another process."""

    def __init__(
        self,
        model: Model,
        dims: Mapping[str, int],
        input_shapes: Mapping[str, Sequence[int]],
        timeout: float | None,
        memory: int | None,
    ) -> None:
        self._pool = ThreadPoolExecutor(1)
        self._answers: list[Future[Any]] = []
        self.shapes = self.in_background(
            shapes.propagate, model, dims=dims, shapes=input_shapes, timeout=timeout, memory=memory
        )

    def in_background(self, function: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> Future[_T]:
        answer = self._pool.submit(function, *args, **kwargs)
        self._answers.append(answer)
        return answer

    def __enter__(self) -> _Asked:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None and not all(
            answer.done() for answer in self._answers
        ):  # Ctrl-C: the thread waits for a process that may take long yet
            isolate.shut_down()
        self._pool.shutdown(cancel_futures=True)


def _costs(view: GraphView, known: Shapes) -> costing.Costs:
    try:
        return costing.costs(view, known)
    except ModelError:  # a circle, or a function that reaches itself: a problem, and there is no order to run in
        nodes = [costing.NodeCost(node, None, None) for node in view.nodes]
        return costing.Costs(nodes, unknown=len(nodes), unsized=len(nodes))


def _shown(cost: costing.Costs) -> Cost:
    rows = [NodeRow(label(c.node.proto), c.node.proto.op_type, shown(c.macs), shown(c.live)) for c in cost.nodes]
    at = label(cost.peak_at.proto) if cost.peak_at is not None else ""
    return Cost(as_text(cost.macs), cost.unknown, as_text(cost.peak), at, cost.unsized, rows)


def _sizes(cost: costing.Costs) -> Iterator[Size | None]:
    """Every size that the report shows."""
    yield from (cost.macs, cost.peak)
    for node in cost.nodes:
        yield from (node.macs, node.live)


def _values(view: GraphView, known: Shapes) -> Values:
    names = [name for node in view.nodes for name in node.outputs if name]
    ranked = [dims for name in names if (dims := known.dims(name)) is not None]
    shaped = sum(all(dim is not None for dim in dims) for dims in ranked)
    return Values(len(names), sum(is_typed(known, name) for name in names), len(ranked), shaped)
