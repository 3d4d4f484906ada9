"""Ways around a failure, tried on the whole model: what passes is handed back, verified.

A rewrite is a function of a model and the places at fault, registered with a sentence; adding one is adding a file here. It
gives a model that computes the same in another way, or None where it does not apply.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from onnx import FunctionProto, GraphProto, ModelProto, NodeProto, TypeProto

from onnxbench.core.attributes import subgraphs


@dataclass(frozen=True, slots=True)
class Spot:
    """A node at fault, and the graph or function that holds it."""

    holder: GraphProto | FunctionProto
    node: NodeProto


#: Changes its model in place, which is a copy; False if there is nothing to change.
Change = Callable[[ModelProto, Sequence[Spot], Mapping[str, TypeProto]], bool]


@dataclass(frozen=True, slots=True)
class Rewrite:
    """A registered way to rewrite a model."""

    name: str
    sentence: str
    change: Change


_REWRITES: list[Rewrite] = []


def rewrite(name: str, sentence: str) -> Callable[[Change], Change]:
    """Register a rewrite; `sentence` says what was done to the model."""

    def register(change: Change) -> Change:
        _REWRITES.append(Rewrite(name, sentence, change))
        return change

    return register


@cache
def rewrites() -> tuple[Rewrite, ...]:
    """All of them, by name."""
    for module in pkgutil.iter_modules(__path__):
        if not module.name.startswith("_"):
            importlib.import_module(f"{__name__}.{module.name}")
    return tuple(sorted(_REWRITES, key=lambda entry: entry.name))


def rewritten(
    model: ModelProto, entry: Rewrite, outputs: Collection[str], types: Mapping[str, TypeProto]
) -> ModelProto | None:
    """A copy of a model, rewritten where nodes make the given values; None if that changes nothing."""
    copy = ModelProto()
    copy.CopyFrom(model)
    spots = [spot for spot in _spots(copy) if any(name in outputs for name in spot.node.output if name)]
    return copy if spots and entry.change(copy, spots, types) else None


def _spots(model: ModelProto) -> list[Spot]:
    found: list[Spot] = []
    pending: list[GraphProto | FunctionProto] = [model.graph, *model.functions]
    while pending:
        holder = pending.pop()
        for node in holder.node:
            found.append(Spot(holder, node))
            pending += [body for _, body in subgraphs(node)]
    return found


def free_name(holder: GraphProto | FunctionProto, stem: str) -> str:
    """A value name that nothing in a graph has."""
    taken = {name for node in holder.node for name in (*node.input, *node.output)}
    if isinstance(holder, GraphProto):
        taken |= {value.name for value in (*holder.input, *holder.output, *holder.value_info)}
        taken |= {tensor.name for tensor in holder.initializer}
    number, name = 2, stem
    while name in taken:
        name, number = f"{stem}_{number}", number + 1
    return name


def insert(holder: GraphProto | FunctionProto, beside: NodeProto, node: NodeProto, *, after: bool = False) -> None:
    """Put a node before (or after) another of the same graph."""
    place = next(i for i, other in enumerate(holder.node) if other.output == beside.output)
    holder.node.insert(place + after, node)
