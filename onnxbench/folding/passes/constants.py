"""Compute what is the same in every run, and store the results.

Results are only stored where somebody else reads them, so that large values on the way cost nothing. A value stays computed if
it is too large, if it would cost more bytes than the constants that it is made of are worth, or if it is an operator's whole
point to make much of little (Tile, Expand, ConstantOfShape, Range).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod

import numpy as np

from onnxbench.core.graph import Node
from onnxbench.core.tensors import element_bits
from onnxbench.core.values import Value, element_type
from onnxbench.folding import stored
from onnxbench.folding.changes import Changes
from onnxbench.folding.evaluate import Evaluator
from onnxbench.folding.growth import PER_NODE, TIMES, leaf_bytes, too_costly
from onnxbench.folding.passes import fold_pass
from onnxbench.folding.scope import Scope, holder, is_constant, is_default_domain

#: Operators that make much of little; results up to so many bytes are folded all the same: sizes and axes.
_GENERATORS = frozenset({"Tile", "Expand", "ConstantOfShape", "Range", "EyeLike"})
_SMALL = 128
#: Bytes above which a result is not even computed, when its size is known beforehand.
_HUGE = 1 << 30


@fold_pass("constants", "compute what is the same in every run, and store it", rank=1)
def constants(changes: Changes) -> None:
    """What deterministic operators make of initializers and Constants alone, by `folding.evaluate`."""
    scope = changes.scope
    nodes = [node for node in scope.view.order if _is_candidate(scope, node)]
    if not nodes:
        return
    plan = _Plan(scope, nodes)
    plan.settle()
    for node in plan.removed:
        changes.remove(node, "constants", "the same in every run")
    for name, value in plan.kept.items():
        if isinstance(value, np.ndarray):
            changes.store(name, stored.tensor(value, name))


def _is_candidate(scope: Scope, node: Node) -> bool:
    constants = scope.constants
    made = [name for name in node.outputs if name]
    if not made or not all(name in constants for name in made) or is_constant(node.proto):
        return False
    inner = scope.inner_names  # a stored value is visible in bodies that stand before its node
    return not any(name in inner for name in made)


@dataclass
class _Plan:
    """Which values are stored: decided from the readers down to the leaves, as values turn out to be too large."""

    scope: Scope
    nodes: list[Node]
    kept: dict[str, Value] = field(default_factory=dict)
    refused: set[str] = field(default_factory=set)
    _inside: dict[str, Node] = field(default_factory=dict)
    _leaf: dict[str, int] = field(default_factory=dict)
    _cone: dict[str, int] = field(default_factory=dict)
    _grows: set[str] = field(default_factory=set)

    def settle(self) -> None:
        self._inside = {name: node for node in self.nodes for name in node.outputs if name}
        self._weigh()
        evaluator = Evaluator(self.scope)
        while wanted := self._frontier() or self._give_up_costly():
            self._compute(evaluator, wanted)
            self._give_up_siblings()

    def _compute(self, evaluator: Evaluator, wanted: Sequence[str]) -> None:
        ask = [name for name in wanted if name not in self.refused and not self._is_hopeless(name)]
        ask = [name for name in ask if not self._waits(name)]
        cone = self._cone_of(ask)
        found = evaluator.run(cone, ask) if cone else {}
        self.kept.update((name, found[name]) for name in ask if name in found and self._is_worth(name, found[name]))
        self.refused.update(name for name in wanted if name not in self.kept)
        self.scope.failed.update((self.scope.where, name) for name in ask if name not in found)

    def _give_up_costly(self) -> list[str]:
        """Refuse what makes the file larger than it is worth, until something is wanted instead, or nothing is left."""
        wanted: list[str] = []
        while not wanted and (costly := self._costly()):
            self.refused |= costly
            for name in costly:
                del self.kept[name]
            self._give_up_siblings()
            wanted = self._frontier()
        return wanted

    def _costly(self) -> set[str]:
        sizes = {name: _payload(value) for name, value in self.kept.items() if isinstance(value, np.ndarray)}
        gone = {node.index for node in self.removed}
        if sum(sizes.values()) <= PER_NODE * len(gone):
            return set()
        return too_costly(self.scope, sizes, {name: self._cone_of([name]) for name in sizes}, gone)

    def _give_up_siblings(self) -> None:
        """A node that stays for one of its outputs makes the others too."""
        staying = self._needed_nodes()
        for name in [name for name in self.kept if self._inside[name].index in staying]:
            del self.kept[name]

    @property
    def removed(self) -> list[Node]:
        """Nodes whose results are stored, or read only on the way to those."""
        needed = self._needed_nodes()
        return [node for node in self.nodes if node.index not in needed]

    def _needed_nodes(self) -> set[int]:
        return {self._inside[name].index for name in self.refused}

    def _frontier(self) -> list[str]:
        """Values that somebody outside reads, or a node that stays; those that were refused are made by one that stays."""
        view = self.scope.view
        staying = self._needed_nodes()
        inside = {node.index for node in self.nodes}
        wanted: list[str] = []
        for name, node in self._inside.items():
            if name in self.refused or name in self.kept:
                continue
            if node.index in staying:  # another output of a node that stays is made anyway
                continue
            readers = view.consumers.get(name, [])
            outside = any(reader.index not in inside or reader.index in staying for reader in readers)
            if outside or name in self.scope.outputs:
                wanted.append(name)
        return wanted

    def _weigh(self) -> None:
        """For each value the bytes of the constants that it is made of, and the nodes that make it, both at most."""
        for node in self.nodes:
            inputs = dict.fromkeys(name for name in node.inputs if name)
            leaf = sum(self._leaf[name] if name in self._leaf else leaf_bytes(self.scope.view, name) for name in inputs)
            cone = 1 + sum(self._cone.get(name, 0) for name in inputs)
            if _is_generator(node) or any(name in self._grows for name in inputs):
                self._grows.update(node.outputs)
            for name in node.outputs:
                if name:
                    self._leaf[name], self._cone[name] = min(leaf, 1 << 40), min(cone, 1 << 20)

    def _bytes(self, name: str) -> int | None:
        """The bytes of a value, if its type and all its dims are known."""
        element, dims = self.scope.element(name), self.scope.dims(name)
        bits = element_bits(element) if element is not None else None
        if bits is None or dims is None or not all(isinstance(dim, int) for dim in dims):
            return None
        return prod(dim for dim in dims if isinstance(dim, int)) * bits // 8

    def _is_hopeless(self, name: str) -> bool:
        if (self.scope.where, name) in self.scope.failed:
            return True
        size = self._bytes(name) if name in self._grows else None  # else it is about as large as what it is made of
        return size is not None and (size > _HUGE or not self._is_affordable(name, size))

    def _waits(self, name: str) -> bool:
        """Whether it takes a value that the graphs around this one are about to store, in time for the next round."""
        untold = self._untold
        return bool(untold) and any(read in untold for node in self._cone_of([name]) for read in node.inputs)

    @cached_property
    def _untold(self) -> set[str]:
        """What the nodes read of graphs around this one that is not stored there."""
        view = self.scope.view
        if view.parent is None or view.isolated:
            return set()
        read = {name for node in self.nodes for name in node.inputs if name and not view.defines(name)}
        return {name for name in read if holder(view.parent, name) is None}

    def _is_worth(self, name: str, value: Value) -> bool:
        if not isinstance(value, np.ndarray) or not self.scope.can_hold(name, element_type(value.dtype)):
            return False
        return self._is_affordable(name, _payload(value))

    def _is_affordable(self, name: str, size: int) -> bool:
        if size > self.scope.options.max_size:
            return False
        if _is_generator(self._inside[name]) and size > max(_SMALL, self._leaf[name], self.scope.slack):
            return False
        return size <= max(PER_NODE * self._cone[name], TIMES * self._leaf[name], self.scope.slack)

    def _cone_of(self, names: Iterable[str]) -> list[Node]:
        wanted: set[int] = set()
        pending = [self._inside[name] for name in names]
        while pending:
            node = pending.pop()
            if node.index in wanted:
                continue
            wanted.add(node.index)
            pending.extend(self._makers(node))
        return [node for node in self.scope.view.order if node.index in wanted]

    def _makers(self, node: Node) -> Iterator[Node]:
        """The nodes that make what a node reads, Constants included."""
        view = self.scope.view
        return (view.producer[name] for name in node.inputs if name in view.producer)


def _is_generator(node: Node) -> bool:
    return node.proto.op_type in _GENERATORS and is_default_domain(node.proto)


def _payload(value: np.ndarray) -> int:
    if value.dtype.kind == "O":
        return sum(len(str(item)) for item in value.reshape(-1))
    return value.nbytes
