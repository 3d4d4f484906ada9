"""Write the script of a bundle, which fails again by itself: no onnxbench in it."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Set
from importlib import resources
from typing import Any

import numpy as np
from onnx import ModelProto

from onnxbench.core.compare import Tolerance
from onnxbench.core.values import dtype_of
from onnxbench.reducers.signature import Signature, names_in
from onnxbench.runtimes.base import Limits, Runtime


def script(
    suspect: Runtime,
    proto: ModelProto,
    signature: Signature,
    tolerance: Tolerance,
    limits: Limits,
    tries: int = 1,
    names: Set[str] = frozenset(),
    judge: Runtime | None = None,
    slower_than: float | None = None,
) -> str:
    """The text of repro.py: a template, this failure's facts, the runtime's own lines.

    Args:
        suspect: the runtime that fails.
        proto: the reproducer.
        signature: how it fails.
        tolerance: for numbers.
        limits: of one run.
        tries: runs without the failure after which it counts as gone.
        judge: the trusted runtime, which a slow suspect is raced against.
        slower_than: how many times slower than that is a failure.
        names: names besides the reproducer's own that its message may hold.
    """
    package = resources.files("onnxbench.reducers")
    text = (package / "repro_template.py").read_text().replace("  # noqa: F821", "")
    normalise = (package / "normalise.py").read_text().partition('"""\n\n')[2]
    config = json.dumps(
        {
            **_facts(suspect, proto, signature, tolerance, limits),
            "names": sorted(names | names_in(proto)),
            "tries": tries,
            "slower_than": slower_than if signature.kind == "slow" else None,
            "judge": str(judge or ""),
            "trusted": judge.script() if judge is not None and signature.kind == "slow" else "",
        }
    )
    text = text.replace('"<<config>>"', repr(config))
    text = text.replace("# <<normalise>>\n", normalise)
    return text.replace("    # <<runtime>>\n", textwrap.indent(suspect.script(), "    "))


def _facts(
    suspect: Runtime, proto: ModelProto, signature: Signature, tolerance: Tolerance, limits: Limits
) -> dict[str, Any]:
    graph = proto.graph
    values = [*graph.input, *graph.output]
    held = {tensor.name for tensor in graph.initializer}
    return {
        "suspect": str(suspect),
        "headline": signature.sentence(),
        "signature": signature.to_dict(),
        "inputs": [value.name for value in graph.input if value.name not in held] if suspect.needs_feeds else [],
        "outputs": [value.name for value in graph.output],
        "sequences": [value.name for value in values if value.type.HasField("sequence_type")],
        "optionals": [value.name for value in values if value.type.HasField("optional_type")],
        "tolerance": _tolerances(tolerance),
        "timeout": limits.timeout or 1e9,
        "memory": limits.memory or 0,
    }


def _tolerances(tolerance: Tolerance) -> dict[str, tuple[float, float]]:
    dtypes = [dtype_of(code) for code in range(1, 27)]
    return {str(d): tolerance.for_dtype(d) for d in dtypes if d is not None and d != np.dtype(object)}
