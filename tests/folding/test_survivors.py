"""An If of which one branch can never survive gives way to the other, which then fails in the same runs."""

from __future__ import annotations

import re

import numpy as np
import onnx
import pytest

from .judging import all_ops, assert_same, bare, fold, judged, model_of, ops, random, runs

WEIGHTS = "float[1, 8, 3] w, float[1, 8, 2] r"
#: What PyTorch exports for x.squeeze(k), and nn.LSTM of what may have a batch or not.
SQUEEZED = """s = Shape(x) n = Gather(s, AXIS) c = Equal(n, one)
    q = If(c) <then_branch = a () => (float[A, 3] t) { t = Squeeze(x, axis) },
               else_branch = b () => (float[A, 3, B] e) { e = Identity(x) }>"""
SQUEEZED_ELSE = """s = Shape(x) n = Gather(s, AXIS) d = Equal(n, one) c = Not(d)
    q = If(c) <then_branch = b () => (float[A, 3, B] e) { e = Identity(x) },
               else_branch = a () => (float[A, 3] t) { t = Squeeze(x, axis) }>"""
LSTM = """sq = Shape(q) rank = Size(sq) flat = Equal(rank, two) batched = Not(flat)
    p = If(batched) <then_branch = f () => (float[1, C, 3] t2) { t2 = Unsqueeze(q, zero) },
                     else_branch = g () => (float[C, 3] e2) { e2 = Identity(q) }>
    u = Unsqueeze(p, zero) y1, y = LSTM<hidden_size = 2>(u, w, r)"""
STORED = "bool on = {1}, int64[1] one = {1}, int64 two = {2}, int64[1] zero = {0}, int64[1] AXIS = {-1}, int64[1] axis = {-1}"
VALUES = """one = Constant<value = int64[1] {1}>() two = Constant<value = int64 {2}>()
    zero = Constant<value = int64[1] {0}>() AXIS = Constant<value = int64[1] {-1}>()
    axis = Constant<value = int64[1] {-1}>()"""


def top(squeezed=SQUEEZED, rest=LSTM, stored=STORED, outputs="float[1, C, 2] y"):
    return f"g (float[N, 3, M] x, {WEIGHTS}) => ({outputs}) <{stored}> {{ {squeezed} {rest} }}"


def feeds(size, **more):
    return {"x": random(4, 3, size), "w": random(1, 8, 3, seed=1), "r": random(1, 8, 2, seed=2), **more}


def accepted(text, one, *others):
    """The branch is in place: the same numbers where the size is 1, and failures everywhere else."""
    source = model_of(text) if isinstance(text, str) else text
    folded = judged(source, one)
    report = fold(source)[1]
    assert report.by_rule()["survivors"] >= 1
    assert any("never survives" in removal.reason for removal in report.removals)
    for other in others:
        assert not runs(source, other)
        assert not runs(folded, other)
    return folded


def refused(text, *given):
    source = model_of(text) if isinstance(text, str) else text
    folded = judged(source, *given)
    assert "If" in all_ops(folded)
    assert "survivors" not in fold(source)[1].by_rule()
    return folded


@pytest.mark.parametrize("squeezed", [SQUEEZED, SQUEEZED_ELSE])
def test_the_branch_of_the_wrong_rank_goes(squeezed):
    folded = accepted(top(squeezed), feeds(1), feeds(2), feeds(0), feeds(5))
    assert ops(folded) == ["Squeeze", "Unsqueeze", "LSTM"]


@pytest.mark.parametrize(("asked", "squeezed"), [(2, 2), (-1, 2), (2, -1)])
def test_an_axis_that_is_counted_from_the_other_end(asked, squeezed):
    stored = STORED.replace("AXIS = {-1}", f"AXIS = {{{asked}}}").replace("axis = {-1}", f"axis = {{{squeezed}}}")
    accepted(top(stored=stored), feeds(1), feeds(2))


@pytest.mark.parametrize(
    "condition",
    [
        "s = Shape(x) n = Slice(s, AXIS, far, zero) c = Equal(n, one)",
        "s = Shape(x) n = Slice(s, AXIS, far) m = Squeeze(n, zero) c = Equal(one, m)",
        "n = Shape<start = -1>(x) c = Equal(n, one)",
        "n = Shape<start = 2, end = 3>(x) c = Equal(n, one)",
        "s = Shape(x) n = Gather(s, AXIS) m = Cast<to = 1>(n) c = Equal(m, onef)",
        "s = Shape(x) n = Gather(s, AXIS) d = Equal(n, one) d2 = Not(d) c = Not(d2)",
        "s = Shape(x) n = Gather(s, AXIS) d = Equal(n, one) d2 = Cast<to = 6>(d) c = Cast<to = 9>(d2)",
    ],
)
def test_other_ways_to_ask_for_the_size(condition):
    stored = f"{STORED}, int64[1] far = {{9223372036854775807}}, float onef = {{1}}"
    squeezed = SQUEEZED[SQUEEZED.index("q = If") :]
    accepted(top(f"{condition} {squeezed}", stored=stored), feeds(1), feeds(2))


