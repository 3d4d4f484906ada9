"""Costs against sums done by hand, and against a brute-force count of memory."""

import time
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper, parser

from onnxbench import GraphView, Model
from onnxbench.core.shapes import propagate
from onnxbench.core.symbolic import evaluate, symbol
from onnxbench.inspecting.costs import at_least, costs
from onnxbench.inspecting.macs import _RULES, macs_of

N = symbol("N")


def cost(graph, opsets='"": 17', functions="", **more):
    proto = parser.parse_model(f"<ir_version: 8, opset_import: [{opsets}]> {graph} {functions}")
    model = Model(proto)
    return costs(GraphView(proto, proto.graph), propagate(model, **more))


@pytest.mark.parametrize(
    "title, graph, want",
    [
        ("plain", "y = Conv <pads = [1,1,1,1]> (x, w)", 8 * 8 * 16 * (4 * 9)),
        ("strides", "y = Conv <strides = [2,2], pads = [1,1,1,1]> (x, w)", 4 * 4 * 16 * (4 * 9)),
        ("dilations", "y = Conv <dilations = [2,2]> (x, w)", 4 * 4 * 16 * (4 * 9)),
        ("groups", "y = Conv <group = 2> (x, v)", 6 * 6 * 16 * (2 * 9)),
        ("depthwise", "y = Conv <group = 4> (x, d)", 6 * 6 * 4 * (1 * 9)),
        ("transposed", "y = ConvTranspose (x, t)", 8 * 8 * 4 * (16 * 9)),
    ],
)
def test_convolutions(title, graph, want):
    found = cost(
        f"g (float[N,4,8,8] x, float[16,4,3,3] w, float[16,2,3,3] v, float[4,1,3,3] d, float[4,16,3,3] t) => (y) {{ {graph} }}"
    )
    assert found.macs == N * want
    assert found.unknown == 0


@pytest.mark.parametrize(
    "inputs, graph, want",
    [
        ("float[5,7] a, float[7,3] b", "y = MatMul (a, b)", 5 * 7 * 3),
        ("float[7] a, float[7,3] b", "y = MatMul (a, b)", 7 * 3),
        ("float[2,1,5,7] a, float[4,7,3] b", "y = MatMul (a, b)", 2 * 4 * 5 * 7 * 3),
        ("float[7,5] a, float[7,3] b", "y = Gemm <transA = 1> (a, b)", 5 * 7 * 3),
        ("float[5,7] a, float[3,7] b, float[3] c", "y = Gemm <transB = 1> (a, b, c)", 5 * 7 * 3),
        ("float[2,5,7] a, float[2,7,3] b", 'y = Einsum <equation = "bij,bjk->bik"> (a, b)', 2 * 5 * 7 * 3),
        ("float[5,7] a", 'y = Einsum <equation = "ij->ji"> (a)', 0),
        ("float[5,7] a", "y = Softmax (a)", 0),
        (
            "float[9,2,5] a, float[1,24,5] w, float[1,24,6] r",
            "y, h, c = LSTM <hidden_size = 6> (a, w, r)",
            9 * 2 * 24 * (5 + 6),
        ),
        (
            "float[9,2,5] a, float[2,18,5] w, float[2,18,6] r",
            'y, h = GRU <hidden_size = 6, direction = "bidirectional"> (a, w, r)',
            9 * 2 * 2 * 18 * (5 + 6),
        ),
        (
            "float[9,2,5] a, float[1,6,5] w, float[1,6,6] r",
            "y, h = RNN <hidden_size = 6> (a, w, r)",
            9 * 2 * 6 * (5 + 6),
        ),
        ("uint8[5,7] a, uint8[7,3] b", "y = MatMulInteger (a, b)", 5 * 7 * 3),
    ],
)
def test_products(inputs, graph, want):
    assert cost(f"g ({inputs}) => (y) {{ {graph} }}").macs == want


