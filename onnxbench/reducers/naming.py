"""The way back from a reproducer's names to those of the original, and reports that do without the latter."""

from __future__ import annotations

import dataclasses
import json

from onnxbench.core.model import Model
from onnxbench.reducers.engine import Found
from onnxbench.reducers.result import Culprit, Reduction

SCHEMA = "onnxbench.names/1"


def names_map(label: str, found: Found) -> str:
    """The text of names.json: the reproducer's nodes, and what each is called in the original, which has the label.

    A node without a name goes by its first output.
    """
    theirs = {node.index: Culprit.of(node) for node in found.nodes}
    pairs = zip(_ours(found.piece.model), (theirs[place] for place in found.piece.origin), strict=True)
    rows = [
        {"node": _name(ours), "original": culprit.name, "operator": culprit.operator, "output": culprit.output}
        for ours, culprit in pairs
    ]
    return json.dumps({"schema": SCHEMA, "model": label, "nodes": rows}, indent=1) + "\n"


def anonymous(report: Reduction, model: Model) -> Reduction:
    """The report with the reproducer's names in the place of the original's, and without places on this machine."""
    return dataclasses.replace(
        report,
        model="model.onnx",
        bundle=None,
        output=None,
        workaround=None,
        culprits=_ours(model),
        suspects=[],
        along=[],
        by_products={},
    )


def _ours(model: Model) -> list[Culprit]:
    return [
        Culprit(node.name, node.op_type, next(iter(node.output), ""), list(node.output))
        for node in model.proto.graph.node
    ]


def _name(node: Culprit) -> str:
    return node.name or node.output
