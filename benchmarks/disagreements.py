"""Run the node tests of the installed onnx package through two runtimes, and say where they disagree.

usage: disagreements.py [SUSPECT] [--against TRUSTED] [--match TEXT] [--json FILE]

Prints a table of the tests where the two part or only one of them runs, those of an operator that fail alike in one line: what
each is by the test's own expected outputs, and what they are to each other. Those that a runtime does not support are counted only.
FILE gets every test, with the messages.
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
    """A node test: what two runtimes make of it, and what they are to each other ("-" if not both run)."""

    name: str
    operators: str
    suspect: str
    trusted: str
    between: str
    message: str


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
    print(f"| operator | {suspect} | {trusted} | between them | tests | such as |\n|---|---|---|---|---|---|")
    for key, names in grouped(rows).items():
        print(f"| {' | '.join(key)} | {len(names)} | {names[0]} |")
    print("\n" + ", ".join(f"{count} {kind}" for kind, count in sorted(tally.items())))
    if options.json:
        options.json.write_text(json.dumps([asdict(row) for row in rows], indent=1))
    return 0


def grouped(rows: list[Row]) -> dict[tuple[str, ...], list[str]]:
    """Names of tests by operator and by what happens."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for row in rows:
        groups.setdefault((row.operators, row.suspect, row.trusted, row.between), []).append(row.name)
    return groups


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
    message = " ".join(outcome.message for outcome in got)
    return Row(name, operators, *(verdict(outcome, expected) for outcome in got), between, " ".join(message.split()))


def verdict(outcome: Outcome, want: dict[str, Any]) -> str:
    """What came of a run, in two words."""
    if outcome.kind == "unsupported":
        return "unsupported"
    if not outcome.ok:
        return f"{outcome.phase} error" if outcome.kind == "error" else outcome.sentence()
    found = differ_all(want, outcome.outputs, Tolerance())
    return f"wrong {found[0].kind}" if found else "right"


def kind_of(row: Row) -> str:
    if "unsupported" in (row.suspect, row.trusted):
        return "unsupported"
    if row.between == "right" or (row.between == "-" and row.suspect == row.trusted):
        return "agree"
    return "differ" if row.between != "-" else "one fails"


if __name__ == "__main__":
    sys.exit(main())