def test_axes_as_an_attribute():
    text = (
        top()
        .replace("Squeeze(x, axis)", "Squeeze<axes = [-1]>(x)")
        .replace("Unsqueeze(q, zero)", "Unsqueeze<axes = [0]>(q)")
        .replace("Unsqueeze(p, zero)", "Unsqueeze<axes = [0]>(p)")
    )
    accepted(f'<ir_version: 6, opset_import: ["": 11]> {text}', feeds(1), feeds(2))


def test_axes_that_are_squeezed_besides():
    text = top(stored=STORED.replace("int64[1] axis = {-1}", "int64[2] axis = {0, -1}"))
    text = text.replace("float[A, 3] t", "float[3] t").replace("Unsqueeze(p, zero)", "Unsqueeze(p, both)")
    text = text.replace("int64[1] zero", "int64[2] both = {0, 1}, int64 lone = {1}, int64[1] zero")
    text = text.replace("Equal(rank, two)", "Equal(rank, lone)").replace("float[C, 3] e2", "float[3] e2")
    one = {**feeds(1), "x": random(1, 3, 1)}
    accepted(text, one, feeds(2), {**feeds(2), "x": random(1, 3, 2)}, feeds(1))


def test_two_ifs_of_one_condition_go_together():
    rest = f"""{LSTM} v = If(c) <then_branch = h () => (float[1, C, 2] t3) {{ t3 = Neg(y) }},
        else_branch = i () => (float[1, C, 2] e3) {{ e3 = Abs(y) }}>"""
    folded = accepted(top(rest=rest, outputs="float[1, C, 2] v"), feeds(1), feeds(2))
    assert "Neg" in ops(folded)
    assert "If" not in ops(folded)


def test_in_a_branch_of_another_if():
    text = f"""g (float[N, 3, M] x, bool outer, {WEIGHTS}) => (float[1, C, 2] z) <{STORED}> {{
        z = If(outer) <then_branch = o () => (float[1, C, 2] y) {{ {SQUEEZED} {LSTM} }},
                       else_branch = i () => (float[1, C, 2] m) {{ k = Transpose<perm = [1, 0, 2]>(x)
                           l = Slice(k, zero, two1, two1) m = ReduceSum(l, zero) }}> }}"""
    text = text.replace("int64 two", "int64[1] two1 = {2}, int64 two")
    yes, no = {"outer": np.array(True)}, {"outer": np.array(False)}
    source = model_of(text)
    folded = accepted(source, feeds(1, **yes), feeds(2, **yes))
    assert all_ops(folded).count("If") == 1
    for size in (1, 2, 5):
        assert runs(source, feeds(size, **no)) == runs(folded, feeds(size, **no))


@pytest.mark.parametrize("outside", [True, False])
def test_in_the_body_of_a_loop(outside):
    before = SQUEEZED[: SQUEEZED.index("q = If")]
    inside = SQUEEZED[SQUEEZED.index("q = If") :] if outside else SQUEEZED
    text = f"""g (float[N, 3, M] x, int64 trips, {WEIGHTS}) => (float[R, 1, C, 2] z) <{STORED}> {{
        {before if outside else ""}
        z = Loop(trips, on) <body = o (int64 i, bool go) => (bool still, float[1, C, 2] y) {{
            still = Identity(go) {inside} {LSTM} }}> }}"""
    source = model_of(text)
    folded = accepted(source, feeds(1, trips=np.array(2)), feeds(2, trips=np.array(2)))
    assert "If" not in all_ops(folded)
    assert_same(source, folded, feeds(2, trips=np.array(0)))


def test_of_a_value_that_a_loop_carries():
    text = f"""g (float[N, 3, M] x, int64 trips, {WEIGHTS}) => (float[N, 3, M] z, float[R, 1, C, 2] more) <{STORED}> {{
        z, more = Loop(trips, on, x) <body = o (int64 i, bool go, float[D, E, F] x2)
            => (bool still, float[D, E, F] n2, float[1, C, 2] y) {{
            still = Identity(go) n2 = Neg(x2) {SQUEEZED.replace("(x", "(x2")} {LSTM} }}> }}"""
    accepted(text, feeds(1, trips=np.array(2)), feeds(2, trips=np.array(2)))


