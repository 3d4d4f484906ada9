"""Which of several releases of a runtime fails first."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from onnxbench.errors import BenchError
from onnxbench.runtimes.base import Runtime


@dataclass(frozen=True, slots=True)
class Release:
    """What the reproducer did on one release: "same" failure, "other" failure, "gone", "unsure", or "absent"."""

    runtime: str
    version: str
    verdict: str


def survey(runtimes: Sequence[Runtime], ask: Callable[[Runtime], str]) -> list[Release]:
    """Every release once, in the order given."""
    found: list[Release] = []
    for runtime in runtimes:
        try:
            version = runtime.version()
        except BenchError:
            found.append(Release(str(runtime), "", "absent"))
            continue
        found.append(Release(str(runtime), version, ask(runtime)))
    return found


def summary(releases: Sequence[Release]) -> str:
    """The first change, as `works in 1.20.1, fails in 1.23.2`; empty if there is none."""
    told = [release for release in releases if release.verdict in ("same", "gone")]
    for before, after in itertools.pairwise(told):
        if before.verdict != after.verdict:
            words = {"same": "fails", "gone": "works"}
            return f"{words[before.verdict]} in {before.version}, {words[after.verdict]} in {after.version}"
    return ""
