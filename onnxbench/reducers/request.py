"""What to reduce, and how."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from onnxbench.core.compare import Tolerance
from onnxbench.core.graph import GraphView, Node
from onnxbench.core.model import Model
from onnxbench.core.values import Value
from onnxbench.reducers.course import Progress, silent
from onnxbench.reducers.finding import Finding
from onnxbench.runtimes.base import Limits, Runtime


@dataclass(frozen=True, slots=True)
class Budget:
    """What a search may take, from the first candidate on: seconds, and candidates judged; None for no end."""

    seconds: float | None = None
    checks: int | None = None


@dataclass(frozen=True, slots=True)
class Request:
    """What to reduce, and how.

    Attributes:
        model: the failing model.
        feeds: a value for each of its inputs.
        suspect: the runtime that fails.
        trusted: who tells right values, most trusted first; they should not optimize.
        tolerance: for numbers.
        limits: timeout and memory cap of one run.
        expected: right outputs, if they are known; then a trusted runtime must give them to be believed.
        jobs: candidates that are judged at a time.
        slower_than: how many times slower than the trusted runtime is a failure; numbers are not compared then.
        budget: what the search may take.
        localize_only: stop when it is known which nodes are wrong by themselves.
        only_prove: stop when it is known whether the model fails.
        journal: file that keeps the verdicts of a search that was stopped, or None.
        resume: go on with the search that left the journal.
        within: search only among these nodes, chosen from a view of `model`; None for all.
        passes: names of the shrinking passes to run; None for all, none for a model whose nodes are as they were.
        anonymize: leave nothing of names, docs and values that the failure does not need.
        bundle: folder to write the reproducer to, or None.
        output: file to write the reduced model to, or None; formats as `core.model.save` has them.
        releases: the suspect in other environments; the reproducer is asked there too.
        explain: look also for the optimization at fault, for the nearest model that passes and for a way around.
        workaround: file to write a rewritten model to that does not fail, or None.
        force: replace what is there.
        allow_lossy: write `output` in a format that loses something.
        documents: texts to add to the bundle, by file name.
        progress: told what begins, in a line.
        tick: told how far it is, after each candidate; should be quick.
    """

    model: Model
    feeds: Mapping[str, Value]
    suspect: Runtime
    trusted: Sequence[Runtime]
    tolerance: Tolerance = field(default_factory=Tolerance)
    limits: Limits = field(default_factory=Limits)
    expected: Mapping[str, Value] | None = None
    jobs: int = 1
    slower_than: float | None = None
    budget: Budget = field(default_factory=Budget)
    localize_only: bool = False
    only_prove: bool = False
    journal: Path | None = None
    resume: bool = False
    within: Callable[[GraphView], Sequence[Node]] | None = None
    passes: Sequence[str] | None = None
    anonymize: bool = False
    bundle: Path | None = None
    output: str | None = None
    releases: Sequence[Runtime] = ()
    explain: bool = True
    workaround: str | None = None
    force: bool = False
    allow_lossy: bool = False
    documents: Mapping[str, Callable[[Finding], str]] = field(default_factory=dict)
    progress: Callable[[str], None] = lambda line: None
    tick: Callable[[Progress], None] = silent