def test_weights_that_stand_beside_it():
    """In the graph and in the body; where they are stored shifts no node."""
    body = f"""v = Mul(x, k) {SQUEEZED.replace("(x", "(v")} {LSTM}"""
    text = f"""g (float[N, 3, M] x, int64 trips, {WEIGHTS}) => (float[R, 1, C, 2] z) <{STORED}, float h = {{3}}> {{
        o1 = Mul(x, h)
        z = Loop(trips, on) <body = o (int64 i, bool go) => (bool still, float[1, C, 2] y) <float k = {{2}}> {{
            still = Identity(go) {body.replace("(x, k)", "(o1, k)")} }}> }}"""
    folded = accepted(text, feeds(1, trips=np.array(2)), feeds(2, trips=np.array(2)))
    assert "If" not in all_ops(folded)


def test_in_a_local_function():
    text = f"""g (float[N, 12] x, {WEIGHTS}) => (float[1, C, 2] z) {{ z = local.f(x, w, r) }}
        <domain: "local", opset_import: ["": 21]> f (flat_x, w, r) => (y) {{ {VALUES}
            shape = Constant<value = int64[3] {{4, 3, -1}}>() x = Reshape(flat_x, shape) {SQUEEZED} {LSTM} }}"""
    one, two = feeds(1), feeds(2)
    folded = accepted(text, {**one, "x": random(1, 12)}, {**two, "x": random(2, 12)})
    assert all_ops(folded).count("If") == 1  # that of the rank stays: of values in functions a fold knows nothing


def test_in_a_branch_in_a_local_function():
    text = f"""g (float[N, 12] x, bool outer, {WEIGHTS}) => (float[1, C, 2] z) {{ z = local.f(x, outer, w, r) }}
        <domain: "local", opset_import: ["": 21]> f (flat_x, outer, w, r) => (z) {{ {VALUES}
            shape = Constant<value = int64[3] {{4, 3, -1}}>() x = Reshape(flat_x, shape)
            z = If(outer) <then_branch = o () => (y) {{ {SQUEEZED} {LSTM} }},
                           else_branch = i () => (m) {{ m = Constant<value = float[1, 1, 2] {{1, 2}}>() }}> }}"""
    yes = {"outer": np.array(True)}
    folded = accepted(text, {**feeds(1), "x": random(1, 12), **yes}, {**feeds(2), "x": random(2, 12), **yes})
    assert all_ops(folded).count("If") == 2


def test_a_rank_that_other_operators_refuse():
    rest = "m = ReduceSum<keepdims = 0>(r, zero) k = Slice(m, zero, three) y1 = Gemm(q, k) y = Neg(y1)"
    text = top(rest=rest, outputs="float[A, 2] y", stored=f"{STORED}, int64[1] three = {{3}}")
    folded = accepted(text, feeds(1), feeds(2))
    assert "Squeeze" in ops(folded)
    assert "If" not in ops(folded)


def test_names_that_the_branch_shares_with_the_graph():
    text = top(SQUEEZED.replace("{ t = Squeeze(x, axis) }", "{ v = Squeeze(x, axis) t = Neg(v) }"))
    text = (
        text.replace("LSTM<", "v = Neg(u) y1, y = LSTM<", 1).replace("y1, y = v", "v").replace("(u, w, r)", "(v, w, r)")
    )
    accepted(text, feeds(1), feeds(2))


# what stays -----------------------------------------------------------------------------------------------------------


def test_another_output_that_the_branch_reaches():
    refused(top(rest=f"{LSTM} z = Neg(q)", outputs="float[1, C, 2] y, float[A, 3] z"), feeds(1))


def test_another_output_that_only_its_rank_reaches():
    rest = f"""{LSTM} z = If(batched) <then_branch = h () => (float[2] t3) {{ t3 = Constant<value = float[2] {{1, 2}}>() }},
        else_branch = i () => (float[2] e3) {{ e3 = Constant<value = float[2] {{3, 4}}>() }}>"""
    refused(top(rest=rest, outputs="float[1, C, 2] y, float[2] z"), feeds(1))


def test_a_result_of_the_if_that_is_an_output():
    refused(top(outputs="float[1, C, 2] y, float[A, 3] q"), feeds(1))


