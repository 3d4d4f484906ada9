"""Ways around a failure, tried on the whole model: what passes is handed back, verified.

A rewrite is a function of a model and the places at fault, registered with a sentence; a way is a function of all that is
known of the failure, which may propose several models. Adding one is adding a file here. What they give computes the same in
another way.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from onnx import FunctionProto, GraphProto, ModelProto, NodeProto, TypeProto

from onnxbench.core.attributes import subgraphs
from onnxbench.core.model import Model
from onnxbench.runtimes.base import Limits, Runtime


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


@dataclass(frozen=True, slots=True)
class Fault:
    """What is known of a failure.

    Attributes:
        model: the whole model, its weights out of the way.
        small: the nodes at fault, cut out of it.
        passes: whether `small` in another form does not fail.
        suspect: who fails.
        limits: of one run.
    """

    model: Model
    small: Model
    passes: Callable[[Model], bool]
    suspect: Runtime
    limits: Limits


#: Whole models that may pass, each with a sentence that says what was done.
Propose = Callable[[Fault], Iterator[tuple[str, Model]]]


@dataclass(frozen=True, slots=True)
class Way:
    """A registered way to another whole model.

    Attributes:
        name: what reports call it.
        propose: tells the models.
        first: whether it comes before the rewrites, since it adds nothing to the graph.
        by_command: whether its sentence is a command that gives the model, which is worth knowing if no file was asked for.
    """

    name: str
    propose: Propose
    first: bool = False
    by_command: bool = False


_REWRITES: list[Rewrite] = []
_WAYS: list[Way] = []


def rewrite(name: str, sentence: str) -> Callable[[Change], Change]:
    """Register a rewrite; `sentence` says what was done to the model."""

    def register(change: Change) -> Change:
        _REWRITES.append(Rewrite(name, sentence, change))
        return change

    return register


@cache
def rewrites() -> tuple[Rewrite, ...]:
    """All of them, by name."""
    _import_all()
    return tuple(sorted(_REWRITES, key=lambda entry: entry.name))


def way(name: str, *, first: bool = False, by_command: bool = False) -> Callable[[Propose], Propose]:
    """Register a way; the arguments are those of `Way`."""

    def register(propose: Propose) -> Propose:
        _WAYS.append(Way(name, propose, first, by_command))
        return propose

    return register


@cache
def ways() -> tuple[Way, ...]:
    """All of them, those that come before the rewrites first, then by name."""
    _import_all()
    return tuple(sorted(_WAYS, key=lambda entry: (not entry.first, entry.name)))


def _import_all() -> None:
    for module in pkgutil.iter_modules(__path__):
        if not module.name.startswith("_"):
            importlib.import_module(f"{__name__}.{module.name}")


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
