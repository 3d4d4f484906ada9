"""An `If` whose condition is known becomes the branch that is taken, and the numbers stay."""

import numpy as np
import onnx
import onnxruntime
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import numpy_helper
from onnx.parser import parse_model

from onnxbench.core.hoist import hoist

HEADER = '<ir_version: 10, opset_import: ["": 21]>'
X = np.array([1, -2], np.float32)


def run(model, **feeds):
    settings_ = onnxruntime.SessionOptions()
    settings_.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    settings_.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), settings_, providers=["CPUExecutionProvider"])
    return [value.tolist() for value in session.run(None, feeds)]


def check_hoisted(text, taken, feeds, left=0):
    """The model hoisted until nothing is left to hoist; its numbers are those of the original."""
    model = parse_model(HEADER + text) if isinstance(text, str) else text
    want = run(model, **feeds)
    made = onnx.ModelProto()
    made.CopyFrom(model)
    while hoist(made.graph, taken):
        pass
    onnx.checker.check_model(made, full_check=True)
    assert sum(node.op_type == "If" for node in made.graph.node) == left
    assert run(made, **feeds) == want
    return made


@pytest.mark.parametrize("truth", [True, False])
def test_the_taken_branch_replaces_the_node(truth):
    text = """g (float[2] x, bool c) => (float[2] y) {
        y = If(c) <then_branch = t () => (float[2] p) { p = Neg(x) }, else_branch = e () => (float[2] p) { p = Abs(x) }>
    }"""
    made = check_hoisted(text, {"c": truth}, {"x": X, "c": np.array(truth)})
    assert [(n.op_type, n.output[0]) for n in made.graph.node] == [("Neg" if truth else "Abs", "y")]


def test_an_unknown_condition_stays():
    model = parse_model(
        HEADER
        + """g (float[2] x, bool c) => (float[2] y) {
        y = If(c) <then_branch = t () => (float[2] p) { p = Neg(x) }, else_branch = e () => (float[2] q) { q = Abs(x) }>
    }"""
    )
    before = model.SerializeToString()
    assert not hoist(model.graph, {"d": True})
    assert model.SerializeToString() == before


def test_names_that_clash_get_a_number():
    text = """g (float[2] x, bool c) => (float[2] y, float[2] z) {
        y = If(c) <then_branch = t () => (float[2] p) { t = Neg(x) u = Exp(t) p = Add(u, t) },
                   else_branch = e () => (float[2] p) { t = Abs(x) p = Exp(t) }>
        z = If(c) <then_branch = t () => (float[2] p) { t = Abs(x) u = Sqrt(t) p = Add(t, u) },
                   else_branch = e () => (float[2] p) { t = Abs(x) p = Exp(t) }>
    }"""
    made = check_hoisted(text, {"c": True}, {"x": X, "c": np.array(True)})
    names = [name for node in made.graph.node for name in node.output]
    assert len(set(names)) == len(names)


def test_a_branch_name_that_a_later_if_uses_too_does_not_shadow_it():
    text = """g (float[2] x, bool c, bool d) => (float[2] y, float[2] z) {
        y = If(c) <then_branch = t () => (float[2] p) { t = Neg(x) p = Exp(t) },
                   else_branch = e () => (float[2] p) { t = Abs(x) p = Exp(t) }>
        z = If(d) <then_branch = t () => (float[2] p) { t = Abs(x) p = Sqrt(t) },
                   else_branch = e () => (float[2] p) { t = Abs(x) p = Exp(t) }>
    }"""
    made = check_hoisted(text, {"c": True}, {"x": X, "c": np.array(True), "d": np.array(True)}, left=1)
    inner = {name for a in made.graph.node[-1].attribute for node in a.g.node for name in node.output}
    assert not inner & {name for node in made.graph.node for name in node.output}


@pytest.mark.parametrize("truth", [True, False])
def test_what_a_branch_hands_on_is_copied(truth):
    text = """g (float[2] x, bool c) => (float[2] y, float[2] z) <float[2] w = {5, 6}> {
        a = Neg(x)
        y, z = If(c) <then_branch = t () => (float[2] a, float[2] w) { },
                      else_branch = e () => (float[2] k, float[2] k) <float[2] k = {7, 8}> { }>
    }"""
    model = parse_model(HEADER + text.replace("float[2] k, float[2] k)", "float[2] k, float[2] x)"))
    branch = model.graph.node[1].attribute[1].g
    branch.output[1].name = "k"
    taken = {"c": truth}
    made = onnx.ModelProto()
    made.CopyFrom(model)
    assert hoist(made.graph, taken)
    onnx.checker.check_model(made, full_check=True)
    want = [[-1, 2], [5, 6]] if truth else [[7, 8], [7, 8]]
    assert run(made, x=X, c=np.array(truth)) == want


