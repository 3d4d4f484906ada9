"""Everything that `inspect` says of one model, as data."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from functools import lru_cache
from typing import Any

from onnxbench.core.symbolic import Expr, Size
from onnxbench.inspecting.blocks import Block
from onnxbench.inspecting.header import Header
from onnxbench.inspecting.made_up import MadeUp
from onnxbench.inspecting.operators import Operator
from onnxbench.inspecting.problems import Problem
from onnxbench.inspecting.structure import Structure
from onnxbench.inspecting.tensors import Tensors

SCHEMA = "onnxbench.inspect/1"


@dataclass(slots=True)
class Cost:
    """Costs for the reader: sizes are numbers, or expressions of the model's symbols as text.

    Attributes:
        macs: multiply-accumulates of the model; `unknown` nodes are not in it.
        peak_bytes: of live activations, weights apart; `peak_at` is the node that runs then, `unsized` the values left out.
        nodes: per node: name, operator, macs, live bytes.
    """

    macs: int | str
    unknown: int
    peak_bytes: int | str
    peak_at: str
    unsized: int
    nodes: list[NodeRow] = field(default_factory=list)


@dataclass(slots=True)
class NodeRow:
    """One node's costs; None for what cannot be told."""

    name: str
    operator: str
    macs: int | str | None
    live_bytes: int | str | None


@dataclass(slots=True)
class Values:
    """Node outputs of the top graph: how many there are, how many have a type, a rank, and a shape without unknowns."""

    all: int
    typed: int
    ranked: int
    shaped: int


@dataclass(slots=True)
class Inspection:
    """The report on one model."""

    model: str
    path: str | None
    header: Header
    operators: list[Operator]
    cost: Cost
    made_up: list[MadeUp]
    values: Values
    tensors: Tensors
    structure: Structure
    blocks: Block
    dead_nodes: int
    problems: list[Problem]
    fail_on: tuple[str, ...] = ()

    @property
    def invalid(self) -> list[Problem]:
        """The problems that make the model invalid."""
        return [problem for problem in self.problems if problem.severity == "error"]

    @property
    def failing(self) -> list[Problem]:
        """The problems that the caller asked to fail on."""
        return [problem for problem in self.problems if problem.code in self.fail_on]

    @property
    def exit_code(self) -> int:
        if self.invalid:
            return 3
        return 1 if self.failing else 0

    def to_dict(self) -> dict[str, Any]:
        data: dict[str, Any] = {"schema": SCHEMA, **_plain(asdict(self))}
        del data["fail_on"]
        return data


@lru_cache(4096)
def as_text(size: Size) -> int | str:
    """A size for JSON: a number, or an expression as text."""
    return size if isinstance(size, int) else str(size)


def shown(size: Size | None) -> int | str | None:
    """The same of a size that may be unknown."""
    return None if size is None else as_text(size)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return str(value) if isinstance(value, Expr) else value
