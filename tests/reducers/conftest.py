"""Networks with planted culprits, and reductions of them."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, parser

from onnxbench import Limits, Model, Reduction, Request, find, load, reduce
from onnxbench.core.feeds import generate
from onnxbench.core.graph import GraphView


def chain(length: int, culprits: Mapping[int, str], op: str = "Tanh") -> Model:
    """`length` nodes in a row, named n0, n1, ...; those at the given places have another operator."""
    lines = [f"[n{i}] t{i + 1} = {culprits.get(i, op)} (t{i})" for i in range(length)]
    return model(f"agraph (float[N, 4] t0) => (float[N, 4] t{length}) {{ {' '.join(lines)} }}")


def branches(count: int, length: int, culprits: Mapping[tuple[int, int], str]) -> Model:
    """`count` parallel chains of `length` nodes that start at one input and are summed up."""
    lines = [
        f"[b{b}_{i}] v{b}_{i + 1} = {culprits.get((b, i), 'Tanh')} ({f'v{b}_{i}' if i else 'x'})"
        for b in range(count)
        for i in range(length)
    ]
    ends = ", ".join(f"v{b}_{length}" for b in range(count))
    return model(f"agraph (float[N, 4] x) => (float[N, 4] y) {{ {' '.join(lines)} [sum] y = Sum ({ends}) }}")


def model(graph: str, opsets: str = '"": 17', functions: str = "") -> Model:
    """A model from a graph in ONNX text."""
    return Model(parser.parse_model(f"<ir_version: 8, opset_import: [{opsets}]> {graph} {functions}"), label="planted")


def names(proto: ModelProto) -> list[str]:
    return [node.name for node in proto.graph.node]


def ops(proto: ModelProto) -> list[str]:
    return [node.op_type for node in proto.graph.node]


Reduce = Callable[..., tuple[Reduction, ModelProto | None]]


@pytest.fixture
def reduced(tmp_path: Path) -> Reduce:
    """Reduce a model; the report and the bundle's model. Nothing is shrunk unless `passes` says so: names stay."""

    def run(
        planted: Model,
        suspect: str,
        against: str = "onnxruntime:opt=disable",
        *,
        timeout: float = 30.0,
        memory: int | None = None,
        feeds: Mapping[str, np.ndarray] | None = None,
        passes: Sequence[str] | None = (),
        **more: object,
    ) -> tuple[Reduction, ModelProto | None]:
        view = GraphView(planted.proto, planted.proto.graph)
        request = Request(
            model=planted,
            feeds=generate(view) if feeds is None else feeds,
            suspect=find(suspect),
            trusted=[find(against)],
            limits=Limits(timeout, memory),
            passes=passes,
            bundle=tmp_path / "bundle",
            **more,  # type: ignore[arg-type]
        )
        report = reduce(request)
        written = tmp_path / "bundle" / "model.onnx"
        return report, load(written).proto if written.exists() else None

    return run