def test_a_value_that_is_returned_twice_arrives_twice():
    model = parse_model(
        HEADER
        + """g (float[2] x, bool c) => (float[2] y, float[2] z) {
        y, z = If(c) <then_branch = t () => (float[2] p, float[2] q) { p = Neg(x) q = Abs(x) },
                      else_branch = e () => (float[2] p, float[2] q) { p = Neg(x) q = Abs(x) }>
    }"""
    )
    model.graph.node[0].attribute[0].g.output[1].name = "p"
    assert hoist(model.graph, {"c": True})
    assert run(model, x=X, c=np.array(True)) == [[-1, 2], [-1, 2]]


def test_a_nested_if_becomes_reachable():
    text = """g (float[2] x, bool c) => (float[2] y) {
        y = If(c) <then_branch = t () => (float[2] p) {
                        t = Neg(x)
                        p = If(c) <then_branch = t2 () => (float[2] q) { q = Exp(t) },
                                   else_branch = e2 () => (float[2] q) { q = Abs(t) }> },
                   else_branch = e () => (float[2] p) { p = Abs(x) }>
    }"""
    made = check_hoisted(text, {"c": True}, {"x": X, "c": np.array(True)})
    assert [node.op_type for node in made.graph.node] == ["Neg", "Exp"]


def test_captures_of_nested_bodies_follow_a_renaming():
    text = """g (float[2] x, bool c, bool d) => (float[2] y) {
        t = Exp(x)
        s = If(c) <then_branch = t () => (float[2] p) {
                        t = Neg(x)
                        p = If(d) <then_branch = t2 () => (float[2] q) { r = Add(t, t) q = Neg(r) },
                                   else_branch = e2 () => (float[2] q) { q = Identity(t) }> },
                   else_branch = e () => (float[2] p) { p = Abs(x) }>
        y = Add(s, t)
    }"""
    model = parse_model(HEADER + text)
    for truth in (True, False):
        made = onnx.ModelProto()
        made.CopyFrom(model)
        assert hoist(made.graph, {"c": True})
        want = np.exp(X) + (2 * X if truth else -X)
        assert run(made, x=X, c=np.array(True), d=np.array(truth))[0] == pytest.approx(want.tolist())


def test_an_outer_value_that_a_nested_body_hands_on_follows_a_renaming():
    model = parse_model(
        HEADER
        + """g (float[2] x, bool c, bool d) => (float[2] y) {
        t = Exp(x)
        y = If(c) <then_branch = t () => (float[2] p) {
                        t = Neg(x)
                        p = If(d) <then_branch = t2 () => (float[2] t) { }, else_branch = e2 () => (float[2] x) { }> },
                   else_branch = e () => (float[2] p) { p = Abs(x) }>
    }"""
    )
    assert hoist(model.graph, {"c": True})
    _, negated, inner = model.graph.node
    assert [a.g.output[0].name for a in inner.attribute] == [negated.output[0], "x"]
    assert negated.output[0] not in ("t", "x")


def test_a_nested_body_s_own_value_keeps_its_name():
    model = parse_model(
        HEADER
        + """g (float[2] x, bool c, bool d) => (float[2] y) {
        t = Exp(x)
        y = If(c) <then_branch = t () => (float[2] p) {
                        t = Neg(x)
                        p = If(d) <then_branch = t2 () => (float[2] q) { t = Abs(x) q = Neg(t) },
                                   else_branch = e2 () => (float[2] q) { q = Identity(t) }> },
                   else_branch = e () => (float[2] p) { p = Abs(x) }>
    }"""
    )
    assert hoist(model.graph, {"c": True})
    _, negated, inner = model.graph.node
    then, other = (attribute.g for attribute in inner.attribute)
    assert (then.node[0].output[0], then.node[1].input[0]) == ("t", "t")
    assert other.node[0].input[0] == negated.output[0] != "t"


def test_a_new_name_is_none_that_a_nested_body_has():
    text = """g (float[2] x, bool c, bool d) => (float[2] y) {
        t = Exp(x)
        s = If(c) <then_branch = t () => (float[2] p) {
                        t = Neg(x)
                        p = If(d) <then_branch = t2 () => (float[2] q) { t_2 = Abs(t) q = Add(t_2, t) },
                                   else_branch = e2 () => (float[2] q) { q = Identity(t) }> },
                   else_branch = e () => (float[2] p) { p = Abs(x) }>
        y = Add(s, t)
    }"""
    model = parse_model(HEADER + text)
    assert hoist(model.graph, {"c": True})
    want = (np.abs(X) - X + np.exp(X)).tolist()
    assert run(model, x=X, c=np.array(True), d=np.array(True)) == [pytest.approx(want)]