def test_a_failing_node_that_nobody_reads():
    source = model_of(top(rest=f"{LSTM} z = ReduceMax<keepdims = 0>(q)", outputs="float z"))
    source.graph.node[-2].domain = "ai.onnx"
    refused(source, feeds(1))


def test_a_failing_node_in_a_branch():
    rest = """v = If(deep) <then_branch = h () => (float[1, C, 2] y) {
            u = Unsqueeze(q, zero) y1, y = LSTM<hidden_size = 2>(u, w, r) },
        else_branch = i () => (float[1, 1, 2] e3) { e3 = Constant<value = float[1, 1, 2] {1, 2}>() }>"""
    text = top(rest=rest, outputs="float[1, C, 2] v").replace("float[N, 3, M] x", "float[N, 3, M] x, bool deep")
    refused(text, feeds(1, deep=np.array(True)), feeds(1, deep=np.array(False)), feeds(2, deep=np.array(False)))


def test_a_failing_node_whose_result_only_a_branch_reads():
    rest = f"""{LSTM} v = If(deep) <then_branch = h () => (float[1, C, 2] t3) {{ t3 = Neg(y) }},
        else_branch = i () => (float[1, 1, 2] e3) {{ e3 = Constant<value = float[1, 1, 2] {{1, 2}}>() }}>"""
    text = top(rest=rest, outputs="float[1, C, 2] v").replace("float[N, 3, M] x", "float[N, 3, M] x, bool deep")
    refused(text, feeds(1, deep=np.array(True)))


def test_another_value_is_squeezed():
    text = top().replace("Squeeze(x, axis)", "Squeeze(x2, axis)").replace("s = Shape(x)", "x2 = Neg(x) s = Shape(x)")
    refused(text, feeds(1))


def test_a_value_of_the_branch_that_only_is_called_alike():
    source = model_of(top().replace("{ t = Squeeze(x, axis) }", "{ x3 = Neg(x) t = Squeeze(x3, axis) }"))
    refused(source, feeds(1))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("int64[1] one = {1}", "int64[1] one = {2}"),  # asks for another size
        ("int64[1] AXIS = {-1}", "int64[1] AXIS = {0}"),  # of another axis
        ("int64[1] AXIS = {-1}", "int64[1] AXIS = {-2}"),
        ("c = Equal(n, one)", "c = Greater(one, n)"),
        ("c = Equal(n, one)", "d = Equal(n, one) c = Not(d)"),  # squeezes where the size is another
        ("{ t = Squeeze(x, axis) }", "{ t = Squeeze(x) }"),  # which never fails
        ("{ t = Squeeze(x, axis) }", "{ k = Squeeze(x, axis) t = ReduceMax<keepdims = 0>(x, axis) }"),
        ("Identity(x)", "Squeeze(x, axis)"),
        ("Identity(x)", "ReduceMean<keepdims = 0>(x, axis)"),  # of the right rank
    ],
)
def test_conditions_and_branches_that_prove_nothing(old, new):
    text = top().replace(old, new).replace("float[N, 3, M] x", "float[N, K, M] x")
    source = model_of(text)
    folded = judged(source, *(given for given in map(feeds, (0, 1, 2)) if runs(source, given)))
    assert "survivors" not in fold(source)[1].by_rule()
    for size in (0, 1, 2, 3):
        assert runs(source, feeds(size)) == runs(folded, feeds(size))


def test_a_size_that_a_caller_may_replace():
    text = top(stored=STORED.replace("int64[1] AXIS = {-1}, ", "")).replace(") => (", ", int64[1] AXIS) => (", 1)
    source = model_of(text)
    source.graph.initializer.append(onnx.numpy_helper.from_array(np.array([-1]), "AXIS"))
    refused(source, feeds(1))


def test_a_rank_that_is_only_declared():
    """The rank of what a custom operator makes is told by value_info alone; that may be stale."""
    rest = "k = custom.Same(q) y1, y = LSTM<hidden_size = 2>(k, w, r)"
    source = model_of(top(rest=rest))
    source.graph.value_info.append(onnx.helper.make_tensor_value_info("k", 1, ["A", 3, "B", 1]))
    assert "If" in ops(bare(source))


def test_a_source_whose_rank_is_only_declared():
    source = model_of(top(SQUEEZED.replace("(x", "(k"), f"{LSTM}").replace("s = Shape", "k = custom.Same(x) s = Shape"))
    source.graph.value_info.append(onnx.helper.make_tensor_value_info("k", 1, ["A", 3, "B"]))
    assert "If" in ops(bare(source))


