"""Functions, nodes with several outputs, omitted inputs."""

from onnx import helper, numpy_helper

from .judging import all_ops, judged, model_of, ops, random

X = {"x": random(2)}


def test_a_function_with_attribute_references_is_folded_call_by_call():
    folded = judged(
        """g (float[2] x) => (float[2] y, float[2] z) {
        y = local.f<k = [1.0, 2.0]>(x) z = local.f<k = [3.0, 4.0]>(x) }
        <domain: "local", opset_import: ["": 21]> f <k> (a) => (b) {
          c = Constant<value_floats: floats = @k>() d = Add(c, c) w = Constant<value = float[2] {1, 2}>() v = Mul(w, w)
          e = Add(d, v) b = Add(a, e) }""",
        X,
    )
    assert "Mul" not in all_ops(folded)
    assert ops(folded) == ["f", "f"]


def test_a_branch_with_attribute_references_is_not_taken_for_constant():
    text = """g (float[2] x) => (float[2] y, float[2] z) { y = local.f<k = 0.5>(x) z = local.f<k = 2.0>(x) }
        <domain: "local", opset_import: ["": 21]> f <k> (a) => (b) {
          w = Constant<value = float[2] {-1, 2}>() c = Constant<value = bool {1}>()
          v = If(c) <then_branch = t () => (r) { r = LeakyRelu<alpha: float = @k>(w) },
                     else_branch = e () => (r) { r = Identity(w) }>
          b = Add(a, v) }"""
    judged(text, X)


def test_functions_that_call_functions_and_overloads():
    folded = judged(
        """g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> { k = local.f(w) y = local.h(x, k) }
        <domain: "local", opset_import: ["": 21, "local": 1]> f (a) => (b) { t = local.h(a, a) b = Neg(t) }
        <domain: "local", opset_import: ["": 21]> h (a, c) => (b) { i = Identity(a) b = Add(i, c) }""",
        X,
    )
    assert ops(folded) == ["h"]
    assert [function.name for function in folded.functions] == ["h"]


def test_both_spellings_of_the_default_domain():
    proto = model_of(
        """<ir_version: 10, opset_import: ["ai.onnx": 21]> g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> {
        k = ai.onnx.Add(w, w) i = ai.onnx.Identity(x) y = Add(i, k) }"""
    )
    assert ops(judged(proto, X)) == ["Add"]


def test_a_function_named_like_a_standard_operator_is_what_it_says():
    proto = model_of("g (float[2] x) => (float[2] y) { i = custom.Identity(x) y = Neg(i) }")
    proto.functions.add().CopyFrom(
        helper.make_function(
            "custom", "Identity", ["a"], ["b"], [helper.make_node("Exp", ["a"], ["b"])], [helper.make_opsetid("", 21)]
        )
    )
    assert "Exp" in all_ops(judged(proto, X))


def test_a_node_of_which_one_output_is_unused():
    folded = judged("g (float[4] x) => (float[k] y) <int64[1] two = {2}> { y, i = TopK(x, two) }", {"x": random(4)})
    assert ops(folded) == ["TopK"]


def test_a_constant_split_of_which_one_part_is_too_large():
    proto = model_of(
        """g (float[4] x, float[5000] z) => (float[4] y, float[5000] u) <int64[2] parts = {4, 5000}> {
        w = Constant<value = float[5004] {0}>() v = Neg(w) a, b = Split<axis = 0>(v, parts) y = Add(x, a) u = Add(z, b) }""".replace(
            "float[5004] {0}", "float[1] {0}"
        )
    )
    proto.graph.node[0].attribute[0].t.CopyFrom(numpy_helper.from_array(random(5004)))
    feeds = {"x": random(4), "z": random(5000)}
    folded = judged(proto, feeds, max_size=10000)
    assert "Split" in ops(folded)


def test_omitted_optional_inputs_stay_omitted():
    folded = judged("g (float[2] x) => (float[2] y) <float hi = {1}> { h = Add(hi, hi) y = Clip(x, , h) }", X)
    assert list(folded.graph.node[0].input[:2]) == ["x", ""]
