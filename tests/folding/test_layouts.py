"""Arithmetic moves before Transposes where fewer of them are left, and computes the same."""

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from onnxbench import GraphView, Model
from onnxbench.folding.run import fold_model
from onnxbench.folding.simplify import simplify

from .judging import judged, ops

NHWC, NCHW = "perm = [0, 2, 3, 1]", "perm = [0, 3, 1, 2]"
X = np.random.default_rng(0).standard_normal((2, 3, 4, 5)).astype(np.float32)
HEAD = "g (float[N, 3, 4, 5] x) => (float[A, B, C, D] y)"


def test_a_chain_between_two_transposes_that_undo_each_other():
    folded = judged(
        f"""{HEAD} <float[3] k = {{1, 2, 3}}, float h = {{0.5}}> {{
            t = Transpose<{NHWC}>(x) a = Mul(t, k) b = Add(a, h) c = Relu(b) u = Transpose<{NCHW}>(c) y = Neg(u) }}""",
        {"x": X},
    )
    assert ops(folded) == ["Mul", "Add", "Relu", "Neg"]
    (constant,) = [t for t in folded.graph.initializer if t.dims]
    assert list(constant.dims) == [1, 3, 1, 1]


def test_branches_that_meet_and_a_reader_that_wants_the_old_order():
    folded = judged(
        f"""{HEAD} <int64[1] one = {{1}}> {{ p = Neg(x) t = Transpose<{NHWC}>(x) s = Transpose<{NHWC}>(p) a = Add(t, s)
            b = Relu(a) u = Transpose<{NCHW}>(b) v = Transpose<{NCHW}>(a) w = Sub(u, v)
            m = ReduceMax<keepdims = 0>(b, one) n = ReduceMax<keepdims = 0>(m) y = Mul(w, n) }}""",
        {"x": X},
    )
    assert ops(folded).count("Transpose") == 1
    assert "Add" in ops(folded)


def test_what_a_graph_returns_keeps_its_name_and_order():
    text = "g (float[N, 3, 4, 5] x) => (float[A, B, C, D] y, float[E, F, G, H] z) "
    folded = judged(
        text
        + f"""{{ p = Neg(x) t = Transpose<{NHWC}>(x) s = Transpose<{NHWC}>(p) z = Add(t, s)
            u = Transpose<{NCHW}>(z) y = Relu(u) }}""",
        {"x": X},
    )
    assert sorted(ops(folded)) == ["Add", "Neg", "Relu", "Transpose"]


@pytest.mark.parametrize(
    "nodes",
    [
        f"t = Transpose<{NHWC}>(x) a = Softmax(t) y = Transpose<{NCHW}>(a)",  # which is about an axis
        f"t = Transpose<{NHWC}>(x) a = Relu(t) y = Transpose<{NHWC}>(a)",  # which does not undo the first
        f"t = Transpose<{NHWC}>(x) a = Add(t, q) y = Transpose<{NCHW}>(a)",  # of which nothing is known
        f"t = Transpose<{NHWC}>(x) a = Relu(t) b = Sqrt(a) c = Flatten<axis = 1>(b) i = Shape(c) y = Reshape(x, s)",
        f"t = Transpose<{NHWC}>(x) a = Add(t, big) y = Squeeze(a, zero)",  # a constant of a higher rank
    ],
)
def test_what_stays(nodes):
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 17]> g (float[N, 3, 4, 5] x, float[Q, R, S, T] q) => (y)
        <float[1, 1, 1, 1, 1] big = {{1}}, int64[1] zero = {{0}}, int64[4] s = {{0, 0, 0, -1}}> {{ {nodes} }}"""
    )
    before = [node for node in model.graph.node if node.op_type in ("Transpose", "Relu", "Add", "Softmax")]
    folded, report = simplify(Model(model))
    assert not [removal for removal in report.removals if removal.rule == "layouts"]
    assert [n for n in folded.proto.graph.node if n in before] == [n for n in before if n in folded.proto.graph.node]


def test_what_is_said_of_a_value_goes_with_it():
    model = onnx.parser.parse_model(
        f"""<ir_version: 10, opset_import: ["": 21]> g (float[2, 3, 4, 5] x) => (float[2, 3, 4, 5] y)
        <float[2, 4, 5, 3] a> {{ t = Transpose<{NHWC}>(x) a = Relu(t) u = Transpose<{NCHW}>(a) y = Neg(u) }}"""
    )
    model.graph.value_info[0].metadata_props.add(key="scale", value="2")
    folded, _ = fold_model(Model(model))
    (said,) = folded.proto.graph.value_info
    assert said.name == folded.proto.graph.node[0].output[0] != "a"
    assert [dim.dim_value for dim in said.type.tensor_type.shape.dim] == [2, 3, 4, 5]
    assert said.metadata_props[0].value == "2"


def test_a_constant_that_two_orders_want_is_stored_in_both():
    swap = "perm = [1, 0, 2, 3]"
    folded = judged(
        f"""g (float[2, 2, 2, 2] x) => (float[2, 2, 2, 2] y) <float[2, 1, 1, 1] k = {{1, 3}}> {{
            t = Transpose<{NHWC}>(x) a = Mul(t, k) u = Transpose<{NCHW}>(a) p = Softmax(u)
            s = Transpose<{swap}>(p) b = Mul(s, k) v = Transpose<{swap}>(b) q = Softmax(v) y = Mul(q, k) }}""",
        {"x": X[:2, :2, :2, :2]},
    )
    assert "Transpose" not in ops(folded)
    assert [list(tensor.dims) for tensor in folded.graph.initializer].count([1, 2, 1, 1]) == 1


@pytest.mark.parametrize("name", ["t", "a", "u", "k"])
def test_what_is_said_of_the_quantization_of_a_value_stays(name):
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 17]> {HEAD} <float[3] k = {{1, 2, 3}}> {{
            t = Transpose<{NHWC}>(x) a = Mul(t, k) u = Transpose<{NCHW}>(a) y = Neg(u) }}"""
    )
    model.graph.quantization_annotation.add(tensor_name=name)
    folded, _ = simplify(Model(model))
    assert [note.tensor_name for note in folded.proto.graph.quantization_annotation] == [name]