def test_a_nested_body_that_has_the_name_of_the_output_keeps_its_own():
    """Here `y` of the innermost body is not the `y` that the outer If makes."""
    text = """g (float[2] x, bool c, bool d) => (float[2] y) {
        y = If(c) <then_branch = t () => (float[2] p) {
                        p = Neg(x)
                        k = If(d) <then_branch = t2 () => (float[2] q) { y = Abs(p) q = Exp(y) },
                                   else_branch = e2 () => (float[2] q) { q = Abs(p) }>
                        m = Add(k, k) },
                   else_branch = e () => (float[2] p) { p = Abs(x) }>
    }"""
    model = parse_model(HEADER + text)
    model.graph.output.add().CopyFrom(model.graph.output[0])
    model.graph.output[1].name = "z"
    node = model.graph.node[0]
    node.output.append("z")
    for attribute in node.attribute:
        branch = attribute.g
        branch.output.add().CopyFrom(branch.output[0])
        branch.output[1].name = "m" if attribute.name == "then_branch" else "p"
    assert hoist(model.graph, {"c": True})
    inner = next(n for n in model.graph.node if n.op_type == "If").attribute[0].g
    assert inner.node[0].input[0] != inner.node[0].output[0]
    assert run(model, x=X, c=np.array(True), d=np.array(True)) == [
        pytest.approx((-X).tolist()),
        pytest.approx((2 * np.exp(np.abs(X))).tolist()),
    ]


def test_initializers_of_the_branch_come_along_renamed():
    text = """g (float[2] x, bool c) => (float[2] y) <float[2] w = {5, 6}> {
        a = Add(x, w)
        y = If(c) <then_branch = t () => (float[2] p) <float[2] v = {1, 1}> { p = Add(a, v) },
                   else_branch = e () => (float[2] p) { p = Abs(a) }>
    }"""
    model = parse_model(HEADER + text)
    branch = model.graph.node[1].attribute[0].g
    branch.initializer[0].name = "w"  # another w than outside
    branch.node[0].input[1] = "w"
    sparse = branch.sparse_initializer.add(dims=[2])
    sparse.values.CopyFrom(numpy_helper.from_array(np.array([9], np.float32), "a_sparse"))
    sparse.indices.CopyFrom(numpy_helper.from_array(np.array([1], np.int64), "i"))
    branch.node[0].input[0] = "a_sparse"
    assert hoist(model.graph, {"c": True})
    assert run(model, x=X, c=np.array(True)) == [[1, 10]]


def test_declared_types_come_along_and_none_twice():
    text = """g (float[2] x, bool c) => (float[2] y) <float[2] s, float[2] t> {
        s = If(c) <then_branch = t () => (float[2] p) <float[2] t, float[2] p> { t = Neg(x) p = Exp(t) },
                   else_branch = e () => (float[2] p) { p = Abs(x) }>
        t = Neg(s) y = Exp(t)
    }"""
    made = check_hoisted(text, {"c": True}, {"x": X, "c": np.array(True)})
    names = [value.name for value in made.graph.value_info]
    assert sorted(names) == sorted(set(names))
    assert len(names) == 3


OPERATORS = ["Neg", "Abs", "Sin", "Add", "Mul", "Max"]


@st.composite
def branching_models(draw):
    """A model with nested Ifs over few names, so that they clash."""
    counter = iter(range(10_000))

    def block(visible, depth, size):
        made, lines = list(visible), []
        local = []
        for _ in range(size):
            kind = draw(st.sampled_from([*OPERATORS, "If"] if depth else OPERATORS))
            name = draw(st.sampled_from("stuvw")) if depth < 2 else f"top{next(counter)}"
            if name in made:
                name = f"{name}{next(counter)}"
            if kind == "If":
                parts = []
                for branch in ("then_branch", "else_branch"):
                    inner, inner_local = block(made, depth - 1, draw(st.integers(1, 2)))
                    ends = [n for n in inner_local if n not in made]
                    parts.append(f"{branch} = b () => (float[2] {draw(st.sampled_from(ends))}) {{ {inner} }}")
                condition = draw(st.sampled_from(["c", "d"]))
                lines.append(f"{name} = If({condition}) <{', '.join(parts)}>")
            else:
                arity = 2 if kind in ("Add", "Mul", "Max") else 1
                reads = [draw(st.sampled_from(made)) for _ in range(arity)]
                lines.append(f"{name} = {kind}({', '.join(reads)})")
            made.append(name)
            local.append(name)
        return " ".join(lines), local

    body, local = block(["x"], 2, draw(st.integers(1, 4)))
    return f"{HEADER} g (float[2] x, bool c, bool d) => ({', '.join(f'float[2] {n}' for n in local)}) {{ {body} }}"


@settings(max_examples=60, deadline=None)
@given(branching_models(), st.booleans(), st.booleans(), st.sets(st.sampled_from("cd")))
def test_the_hoisted_model_computes_the_same(text, c, d, known):
    feeds = {"x": X, "c": np.array(c), "d": np.array(d)}
    model = parse_model(text)
    want = run(model, **feeds)
    taken = {name: bool(feeds[name]) for name in known}
    while hoist(model.graph, taken):
        pass
    onnx.checker.check_model(model)
    assert run(model, **feeds) == want
