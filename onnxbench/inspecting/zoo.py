"""Many models at once: a row each, and totals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from onnxbench.core.model import load
from onnxbench.errors import BenchError
from onnxbench.inspecting.inspection import SCHEMA, Inspection


@dataclass(slots=True)
class Failure:
    """A file that holds no model that could be shown."""

    path: str
    error: BenchError

    @property
    def exit_code(self) -> int:
        return self.error.exit_code

    def to_dict(self) -> dict[str, Any]:
        return {"path": self.path, "error": self.error.to_dict()}


@dataclass(slots=True)
class Zoo:
    """The reports on several models, and what they have in common."""

    models: list[Inspection | Failure] = field(default_factory=list)

    @property
    def shown(self) -> list[Inspection]:
        return [model for model in self.models if isinstance(model, Inspection)]

    def totals(self) -> dict[str, dict[str, int]]:
        """Models by opset and by producer, nodes by operator; the most frequent first."""
        opsets, producers, operators = Counter[str](), Counter[str](), Counter[str]()
        for model in self.shown:
            opsets.update(f"{domain or 'ai.onnx'} {version}" for domain, version in model.header.opsets)
            producers[model.header.producer or "unknown"] += 1
            for o in model.operators:
                operators[f"{o.domain}::{o.name}" if o.domain else o.name] += o.count + o.in_bodies + o.in_functions
        return {
            "opsets": dict(opsets.most_common()),
            "producers": dict(producers.most_common()),
            "operators": dict(operators.most_common()),
        }

    @property
    def exit_code(self) -> int:
        return max((model.exit_code for model in self.models), default=0)

    def to_dict(self) -> dict[str, Any]:
        rows = []
        for model in self.models:
            row = model.to_dict()
            row.pop("schema", None)
            rows.append(row)
        return {"schema": SCHEMA, "models": rows, "totals": self.totals()}


def inspect_all(
    paths: Sequence[str], inspect: Callable[[Any], Inspection], progress: Callable[[int, int, str], None]
) -> Zoo:
    """Inspect one model after another; one that cannot be shown does not stop the rest."""
    zoo = Zoo()
    for number, path in enumerate(paths):
        progress(number, len(paths), path)
        zoo.models.append(_one(path, inspect))
    return zoo


def _one(path: str, inspect: Callable[[Any], Inspection]) -> Inspection | Failure:
    try:
        return inspect(load(path))
    except BenchError as error:
        return Failure(path, error)


def rows(zoo: Zoo) -> Iterator[tuple[str, ...]]:
    """Cells of the table, a row a model."""
    for model in zoo.models:
        if isinstance(model, Failure):
            yield model.path, "", "", "", "", "", f"{model.error.code} {model.error.message}"
            continue
        head = model.header
        opset = next((str(v) for d, v in head.opsets if d in ("", "ai.onnx")), "-")
        worst = ", ".join(dict.fromkeys(p.code for p in model.problems if p.severity != "info"))
        path = model.path or model.model
        yield path, opset, str(head.all_nodes), str(head.parameters), str(model.cost.macs), head.producer, worst