def test_a_region_that_reads_its_own_values_in_the_other_order():
    """An order that is its own inverse: the same Transpose undoes the first, and leads in again."""
    swap = "Transpose<perm = [1, 0]>"
    folded = judged(
        f"""g (float[N, N] x) => (float[A, B] y, float[C, D] z) {{
            t = {swap}(x) a = Floor(t) b = {swap}(a) c = Div(b, a) y = Neg(c) u = {swap}(c) z = Neg(u) }}""",
        {"x": 9 * X[0, 0, :4, :4]},
    )
    assert ops(folded).count("Transpose") <= 3


@pytest.mark.parametrize("where", ["body", "function"])
def test_inside_bodies_and_functions(where):
    inner = f"t = Transpose<{NHWC}>(v) a = Mul(t, k) u = Transpose<{NCHW}>(a) w = Neg(u)"
    constant = "k = Constant<value_floats = [1.0, 2.0, 3.0]>()"
    if where == "body":
        text = f"""g (float[2, 3, 4, 5] x, bool c) => (float[2, 3, 4, 5] y) {{ v = Abs(x) y = If(c) <
            then_branch = yes () => (float[2, 3, 4, 5] w) {{ {constant} {inner} }},
            else_branch = no () => (float[2, 3, 4, 5] z) {{ z = Relu(v) }}> }}"""
        folded = judged(text, {"x": X, "c": np.asarray(True)})
        body = next(a.g for n in folded.graph.node for a in n.attribute if a.name == "then_branch")
        left = [node.op_type for node in body.node]
    else:
        model = onnx.parser.parse_model(
            f"""<ir_version: 8, opset_import: ["": 17, "f": 1]> g (float[2, 3, 4, 5] x) => (float[2, 3, 4, 5] y) {{ y = f.F(x) }}
            <domain: "f", opset_import: ["": 17]> F (v) => (w) {{ {constant} {inner} }}"""
        )
        folded, report = fold_model(Model(model))
        assert report.state == "verified"
        left = [node.op_type for node in folded.proto.functions[0].node]
    assert [kind for kind in left if kind != "Constant"] == ["Mul", "Neg"]


def test_nodes_that_say_how_axes_are_spread_stay():
    model = onnx.parser.parse_model(
        f"""<ir_version: 11, opset_import: ["": 21]> g (float[2, 3, 4, 5] x) => (float[2, 3, 4, 5] y)
        {{ t = Transpose<{NHWC}>(x) a = Relu(t) u = Transpose<{NCHW}>(a) y = Neg(u) }}"""
    )
    model.graph.node[1].device_configurations.add(configuration_id="two")
    folded, _ = simplify(Model(model))
    assert [node.op_type for node in folded.proto.graph.node] == ["Transpose", "Relu", "Transpose", "Neg"]


PERMS = ([0, 2, 3, 1], [0, 3, 1, 2], [1, 0, 2, 3], [3, 2, 1, 0])
UNARY, BINARY = ("Neg", "Relu", "Abs"), ("Add", "Mul", "Max", "Sub")


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_random_networks_compute_the_same_with_no_more_transposes(data):
    """Transposes of cubes, so that any two values can meet; constants of any rank that broadcasts."""
    names, nodes, stored = ["x", "z"], [], []
    rng = np.random.default_rng(data.draw(st.integers(0, 999)))
    for number in range(data.draw(st.integers(3, 14))):
        out, kind = f"v{number}", data.draw(st.sampled_from(["unary", "binary", "constant", "transpose", "transpose"]))
        source = data.draw(st.sampled_from(names[-5:]))
        if kind == "unary":
            nodes.append(helper.make_node(data.draw(st.sampled_from(UNARY)), [source], [out]))
        elif kind == "transpose":
            nodes.append(helper.make_node("Transpose", [source], [out], perm=data.draw(st.sampled_from(PERMS))))
        elif kind == "binary":
            other = data.draw(st.sampled_from(names[-5:]))
            nodes.append(helper.make_node(data.draw(st.sampled_from(BINARY)), [source, other], [out]))
        else:
            dims = data.draw(st.lists(st.sampled_from([1, 3]), max_size=4))
            value = rng.integers(-4, 5, dims).astype(np.float32)
            held = data.draw(st.sampled_from([t.name for t in stored] + [f"k{number}"]))
            if held == f"k{number}":
                stored.append(numpy_helper.from_array(value, held))
            pair = [source, held] if data.draw(st.booleans()) else [held, source]
            nodes.append(helper.make_node(data.draw(st.sampled_from(BINARY)), pair, [out]))
        names.append(out)
    returned = data.draw(st.lists(st.sampled_from(names[2:]), min_size=1, max_size=3, unique=True))
    cube = [3, 3, 3, 3]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, cube) for name in ("x", "z")],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, cube) for name in returned],
        stored,
    )
    model = Model(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8))
    folded, report = fold_model(model)
    assert report.state in ("verified", "unchanged")

    def count(made):
        view = GraphView(made.proto, made.proto.graph)
        return sum(node.proto.op_type == "Transpose" for node in view.nodes)

    assert count(folded) <= count(model)
    again, more = simplify(folded)
    assert not more.removals, "it takes one fold"
    assert again.proto == folded.proto
