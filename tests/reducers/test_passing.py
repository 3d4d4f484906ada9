"""What is handed back beside the reproducer: its nearest neighbour that passes, the error along the network, the curve."""

import math

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from onnxbench.core.compare import Difference
from onnxbench.core.graph import GraphView
from onnxbench.reducers.along import series
from onnxbench.reducers.localize import Suspicion

from .conftest import chain, model, names, ops


def test_the_nearest_model_that_passes_differs_in_a_sentence(reduced, tmp_path):
    planted = model(
        "agraph (float[N, 4] x) => (float[N, 4] y) { [a] h = Tanh (x) [b] k = Softsign (h) [c] y = Tanh (k) }"
    )
    report, left = reduced(planted, "misbehaving:ops=Softsign", passes=None)
    assert ops(left) == ["Softsign"]
    near = onnx.load(tmp_path / "bundle" / "passing.onnx")
    assert report.passing is not None
    assert report.passing.differs == (f"it has 'node0' ({ops(near)[0]}) in the place of 'node0' (Softsign)",)
    assert names(near) == names(left)


def test_without_shrinking_it_is_a_candidate_of_the_search(reduced, tmp_path):
    report, left = reduced(chain(9, {2: "Softsign", 3: "Softplus"}), "misbehaving:fused=Softsign+Softplus")
    assert names(left) == ["n2", "n3"]
    assert report.passing is not None
    assert names(onnx.load(tmp_path / "bundle" / "passing.onnx")) in (["n2"], ["n3"])
    assert any("without" in sentence for sentence in report.passing.differs)


def test_a_model_that_shares_no_node_is_not_said_to_differ_in_one(reduced, tmp_path):
    report, left = reduced(chain(9, {4: "Softsign"}), "misbehaving:ops=Softsign,do=load")
    near = onnx.load(tmp_path / "bundle" / "passing.onnx")
    assert report.passing is not None
    assert not set(names(left)) & set(names(near))
    assert report.passing.differs[0] == "no node of it is in the reproducer"
    assert "it is without 'n4' (Softsign)" in report.passing.differs
    assert not any("in the place of" in sentence for sentence in report.passing.differs)


def test_one_that_is_far_larger_than_the_reproducer_is_not_handed_back(reduced, tmp_path):
    heavy = model("""agraph (float[1, 600] x) => (float[1, 600] y) {
        [a] h = MatMul (x, v) [b] i = MatMul (h, v) [c] j = MatMul (i, v) [d] k = MatMul (j, v) [e] y = Softsign (k) }""")
    heavy.proto.graph.initializer.append(numpy_helper.from_array(np.eye(600, dtype=np.float32), "v"))
    report, left = reduced(heavy, "misbehaving:ops=Softsign,do=raise")
    assert ops(left) == ["Softsign"]
    assert report.checks > 1
    assert not any(path.stat().st_size > 1_000_000 for path in (tmp_path / "bundle").rglob("*"))


def test_inputs_of_its_own_lie_beside_it(reduced, tmp_path):
    report, _ = reduced(
        model("agraph (float[2] x) => (float[2] y) { [b] y = Softsign (x) }"),
        "misbehaving:ops=Softsign,above=100",
        feeds={"x": np.array([500, 3], np.float32)},
        passes=["values"],
    )
    assert report.passing is not None
    assert (report.passing.own_inputs, report.passing.differs) == (True, ("'x' is fed other values",))
    assert np.load(tmp_path / "bundle" / "passing.npz")["x"].max() <= 100


def test_an_anonymous_bundle_has_none(reduced, tmp_path):
    report, _ = reduced(chain(5, {2: "Softsign"}), "misbehaving:ops=Softsign", passes=None, anonymize=True)
    assert report.passing is None
    assert not (tmp_path / "bundle" / "passing.onnx").exists()


def test_the_error_along_the_network_names_every_node_in_its_order(reduced):
    report, _ = reduced(chain(12, {4: "Softsign"}), "misbehaving:ops=Softsign")
    assert [entry.node for entry in report.along] == [f"n{i}" for i in range(12)]
    off = [entry.isolated for entry in report.along]
    assert [i for i, error in enumerate(off) if error] == [4]
    assert [bool(entry.cumulative) for entry in report.along] == [i >= 4 for i in range(12)]


@pytest.mark.parametrize("length", [1, 1999, 2000, 5000])
def test_of_a_long_network_the_suspects_and_some_between_are_told(length):
    planted = chain(length, {})
    view = GraphView(planted.proto, planted.proto.graph)
    suspect = view.nodes[length // 3]
    suspicion = Suspicion((suspect,), Difference("t", "values", norm_rel=0.5))
    bad = Difference("t", "nonfinite", norm_rel=math.nan)
    told = series(view, [suspicion], {node.index: bad if node is suspect else None for node in view.nodes})
    assert len(told) == length if length <= 2000 else 1000 < len(told) <= 2000
    (one,) = [entry for entry in told if entry.isolated]
    assert (one.node, one.isolated, one.cumulative) == (suspect.proto.name, 0.5, None)


def test_the_curve_begins_with_the_original_and_ends_with_the_reproducer(reduced):
    report, _ = reduced(chain(40, {4: "Softsign"}), "misbehaving:ops=Softsign", passes=None)
    assert (report.curve[0].nodes, report.curve[0].bytes, report.curve[0].checks) == (40, report.bytes_before, 0)
    assert (report.curve[-1].nodes, report.curve[-1].bytes) == (1, report.bytes_after)
    sizes = [(point.nodes, point.bytes) for point in report.curve[:-1]]
    assert sizes == sorted(sizes, reverse=True)