def test_an_attention_block_is_the_sum_of_its_products():
    """Batch 1, length S, width 8, 2 heads of 4: Q, K, V and output projections, scores, weighted sum."""
    found = cost(
        "g (float[1,S,8] x, float[8,8] wq, float[8,8] wk, float[8,8] wv, float[8,8] wo) => (y) "
        "<int64[4] heads = {1, -1, 2, 4}, int64[3] flat = {1, -1, 8}> {"
        "q0 = MatMul (x, wq) q1 = Reshape (q0, heads) q = Transpose <perm = [0,2,1,3]> (q1)"
        "k0 = MatMul (x, wk) k1 = Reshape (k0, heads) k = Transpose <perm = [0,2,3,1]> (k1)"
        "v0 = MatMul (x, wv) v1 = Reshape (v0, heads) v = Transpose <perm = [0,2,1,3]> (v1)"
        "s = MatMul (q, k) p = Softmax (s) c0 = MatMul (p, v) c1 = Transpose <perm = [0,2,1,3]> (c0)"
        "c = Reshape (c1, flat) y = MatMul (c, wo) }"
    )
    length = symbol("S")
    assert found.macs == length * 8 * 8 * 4 + length * length * 8 * 2
    assert cost_of_attention_operator() == 1 * 2 * 6 * 6 * (4 + 4)


def cost_of_attention_operator():
    return cost(
        "g (float[1,2,6,4] q, float[1,2,6,4] k, float[1,2,6,4] v) => (float[1,2,6,4] y) { y = Attention (q, k, v) }",
        '"": 23',
    ).macs


def test_a_loop_counts_its_rounds_and_an_if_its_dearest_branch():
    body = (
        "body = b (int64 i, bool c, float[4,4] v) => (bool c2, float[4,4] v2) { c2 = Identity (c) v2 = MatMul (v, w) }"
    )
    found = cost(
        f"g (float[4,4] x, float[4,4] w) => (y) <int64 n = {{7}}, bool t = {{1}}> {{ y = Loop (n, t, x) <{body}> }}"
    )
    assert found.macs == 7 * 4 * 4 * 4
    found = cost(
        "g (float[4,4] x, float[4,4] w, bool c) => (y) { y = If (c) <then_branch = t () => (float[4,4] o) "
        "{ o1 = MatMul (x, w) o = MatMul (o1, w) }, else_branch = e () => (float[4,4] o) { o = MatMul (x, w) }> }"
    )
    assert found.macs == 2 * 4 * 4 * 4


def test_functions_are_counted_at_each_call():
    found = cost(
        "g (float[4,4] x) => (float[4,4] y) { a = loc.Sq (x) y = loc.Sq (a) }",
        '"": 17, "loc": 1',
        '<domain: "loc", opset_import: ["": 17]> Sq (p) => (q) { q = MatMul (p, p) }',
    )
    assert found.macs == 2 * 4 * 4 * 4


def test_what_cannot_be_told_is_counted_apart():
    graph = "g (float[4,4] x) => (y) { a = acme.Zap (x) b = MatMul (a, x) c = MatMul (x, x) y = Add (b, c) }"
    found = cost(graph, '"": 17, "acme": 1')
    assert (found.macs, found.unknown) == (4 * 4 * 4, 2)  # Zap, and the product of what it makes
    assert found.unsized == 3  # a, b, and their sum


@pytest.mark.parametrize("domain, operator", sorted(_RULES))
@pytest.mark.parametrize("rank", range(6))
def test_no_rule_trusts_a_model_to_keep_its_operators_specification(domain, operator, rank):
    """A model that the checker refuses is shown as far as it goes: a rule gives a count or nothing."""
    shapes = SimpleNamespace(dims=lambda name: (2,) * rank)
    for inputs in ([f"x{i}" for i in range(9)], ["x"], []):
        node = helper.make_node(operator, inputs, ["y"], domain=domain, q_num_heads=0, kv_num_heads=0, num_heads=0)
        graph = helper.make_graph([node], "g", [], [])
        view = GraphView(helper.make_model(graph), graph)
        count = macs_of(view.nodes[0], shapes)
        assert count is None or count >= 0


