"""Run the node tests of the installed onnx package through two runtimes, and say where they disagree.

usage: disagreements.py [SUSPECT] [--against TRUSTED] [--match TEXT] [--json FILE]

Prints, per test where the two part or only one of them runs, who is right by the test's own expected outputs: a line of
name, operator, who differs, how. Those that a runtime does not support are counted only.
"""

import os
import sys

# `inspect.py` in this folder must not stand for the standard module.
sys.path[:] = [place for place in sys.path if place != os.path.dirname(os.path.abspath(__file__))]

import argparse
import collections
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx.backend.test.case.node import collect_testcases

from onnxbench import Limits, Model, Outcome, Runtime, Tolerance, find
from onnxbench.core.compare import differ_all

#: What draws random numbers is not expected to agree.
RANDOM = ("Bernoulli", "Dropout", "Multinomial", "RandomNormal", "RandomUniform")


@dataclass(frozen=True)
class Row:
    """A node test where not both are right: "right", or how a runtime is wrong."""

    name: str
    operators: str
    suspect: str
    trusted: str
    between: str


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("suspect", nargs="?", default="openvino")
    parser.add_argument("--against", default="onnxruntime:opt=disable")
    parser.add_argument("--match", default="")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    suspect, trusted = find(options.suspect), find(options.against)
    print(f"{suspect} {suspect.version()}, {trusted} {trusted.version()}, onnx {onnx.__version__}\n", flush=True)
    rows, tally = [], collections.Counter[str]()
    for name, model, feeds, expected in cases(options.match):
        row = compare(name, model, feeds, expected, suspect, trusted)
        kind = kind_of(row)
        tally[kind] += 1
        if kind not in ("agree", "unsupported"):
            rows.append(row)
            print(f"| {row.name} | {row.operators} | {row.suspect} | {row.trusted} | {row.between} |", flush=True)
    print(f"\n{dict(tally)}")
    if options.json:
        options.json.write_text(json.dumps([asdict(row) for row in rows], indent=1))
    return 0


def cases(match: str) -> Iterator[tuple[str, onnx.ModelProto, dict[str, Any], dict[str, Any]]]:
    """Name, model, inputs and expected outputs of each node test, those of expanded functions left out."""
    for case in collect_testcases(None):
        operators = {node.op_type for node in case.model.graph.node}
        if match not in case.name or "expanded" in case.name or any(op.startswith(RANDOM) for op in operators):
            continue
        for inputs, outputs in case.data_sets[:1]:
            graph = case.model.graph
            feeds = dict(zip([value.name for value in graph.input], map(plain, inputs), strict=False))
            expected = dict(zip([value.name for value in graph.output], map(plain, outputs), strict=False))
            yield case.name, case.model, feeds, expected


def plain(value: Any) -> Any:
    """A value of the test suite as numpy has it."""
    if isinstance(value, onnx.TensorProto):
        return onnx.numpy_helper.to_array(value)
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value if value is None else np.asarray(value)


def compare(
    name: str,
    model: onnx.ModelProto,
    feeds: dict[str, Any],
    expected: dict[str, Any],
    suspect: Runtime,
    trusted: Runtime,
) -> Row:
    limits = Limits(timeout=20.0)
    got = [runtime.run(Model(model), feeds, limits=limits) for runtime in (suspect, trusted)]
    between = verdict(got[0], got[1].outputs) if all(outcome.ok for outcome in got) else "-"
    operators = "+".join(dict.fromkeys(node.op_type for node in model.graph.node))
    return Row(name, operators, *(verdict(outcome, expected) for outcome in got), between)


def verdict(outcome: Outcome, want: dict[str, Any]) -> str:
    """ "right", or what is wrong, in a few words."""
    if outcome.kind in ("error", "unsupported"):
        text = " ".join(outcome.message.split())
        if outcome.kind == "unsupported":
            return "unsupported"
        return f"{outcome.phase} error: {text[-160:]}"
    if not outcome.ok:
        return outcome.sentence()
    found = differ_all(want, outcome.outputs, Tolerance())
    if not found:
        return "right"
    first = found[0]
    return f"wrong {first.kind}"


def kind_of(row: Row) -> str:
    if "unsupported" in (row.suspect, row.trusted):
        return "unsupported"
    if row.between == "right" or (row.between == "-" and row.suspect == row.trusted):
        return "agree"
    return "differ" if row.between != "-" else "one fails"


if __name__ == "__main__":
    sys.exit(main())