def test_a_rank_that_only_the_input_of_a_body_declares():
    text = f"""g (float[N, 3, M] x, int64 trips, {WEIGHTS}) => (float z, float[R, 1, C, 2] more) <{STORED}> {{
        z, more = Loop(trips, on, x) <body = o (int64 i, bool go, float[D, E, F] x2) => (bool still, float n2, float[1, C, 2] y) {{
            still = Identity(go) n2 = Neg(x2) {SQUEEZED.replace("(x", "(x2")} {LSTM} }}> }}"""
    source = model_of(text)
    source.graph.input[0].type.tensor_type.ClearField("shape")
    source.graph.output[0].type.tensor_type.ClearField("shape")
    assert "If" in all_ops(bare(source))


def test_a_source_whose_rank_nobody_knows():
    text = top().replace("float[N, 3, M] x", "float x")
    source = model_of(text)
    source.graph.input[0].type.tensor_type.ClearField("shape")
    refused(source, feeds(1))


def test_a_branch_that_survives():
    rest = "y = Softmax(q)"
    source = model_of(top(rest=rest, outputs="float[A, 3] y"))
    refused(source, feeds(1))


def test_a_guard_that_other_passes_would_remove():
    """With the Squeeze in place the rank is known, and nobody needs the value any more: a failure would become a number."""
    rest = """sq = Shape(q) rank = Size(sq) flat = Equal(rank, two)
        y = If(flat) <then_branch = f () => (float[2] t2) { t2 = Constant<value = float[2] {1, 2}>() },
                      else_branch = g () => (float[D] e2) { k = Gemm(q, r2) e2 = Reshape(k, minus) }>"""
    source = model_of(
        top(rest=rest, outputs="float[D] y", stored=f"{STORED}, int64[1] minus = {{-1}}, float[3, 1] r2 = {{1, 2, 3}}")
    )
    folded = judged(source, feeds(1))
    assert "If" in ops(folded)
    assert runs(source, feeds(2)) == runs(folded, feeds(2))


def test_another_if_of_the_condition_that_reaches_another_output():
    rest = f"""{LSTM} z = If(c) <then_branch = h () => (float[2] t3) {{ t3 = Constant<value = float[2] {{1, 2}}>() }},
        else_branch = i () => (float[2] e3) {{ e3 = Constant<value = float[2] {{3, 4}}>() }}>"""
    refused(top(rest=rest, outputs="float[1, C, 2] y, float[2] z"), feeds(1))


def test_a_guard_that_the_next_exchange_would_remove():
    """Where the second is opened too, the rank of `v` is known, and the first Squeeze is needed by nobody."""
    first = SQUEEZED.replace("float[A, 3, B] e", "float[A, 3, B] e0").replace("e = ", "e0 = ")
    second = SQUEEZED.replace("(x", "(o")
    for name in ("s", "n", "c", "q", "t", "e"):
        second = re.sub(rf"\b{name}\b(?! =? ?\{{)", f"{name}2", second)
    rest = "m = Gemm(q, k) v = Add(m, q2) d = Shape(v) f = Size(d) h = Cast<to = 1>(f) p = Gemm(q2, k) y = Mul(p, h)"
    stored = f"{STORED}, float[3, 3] k = {{1, 2, 3, 4, 5, 6, 7, 8, 9}}"
    text = top(f"{first} {second}", rest, stored, "float[A, 3] y").replace("x, float", "x, float[4, 3, L] o, float", 1)
    source = model_of(text)
    sizes = [feeds(one, o=random(4, 3, other, seed=5)) for one in (1, 2) for other in (1, 2)]
    folded = judged(source, sizes[0])
    assert fold(source)[1].by_rule()["survivors"] == 1
    assert [runs(folded, given) for given in sizes] == [runs(source, given) for given in sizes] == [True] + [False] * 3


def test_neither_branch_survives():
    """What fails in every run stays as it is: with one branch in place, inference would refuse the model."""
    source = model_of(
        top(
            rest="m = Gemm(q, k) u = Conv(q, w) y = Add(m, u)",
            stored=f"{STORED}, float[3, 3] k = {{1, 2, 3, 4, 5, 6, 7, 8, 9}}",
        )
    )
    assert "If" in ops(bare(source))


def test_training_reads_what_it_likes():
    source = model_of(top())
    info = source.training_info.add()
    info.update_binding.add(key="w", value="q")
    assert "If" in ops(bare(source))


def test_the_pass_can_be_left_out():
    folded, report = fold(top(), skip=["survivors"])
    assert ops(folded).count("If") == 2
    assert "survivors" not in report.by_rule()
