"""The way back from a reproducer's names to those of the original, and reports that do without the latter."""

from __future__ import annotations

import dataclasses
import json

from onnxbench.core.model import Model
from onnxbench.reducers.result import Culprit, Reduction

SCHEMA = "onnxbench.names/1"


def names_map(report: Reduction, model: Model) -> str:
    """The text of names.json: the reproducer's nodes, and what each is called in the original.

    A node without a name goes by its first output.
    """
    rows = [
        {"node": _name(node), "original": culprit.name, "operator": culprit.operator, "output": culprit.output}
        for node, culprit in zip(_ours(model), report.culprits, strict=False)
    ]
    return json.dumps({"schema": SCHEMA, "model": report.model, "nodes": rows}, indent=1) + "\n"


def anonymous(report: Reduction, model: Model) -> Reduction:
    """The report with the reproducer's names in the place of the original's, and without places on this machine."""
    culprits = [
        dataclasses.replace(culprit, name=node.name, operator=node.operator, output=node.output)
        for node, culprit in zip(_ours(model), report.culprits, strict=False)
    ]
    return dataclasses.replace(
        report, model="model.onnx", bundle=None, output=None, culprits=culprits, suspects=[], by_products={}
    )


def _ours(model: Model) -> list[Culprit]:
    return [Culprit(node.name, node.op_type, next(iter(node.output), "")) for node in model.proto.graph.node]


def _name(node: Culprit) -> str:
    return node.name or node.output
