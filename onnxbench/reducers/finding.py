"""What the documents of a bundle are made from: the report, the reproducer, and the original's graph in a few boxes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from onnxbench.core.graph import GraphView
from onnxbench.core.model import Model
from onnxbench.core.outline import Outline, outline
from onnxbench.core.values import Value
from onnxbench.reducers.engine import Engine
from onnxbench.reducers.result import Culprit, Reduction


@dataclass(frozen=True, slots=True)
class Finding:
    """What a document tells of.

    Attributes:
        report: all that was found.
        model: the reproducer.
        feeds: a value for each of its inputs.
        outline: the original's graph with the culprits marked, None if it is not to be shown.
    """

    report: Reduction
    model: Model
    feeds: Mapping[str, Value]
    outline: Outline | None = None


def drawn(original: Model, culprits: Sequence[Culprit], engine: Engine) -> Outline:
    """The original's graph, or the one that was searched if the culprits lay in a function or a body."""
    view = GraphView(original.proto, original.proto.graph)
    made = [(culprit, view.producer.get(culprit.output)) for culprit in culprits]
    marked = {node.index for culprit, node in made if node is not None and node.proto.op_type == culprit.operator}
    return outline(view, marked) if marked else outline(engine.view, engine.chosen)
