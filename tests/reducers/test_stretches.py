"""A heavy network is recorded stretch by stretch, and what is asked for is what recording everything gives."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onnxbench import Limits, find
from onnxbench.core.feeds import generate
from onnxbench.core.graph import GraphView
from onnxbench.core.types import infer
from onnxbench.recording import record
from onnxbench.reducers.stretches import Stretches, in_stretches

from .conftest import branches, chain, model, names

DISABLED = "onnxruntime:opt=disable"
BRANCH = "() => (float[4] {0}) {{ {0} = Tanh (x) }}"


def stretches_of(planted, workspace, runtimes=(DISABLED,)):
    view = GraphView(planted.proto, planted.proto.graph)
    feeds = generate(view)
    used = [find(runtime) for runtime in runtimes]
    return Stretches(used, planted, view, infer(planted), dict(feeds), workspace, Limits(30.0))


@pytest.fixture
def heavy(monkeypatch):
    """Every network of more than ten nodes counts as heavy, and stretches are short."""
    monkeypatch.setattr("onnxbench.reducers.searching._FEW", 10)
    monkeypatch.setattr("onnxbench.reducers.stretches._SHORT", 2)


@settings(max_examples=12, deadline=None)
@given(st.data())
def test_what_is_asked_for_is_what_a_whole_recording_gives(tmp_path_factory, data):
    planted = branches(3, 9, {}) if data.draw(st.booleans()) else chain(40, {})
    lazy = stretches_of(planted, tmp_path_factory.mktemp("lazy"))
    order = lazy.view.order
    chosen = [order[i] for i in sorted(data.draw(st.sets(st.integers(0, len(order) - 1), min_size=1)))]
    lazy.need(chosen)
    feeds = {name: lazy.values[name] for name in lazy.view.inputs}
    folder = tmp_path_factory.mktemp("whole")
    whole = record([find(DISABLED)], planted, lazy.view, feeds, workspace=folder, limits=Limits(30.0)).values
    inside = {name for node in chosen for name in node.outputs}
    assert all(name in lazy.values or name in inside for node in chosen for name in node.inputs)
    for name, value in lazy.values.items():
        np.testing.assert_array_equal(value, whole[name])
    lazy.need_all()
    assert lazy.values.keys() == whole.keys()


def test_little_is_recorded_for_the_first_half(tmp_path, heavy):
    lazy = stretches_of(chain(200, {}), tmp_path)
    lazy.need(lazy.view.order[:100])
    assert "t100" in lazy.values
    assert len(lazy.values) <= 1 + 8


def test_a_stretch_that_does_not_run_as_a_whole_is_recorded_as_far_as_it_goes(tmp_path, heavy):
    planted = chain(40, {30: "Softsign"})
    lazy = stretches_of(planted, tmp_path, ["misbehaving:ops=Softsign,do=raise"])
    lazy.need(lazy.view.order[:20])
    assert "t20" in lazy.values
    lazy.need(lazy.view.order[31:])
    assert "t31" not in lazy.values
    assert all(f"t{i}" in lazy.values for i in range(30))


@pytest.mark.parametrize("deed", ["wrong", "load", "raise"])
@pytest.mark.parametrize("culprits", [{33: "Softsign"}, {3: "Softsign", 90: "Softplus"}], ids=["one", "two"])
def test_culprits_of_a_heavy_network_are_found(reduced, heavy, deed, culprits):
    wanted = "+".join(culprits.values())
    report, found = reduced(chain(100, culprits), f"misbehaving:ops={wanted},do={deed}")
    assert (report.status, report.confirmed) == ("minimal", True)
    assert [node.op_type for node in found.graph.node if node.op_type != "Tanh"] == list(culprits.values())
    assert len(found.graph.node) == len(culprits)


def test_one_of_many_branches_of_a_heavy_network_is_found(reduced, heavy):
    report, found = reduced(branches(8, 6, {(5, 3): "Softsign"}), "misbehaving:ops=Softsign")
    assert (report.status, names(found)) == ("minimal", ["b5_3"])


@pytest.mark.parametrize(
    "body, plain",
    [
        ("y = Tanh (x)", True),
        ("r = RandomNormalLike (x) y = Add (x, r)", False),
        (f"y = If (c) <then_branch = g {BRANCH.format('u')}, else_branch = h {BRANCH.format('v')}>", False),
    ],
)
def test_bodies_and_random_operators_are_recorded_at_once(body, plain):
    planted = model(f"agraph (float[4] x, bool c) => (float[4] y) {{ {body} }}")
    view = GraphView(planted.proto, planted.proto.graph)
    assert in_stretches(planted, view, infer(planted), 0, 0) == plain


@pytest.mark.parametrize("size, heavy", [("1024", True), ("1000", False), ("N", False)])
def test_a_network_is_heavy_by_the_bytes_of_its_values(size, heavy):
    planted = model(f"agraph (float[{size}] x) => (float[{size}] y) {{ h = Tanh (x) y = Cos (h) }}")
    view = GraphView(planted.proto, planted.proto.graph)
    assert in_stretches(planted, view, infer(planted), 2 * 4 * 1024 - 1, 100) == heavy


def test_stretches_run_in_one_order_whatever_the_hash_seed(tmp_path, heavy, monkeypatch):
    lazy = stretches_of(branches(12, 3, {}), tmp_path)
    reached = []
    monkeypatch.setattr(Stretches, "_reach", lambda self, name, maker: reached.append(maker))
    lazy.need(lazy.view.order[2:30])
    left = [place for place in reached if place >= 2]
    assert len(left) > 8
    assert left == sorted(left)
