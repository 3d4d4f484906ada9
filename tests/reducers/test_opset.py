"""A reproducer has the newest forms of its operators that still fail."""

import numpy as np
import onnx
import pytest

from onnxbench import Limits
from onnxbench.reducers.oracle import Answer
from onnxbench.reducers.passes import opset
from onnxbench.reducers.reproducer import Reproducer
from onnxbench.reducers.settle import Settler
from onnxbench.reducers.shrink import Shrinker
from onnxbench.reducers.shrinking import choose_passes

from .conftest import model, ops

CLIP = "agraph (float[2, 3] x) => (float[2, 3] y) { [bad] y = Clip <max = 1.0> (x) }"
NEWEST = onnx.defs.onnx_opset_version()


def version(proto):
    return proto.opset_import[0].version


def shrunk(text, start, ask=lambda candidate: Answer("same")):
    """What the pass alone leaves, and the opsets that it asked about."""
    planted, asked = model(text, f'"": {start}'), []

    def note(candidate):
        asked.append(version(candidate.proto))
        return ask(candidate)

    shrinker = Shrinker(
        Reproducer(planted, {"x": np.ones((2, 3), np.float32)}, ("bad",)), Answer("same"), note, Settler(Limits(10))
    )
    opset.run(shrinker)
    return shrinker.best.proto, asked


@pytest.mark.parametrize(
    "text, start, end",
    [
        (CLIP, 6, 11),
        ("agraph (float[2, 3] x) => (float[2] y) { y = ReduceSum <axes = [1], keepdims = 0> (x) }", 11, 13),
        ("agraph (float[2, 3] x) => (float[2] y) { y = ReduceMean <axes = [1], keepdims = 0> (x) }", 13, 18),
        ("agraph (float[2, 3] x) => (float[2, 3] y) { y = Softsign (x) }", 17, 17),
    ],
)
def test_the_lowest_opset_of_the_newest_form_is_taken(text, start, end):
    left, asked = shrunk(text, start)
    assert version(left) == end
    assert len(left.graph.node) == 1
    assert asked == ([end] if end != start else [])
    onnx.checker.check_model(left, full_check=True)


def test_where_the_newest_form_passes_the_one_before_is_asked():
    def ask(candidate):
        return Answer("gone" if len(candidate.proto.graph.node[0].attribute) == 0 else "same")

    text = "agraph (float[2, 3] x) => (float[2, 3] y) { y = Clip <consumed_inputs = [0], max = 1.0> (x) }"
    left, asked = shrunk(text, 1, ask)
    assert (version(left), asked) == (6, [11, 6])


@pytest.mark.parametrize("start, node", [(11, "y = Softmax <axis = 0> (x)"), (17, "y = Split (x)")])
def test_what_takes_more_nodes_or_attributes_is_not_asked(start, node):
    left, asked = shrunk(f"agraph (float[2, 3] x) => (float[2, 3] y) {{ {node} }}", start)
    assert (version(left), asked) == (start, [])


@pytest.mark.parametrize("start", [0, 2**31, NEWEST])
def test_an_opset_without_a_newer_one_stays(start):
    assert shrunk(CLIP, start)[1] == []


def test_releases_that_are_asked_must_load_the_result():
    assert "opset" not in [entry.name for entry in choose_passes(None, loadable=True)]
    assert "opset" in [entry.name for entry in choose_passes(None)]


def test_a_reduction_takes_the_newer_form_where_that_fails_too(reduced):
    report, left = reduced(model(CLIP, '"": 6'), "misbehaving:ops=Clip,do=raise", passes=["opset"])
    assert (version(left), ops(left), report.confirmed) == (11, ["Clip"], True)
    assert [(record.name, record.tried, record.accepted) for record in report.passes] == [("opset", 1, 1)]