def test_the_peak_of_hundreds_of_symbols_is_found_in_time():
    count = 120
    inputs = ", ".join(f"float[a{i}, b{i}, c{i}] x{i}" for i in range(count))
    body = " ".join(f"y{i} = Relu (x{i})" for i in range(count))
    started = time.process_time()
    found = cost(f"g ({inputs}) => (y0) {{ {body} }}")
    assert "a0*b0*c0" in str(found.peak)
    assert time.process_time() - started < 20


def test_numbers_come_with_shapes():
    graph = "g (float[N,4,H,W] x, float[8,4,3,3] w) => (y) { y = Conv (x, w) }"
    assert cost(graph, dims={"N": 2, "H": 10, "W": 10}).macs == 2 * 8 * 8 * 8 * 36
    assert cost(graph, shapes={"x": (1, 4, 5, 6)}).macs == 3 * 4 * 8 * 36


def test_live_memory_by_hand():
    """x (12 floats) lives until b; at b: x, a and b. Then a and b at c."""
    found = cost("g (float[3,4] x) => (float[3,4] c) { a = Neg (x) b = Add (a, x) c = Add (a, b) }")
    assert [row.live for row in found.nodes] == [96, 144, 144]
    assert (found.peak, found.peak_at.outputs) == (144, ("b",))


def test_the_peak_of_symbols_is_an_expression():
    found = cost("g (float[N,4] x) => (float[N,8] y) { a = Neg (x) y = Concat <axis = 1> (a, x) }")
    assert found.peak == N * (4 + 4 + 8) * 4


@st.composite
def graphs(draw):
    """Unary and binary nodes over values of one shape."""
    lines, names = [], ["x"]
    for i in range(draw(st.integers(1, 15))):
        left, right = draw(st.sampled_from(names)), draw(st.sampled_from(names))
        lines.append(f"v{i} = Add ({left}, {right})" if draw(st.booleans()) else f"v{i} = Neg ({left})")
        names.append(f"v{i}")
    outputs = draw(st.lists(st.sampled_from(names[1:]), min_size=1, max_size=3, unique=True))
    return f"g (float[2] x) => ({', '.join(f'float[2] {name}' for name in outputs)}) {{ {' '.join(lines)} }}"


@settings(max_examples=30, deadline=None)
@given(graphs())
def test_live_memory_is_what_a_brute_force_count_says(graph):
    proto = parser.parse_model(f'<ir_version: 8, opset_import: ["": 17]> {graph}')
    view = GraphView(proto, proto.graph)
    found = costs(view, propagate(Model(proto)))
    for place, row in enumerate(found.nodes):
        made = ["x", *(name for node in view.nodes[: place + 1] for name in node.outputs)]
        needed = {name for node in view.nodes[place:] for name in node.inputs} | set(view.outputs)
        alive = [name for name in made if name in needed or name in view.nodes[place].outputs]
        assert row.live == 8 * len(alive)


@given(st.integers(-5, 5), st.integers(-5, 5), st.integers(-5, 5), st.integers(1, 20), st.integers(1, 20))
def test_a_size_said_to_be_larger_is_larger(a, b, c, n, m):
    big = N * N * a + N * symbol("M") * b + N * c
    if at_least(big, 0):
        assert evaluate(big, {"N": n, "M": m}) >= 0


def test_a_quotient_may_be_nothing():
    assert not at_least(N * (N // 2), N)  # 0 against 1 at N = 1
    assert at_least(N * N * 3, N * 2 + N)


def test_published_figures():
    """He et al. 2015 and Simonyan 2014, multiply-accumulates at 224 x 224; models inside the installed onnx package."""
    from pathlib import Path

    import onnx

    from onnxbench import load

    light = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
    for name, published in (("resnet50", 4.1e9), ("vgg19", 19.6e9)):
        model = load(light / f"light_{name}.onnx")
        found = costs(GraphView(model.proto, model.proto.graph), propagate(model))
        assert np.isclose(found.macs, published, rtol=0.02)
        assert found.unknown == 0
