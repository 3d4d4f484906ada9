"""What each step of an operator takes that the schemas do not prove; one file per operator family.

An adapter is found by domain, operator and both versions; 0 stands for "below the introduction".
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from functools import cache

from onnxbench.converters.site import Site

Adapter = Callable[[Site], None]
Key = tuple[str, str, int, int]

_adapters: dict[Key, Adapter] = {}
_impossible: dict[Key, str] = {}
_experiments: dict[str, tuple[int, Adapter]] = {}


def adapter(op: str, old: int, new: int, domain: str = "") -> Callable[[Adapter], Adapter]:
    """Register a function for the step of an operator from one version to another.

    The function looks at a `Site` and puts nodes that are valid at `site.opset` in its place, or refuses.

    Args:
        op: the operator.
        old: the version where the node stands.
        new: the version before or after it; 0 for below the introduction.
        domain: "" is ai.onnx.
    """

    def register(function: Adapter) -> Adapter:
        key = (domain, op, old, new)
        assert key not in _adapters, f"two adapters for {key}"
        _adapters[key] = function
        return function

    return register


def experiment(op: str, opset: int) -> Callable[[Adapter], Adapter]:
    """Register a function that puts nodes of an opset in the place of an operator that ai.onnx had as an experiment."""

    def register(function: Adapter) -> Adapter:
        _experiments[op] = opset, function
        return function

    return register


def experiment_of(op: str) -> tuple[int, Adapter] | None:
    """The opset that an experiment's successors are valid at, and what makes them; None if it was none."""
    _load()
    return _experiments.get(op)


def impossible(op: str, old: int, new: int, reason: str, domain: str = "") -> None:
    """List a step that no node can take, and why."""
    _impossible[domain, op, old, new] = reason


def adapter_of(key: Key) -> Adapter | None:
    """The adapter of a step, if it has one."""
    _load()
    return _adapters.get(key)


def registered() -> list[Key]:
    """Every step that has an adapter or is listed as impossible."""
    _load()
    return [*_adapters, *_impossible]


def why_impossible(key: Key) -> str | None:
    """Why no node can take a step; None if some can."""
    _load()
    return _impossible.get(key)


@cache
def _load() -> None:
    for module in pkgutil.iter_modules(__path__):
        if not module.name.startswith("_"):
            importlib.import_module(f"{__name__}.{module.name}")
