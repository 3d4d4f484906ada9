"""The index of a graph: who makes and reads a value, what bodies capture, what is constant, in which order it runs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import AttributeProto, helper
from onnx.parser import parse_model

from onnxbench.core.graph import GraphView, captures
from onnxbench.errors import ModelError

HEADER = '<ir_version: 10, opset_import: ["": 21, "loc": 1]>'


def view_of(text, header=HEADER):
    model = parse_model(header + text)
    return GraphView(model, model.graph)


def outputs_of(nodes):
    return [node.outputs[0] for node in nodes]


NESTED = """
g (float[2] x, bool c, float[2] deep) => (float[2] y) <float[2] w = {1, 2}> {
    a = Neg(x)
    y = If(c) <
        then_branch = t1 () => (float[2] p) {
            inner = Abs(a)
            p = If(c) <
                then_branch = t2 () => (float[2] q) {
                    q = If(c) <then_branch = t3 () => (float[2] r) { r = Add(inner, deep) },
                               else_branch = e3 () => (float[2] w) { }>
                },
                else_branch = e2 () => (float[2] a) { }>
        },
        else_branch = e1 () => (float[2] s) { s = Mul(w, x) }>
}"""


def test_captures_reach_through_three_levels_and_count_what_is_handed_on():
    view = view_of(NESTED)
    assert set(captures(view.nodes[1].proto)) == {"a", "c", "deep", "w", "x"}
    assert view.nodes[1].inputs[0] == "c"


def test_what_a_branch_only_hands_on_is_captured():
    view = view_of("""
    g (float[2] x, bool c) => (float[2] y) {
        a = Neg(x)
        y = If(c) <then_branch = t () => (float[2] a) { }, else_branch = e () => (float[2] q) { q = Abs(x) }>
    }""")
    assert captures(view.nodes[1].proto) == ("a", "x")


def test_consumers_read_through_captures_each_once():
    view = view_of(NESTED)
    assert [n.index for n in view.consumers["x"]] == [0, 1]
    assert [n.index for n in view.consumers["a"]] == [1]
    assert [n.index for n in view.consumers["deep"]] == [1]
    assert "inner" not in view.consumers
    assert [n.index for n in view_of("g (float[2] x) => (float[2] y) { y = Add(x, x) }").consumers["x"]] == [0]


def test_a_name_that_a_body_defines_is_not_captured():
    view = view_of("""
    g (float[2] x, bool c, float[2] v) => (float[2] y) {
        y = If(c) <then_branch = t () => (float[2] v) <float[2] k = {1, 2}> { v = Add(k, x) },
                   else_branch = e () => (float[2] u) { v = Abs(x) u = Neg(v) }>
    }""")
    assert set(captures(view.nodes[0].proto)) == {"x"}


def test_loop_inputs_are_the_body_s_own():
    view = view_of("""
    g (int64 n, bool k, float[2] x, float[2] w) => (float[2] y) {
        y = Loop(n, k, x) <body = b (int64 i, bool go, float[2] v) => (bool go2, float[2] v2) {
            go2 = Identity(go) v2 = Add(v, w) }>
    }""")
    assert captures(view.nodes[0].proto) == ("w",)
    body = view.bodies(view.nodes[0])[0][1]
    assert list(body.inputs) == ["i", "go", "v"]
    assert body.parent is view
    assert body.owner is view.nodes[0]


def test_bodies_in_lists_have_labels():
    node = helper.make_node("Switch", ["x"], ["y"], domain="loc")
    graphs = [helper.make_graph([helper.make_node("Neg", [n], [f"r{n}"])], n, [], []) for n in ("a", "b")]
    node.attribute.append(AttributeProto(name="branches", type=AttributeProto.GRAPHS, graphs=graphs))
    view = view_of("g (float[2] x) => (float[2] y) { y = Neg(x) }")
    view.graph.node[0].CopyFrom(node)
    view = GraphView(view.model, view.graph)
    assert [label for label, _ in view.bodies(view.nodes[0])] == ["branches[0]", "branches[1]"]
    assert view.nodes[0].inputs == ("x", "a", "b")


# --- order


def test_order_goes_along_one_branch_before_the_other():
    view = view_of("""
    g (float[2] x) => (float[2] y) {
        a1 = Neg(x) b1 = Abs(x) a2 = Neg(a1) b2 = Abs(b1) a3 = Neg(a2) b3 = Abs(b2) y = Add(a3, b3)
    }""")
    assert outputs_of(view.order) == ["a1", "a2", "a3", "b1", "b2", "b3", "y"]


def test_order_of_an_unsorted_file_with_captures():
    view = view_of("""
    g (float[2] x, bool c) => (float[2] y) {
        y = If(c) <then_branch = t () => (float[2] p) { p = Neg(b) }, else_branch = e () => (float[2] a) { }>
        b = Abs(a)
        a = Neg(x)
    }""")
    assert outputs_of(view.order) == ["a", "b", "y"]


def test_dead_and_disconnected_nodes_have_a_place():
    view = view_of("""
    g (float[2] x, float[2] z) => (float[2] y, float[2] w) {
        d1 = Neg(x) d2 = Neg(d1) y = Abs(x) w = Abs(z)
    }""")
    assert outputs_of(view.order) == ["y", "w", "d1", "d2"]


@pytest.mark.parametrize("text", ["a = Neg(b) b = Neg(a) y = Abs(x)", "y = Add(x, y)", "y = Neg(a) a = Abs(y)"])
def test_a_circle_is_named(text):
    with pytest.raises(ModelError, match="circle") as caught:
        _ = view_of(f"g (float[2] x) => (float[2] y) {{ {text} }}").order
    assert caught.value.code == "OB305"


def test_deep_and_long_graphs_need_no_recursion():
    nodes = [helper.make_node("Neg", [f"v{i}"], [f"v{i + 1}"]) for i in range(20_000)]
    model = view_of("g (float[2] v0) => (float[2] v20000) { v1 = Neg(v0) }").model
    del model.graph.node[:]
    model.graph.node.extend(nodes[::-1])
    view = GraphView(model, model.graph)
    assert [node.index for node in view.order] == list(range(19_999, -1, -1))
    assert view.constants == frozenset()


@st.composite
def shuffled_graphs(draw):
    """Reads of each node among the values before it, and the place of each in the file."""
    count = draw(st.integers(1, 25))
    reads = [draw(st.lists(st.integers(-1, i - 1), min_size=1, max_size=3)) for i in range(count)]
    return reads, draw(st.permutations(range(count)))


@given(shuffled_graphs())
def test_order_is_topological_and_complete(drawn):
    reads, places = drawn
    nodes = [helper.make_node("Sum", [f"v{r}" for r in reads[i]], [f"v{i}"]) for i in places]
    model = view_of("g (float[2] x) => (float[2] y) { y = Neg(x) }").model
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    view = GraphView(model, model.graph)
    seen = {"v-1"}
    for node in view.order:
        assert set(node.inputs) <= seen
        seen.update(node.outputs)
    assert sorted(node.index for node in view.order) == list(range(len(reads)))


# --- constants


CONSTANTS = """
g (float[2] x, float[2] o) => (float[2] y) <float[2] w = {1, 2}, float[2] o = {3, 4}, float r = {0.5}> {
    c = Constant<value = float[2] {1, 1}>()
    d = Add(c, w)
    e = Add(d, o)
    n = RandomNormalLike(d)
    p = Dropout(d, r)
    m = loc.Custom(d)
    k = Neg(m)
    y = Add(x, d)
}"""


def test_constants_are_what_no_input_can_change():
    assert view_of(CONSTANTS).constants == {"w", "r", "c", "d"}


def test_before_ir_4_initializers_cannot_be_overridden():
    view = view_of(CONSTANTS, '<ir_version: 3, opset_import: ["": 8, "loc": 1]>')
    assert view.constants == {"w", "o", "r", "c", "d", "e"}


def test_a_body_has_the_constants_around_it():
    view = view_of("""
    g (float[2] x, bool c) => (float[2] y) <float[2] w = {1, 2}> {
        v = Neg(w)
        y = If(c) <then_branch = t () => (float[2] p) { q = Abs(v) z = Abs(x) p = Add(q, z) },
                   else_branch = e () => (float[2] s) { s = RandomNormalLike(v) }>
    }""")
    then, other = (body for _, body in view.bodies(view.nodes[1]))
    assert {"v", "w", "q"} <= then.constants
    assert not {"z", "p"} & then.constants
    assert "s" not in other.constants
    assert "y" not in view.constants


def test_a_local_function_of_the_default_domain_is_not_constant():
    view = view_of("""
    g () => (float[2] y) <float[2] w = {1, 2}> { y = Draw(w) }
    <opset_import: ["": 21]> Draw (a) => (b) { b = RandomNormalLike(a) }
    """)
    assert view.constants == {"w"}


# --- functions


FUNCTIONS = """
g (float[N] x) => (float[N] y) { y = loc.Scale<by = 3.0>(x) }
<domain: "loc", opset_import: ["": 13, "other": 2]>
Scale <by: float = 2.0, unused> (a) => (b) {
    k = Constant<value_float: float = @by>()
    t = If(c) <then_branch = th () => (u) { u = Constant<value_float: float = @by>() },
               else_branch = el () => (v) { v = Elu<alpha: float = @unused>(a) }>
    b = Mul(a, k)
}
"""


def test_a_call_binds_attributes_and_keeps_defaults_of_inner_operators():
    view = view_of(FUNCTIONS)
    inner = view.call(view.nodes[0])
    constant, condition, _ = inner.nodes
    assert constant.proto.attribute[0].f == 3.0
    assert constant.proto.attribute[0].name == "value_float"
    (_, then), (_, other) = inner.bodies(condition)
    assert then.nodes[0].proto.attribute[0].f == 3.0
    assert list(other.nodes[0].proto.attribute) == []
    assert inner.opsets == {"": 13, "loc": 1, "other": 2}
    assert (list(inner.inputs), inner.outputs, inner.isolated) == (["a"], ["b"], True)
    assert view.model.functions[0].node[0].attribute[0].ref_attr_name == "by"


def test_a_call_without_the_attribute_gets_the_function_s_default():
    view = view_of(FUNCTIONS.replace("<by = 3.0>", ""))
    assert view.call(view.nodes[0]).nodes[0].proto.attribute[0].f == 2.0


def test_overloads_are_told_apart():
    view = view_of("""
    g (float[N] x) => (float[N] y) { y = loc.F(x) }
    <domain: "loc", opset_import: ["": 21]> F (a) => (b) { b = Neg(a) }
    """)
    view.model.functions.add().CopyFrom(view.model.functions[0])
    view.model.functions[1].overload = "abs"
    view.model.functions[1].node[0].op_type = "Abs"
    for overload, operator in (("", "Neg"), ("abs", "Abs")):
        view.graph.node[0].overload = overload
        fresh = GraphView(view.model, view.graph)
        assert fresh.call(fresh.nodes[0]).nodes[0].proto.op_type == operator
    view.graph.node[0].overload = "none"
    assert GraphView(view.model, view.graph).call(view.nodes[0]) is None


def follow(view):
    while view is not None:
        view = view.call(view.nodes[0])


@pytest.mark.parametrize("body", ["b = loc.F(a)", "b = loc.G(a)"])
def test_a_function_that_reaches_itself_is_refused(body):
    view = view_of(f"""
    g (float[N] x) => (float[N] y) {{ y = loc.F(x) }}
    <domain: "loc", opset_import: ["": 21, "loc": 1]> F (a) => (b) {{ {body} }}
    <domain: "loc", opset_import: ["": 21, "loc": 1]> G (a) => (b) {{ b = loc.F(a) }}
    """)
    with pytest.raises(ModelError, match="calls itself") as caught:
        follow(view)
    assert caught.value.code == "OB305"


def test_the_same_function_may_be_called_in_a_row():
    view = view_of("""
    g (float[N] x) => (float[N] y) { a = loc.F(x) y = loc.G(a) }
    <domain: "loc", opset_import: ["": 21]> F (a) => (b) { b = Neg(a) }
    <domain: "loc", opset_import: ["": 21, "loc": 1]> G (a) => (b) { t = loc.F(a) b = loc.F(t) }
    """)
    inner = view.call(view.nodes[1])
    assert [inner.call(node).nodes[0].proto.op_type for node in inner.nodes] == ["Neg", "Neg"]


@pytest.mark.parametrize("ours, theirs", [("", "ai.onnx"), ("ai.onnx", ""), ("ai.onnx", "ai.onnx")])
def test_both_spellings_of_the_default_domain_are_one(ours, theirs):
    view = view_of("""
    g (float[N] x) => (float[N] y) { y = Mine(x) }
    <opset_import: ["": 21]> Mine (a) => (b) { b = Neg(a) }
    """)
    view.graph.node[0].domain, view.model.functions[0].domain = ours, theirs
    fresh = GraphView(view.model, view.graph)
    assert fresh.call(fresh.nodes[0]).nodes[0].proto.op_type == "Neg"


def test_opsets_know_both_spellings_of_the_default_domain():
    assert view_of("g () => () { }", '<ir_version: 8, opset_import: ["ai.onnx": 17]>').opsets == {"": 17}
