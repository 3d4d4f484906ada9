"""Graphs in a few boxes."""

import time

import pytest
from onnx import helper, parser

from onnxbench import GraphView
from onnxbench.core.outline import outline


def big(length, scope=lambda i: ""):
    """A chain with a skip at every fifth node; `scope` names the scope of a node."""
    nodes = [
        helper.make_node("Add", [f"t{i}", f"t{i - 3 if i > 3 and i % 5 == 0 else i}"], [f"t{i + 1}"], f"{scope(i)}n{i}")
        for i in range(length)
    ]
    ends = [helper.make_tensor_value_info(name, 1, [2]) for name in ("t0", f"t{length}")]
    proto = helper.make_model(helper.make_graph(nodes, "g", ends[:1], ends[1:]))
    return GraphView(proto, proto.graph)


def test_a_small_graph_is_drawn_whole():
    drawn = outline(big(7), {3})
    assert [(box.kind, box.name, box.layer) for box in drawn.boxes] == [
        ("inputs", "t0", 0),
        *(("nodes", f"n{i}", i + 1) for i in range(7)),
        ("outputs", "t7", 8),
    ]
    assert [box.name for box in drawn.boxes if box.marks] == ["n3"]
    assert (drawn.nodes, len(drawn.edges)) == (7, 9)
    assert not any(edge.back for edge in drawn.edges)


@pytest.mark.parametrize("scope", [lambda i: "", lambda i: f"/encoder/layer.{i // 100}/attention/"])
def test_a_large_graph_is_drawn_together_but_for_what_matters(scope):
    view = big(50_000, scope)
    began = time.perf_counter()
    drawn = outline(view, {16_666})
    assert time.perf_counter() - began < 20  # about one on a quiet machine
    assert 10 < len(drawn.boxes) <= 62
    assert sum(box.nodes for box in drawn.boxes) == drawn.nodes == 50_000
    (culprit,) = [box for box in drawn.boxes if box.marks]
    assert (culprit.name, culprit.nodes) == (f"{scope(16_666)}n16666", 1)
    beside = {edge.source for edge in drawn.edges if drawn.boxes[edge.target] is culprit}
    assert {drawn.boxes[place].nodes for place in beside} == {1}


def test_more_culprits_than_boxes_are_counted():
    drawn = outline(big(500), range(500))
    assert len(drawn.boxes) <= 62
    assert sum(box.marks for box in drawn.boxes) == 500


def test_scopes_that_feed_each_other_have_edges_that_go_back():
    view = big(100, lambda i: f"/{'ab'[i % 2]}/")
    for node in view.graph.node:  # a plain chain
        del node.input[1:]
    drawn = outline(GraphView(view.model, view.graph), (), most=4)
    assert [box.name for box in drawn.boxes] == ["t0", "a", "b", "t100"]
    assert [(edge.source, edge.target, edge.values) for edge in drawn.edges if edge.back] == [(2, 1, 49)]


@pytest.mark.parametrize(
    "body",
    ["y = Identity (x)", "y = Add (x, z) z = Neg (y)", "y = Sin (gone) [a] z = Sin (x)"],
    ids=["one", "a circle", "a value that nobody makes"],
)
def test_odd_graphs_can_be_drawn(body):
    proto = parser.parse_model(f'<ir_version: 8, opset_import: ["": 17]> g (float[2] x) => (float[2] y) {{ {body} }}')
    assert outline(GraphView(proto, proto.graph), ()).boxes
    del proto.graph.node[:]
    assert [box.kind for box in outline(GraphView(proto, proto.graph), ()).boxes] == ["inputs", "outputs"]
