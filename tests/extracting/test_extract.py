"""What a piece is, and what is refused, on models that can be read."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, numpy_helper
from onnx.parser import parse_model

import onnxbench
from onnxbench.core.model import Model, load, save
from onnxbench.core.type_text import parse_type
from onnxbench.errors import AnswerIsNo, ModelError, NameNotFound, UsageError
from onnxbench.extracting.extract import extract_model
from onnxbench.extracting.request import ExtractRequest

from .graphs import run

HEADER = '<ir_version: 10, opset_import: ["": 21, "loc": 1, "com.example": 1]>'
X = np.array([0.5, -2], np.float32)

CHAIN = """
g (float[N] x, float[N] p, float[N] o) => (float[N] y) <float[1] w = {3}, float[1] o = {4}> {
    [neg] k = Neg(w)
    [add] a = Add(x, w)
    [mul] b = Mul(a, k)
    [plus] c = Add(b, o)
    [sub] d = Sub(c, p)
    [abs] y = Abs(d)
}"""


def extracted(text, feeds=None, header=HEADER, **request):
    model = Model(parse_model(header + text) if isinstance(text, str) else text)
    result = extract_model(model, ExtractRequest(**request), feeds)
    onnx.checker.check_model(result.model.proto, full_check=True)
    return result


def cut(text, **request):
    graph = extracted(text, **request).model.proto.graph
    return names(graph.input), [node.op_type for node in graph.node], names(graph.output)


def names(values):
    return [value.name for value in values]


def refused(text, kind=AnswerIsNo, **request):
    with pytest.raises(kind) as caught:
        extracted(text, **request)
    return caught.value


# --- where it starts and ends


def test_without_a_start_all_that_is_needed_is_kept():
    assert cut(CHAIN, to=["c"]) == (["x", "o"], ["Neg", "Add", "Mul", "Add"], ["c"])
    assert extracted(CHAIN, to=["c"]).report.notes == []


def test_between_two_values():
    assert cut(CHAIN, from_=["a"], to=["c"]) == (["o", "a"], ["Neg", "Mul", "Add"], ["c"])


def test_from_alone_goes_to_every_output_that_depends_on_it():
    text = "g (float[2] x, float[2] z) => (float[2] y, float[2] q) { a = Neg(x) y = Abs(a) q = Neg(z) }"
    assert cut(text, from_=["a"]) == (["a"], ["Abs"], ["y"])


def test_a_node_means_what_it_reads_where_it_starts_and_what_it_makes_where_it_ends():
    assert cut(CHAIN, from_=["mul"], to=["plus"]) == (["o", "a"], ["Neg", "Mul", "Add"], ["c"])


def test_missing_inputs_are_listed_with_the_command_that_adds_them():
    error = refused(CHAIN, from_=["b"], to=["y"])
    assert error.code == "OB102"
    assert "'p'" in error.message
    assert "--from b --to y --from p" in error.hint
    assert "--auto-inputs" in error.hint


def test_missing_inputs_are_added_on_request():
    result = extracted(CHAIN, from_=["b"], to=["y"], auto_inputs=True)
    assert names(result.model.proto.graph.input) == ["p", "o", "b"]
    assert "inputs were added: p" in result.report.notes


def test_a_start_that_is_not_needed_is_a_note():
    result = extracted(CHAIN, from_=["a", "p"], to=["c"])
    assert names(result.model.proto.graph.input) == ["o", "a"]
    assert [note for note in result.report.notes if "--from p" in note]


def test_a_weight_may_be_a_start_and_is_an_input_then():
    result = extracted(CHAIN, from_=["x", "w"], to=["a"])
    graph = result.model.proto.graph
    assert (names(graph.input), names(graph.initializer)) == (["x", "w"], [])
    assert run(result.model.proto, {"x": X, "w": np.float32([1])})["a"].tolist() == (X + 1).tolist()


def test_an_overridable_initializer_stays_one_even_where_it_is_named():
    graph = extracted(CHAIN, from_=["b", "o"], to=["c"]).model.proto.graph
    assert names(graph.initializer) == ["o"]
    assert "o" in names(graph.input)


@pytest.mark.parametrize("ends", [["x"], ["w"]])
def test_what_no_node_makes_is_no_piece(ends):
    assert ends[0] in refused(CHAIN, to=ends).message
    assert refused(CHAIN, from_=["a"], to=["a"]).code == "OB102"


def test_an_input_may_be_passed_on_beside_something_else():
    assert cut(CHAIN, to=["x", "a", "w"]) == (["x"], ["Add"], ["x", "a", "w"])


def test_a_node_of_which_one_output_is_the_start():
    text = """g (float[4] x) => (float[2] y) { a, b = Split<num_outputs = 2>(x) c = Neg(a) y = Add(c, b) }"""
    result = extracted(text, from_=["a", "x"], to=["y"])
    assert names(result.model.proto.graph.input) == ["x", "a"]
    got = run(result.model.proto, {"x": np.float32([9, 9, 1, 2]), "a": X})["y"]
    assert got.tolist() == (-X + np.float32([1, 2])).tolist()


def test_before_ir_4_initializers_stay_inputs_too():
    text = "g (float[2] x, float[2] w) => (float[2] y) <float[2] w = {1, 2}> { a = Neg(x) y = Add(a, w) }"
    graph = extracted(text, header='<ir_version: 3, opset_import: ["": 8]>', from_=["a"]).model.proto.graph
    assert (names(graph.input), names(graph.initializer)) == (["w", "a"], ["w"])


def test_weights_become_inputs_on_request():
    result = extracted(CHAIN, to=["c"], weights_as_inputs=True)
    assert names(result.model.proto.graph.input) == ["x", "o", "w"]
    assert [port.source for port in result.report.inputs] == ["input", "weight", "weight"]


# --- blocks

BLOCKS = """
g (float[N, 4] x) => (float[M] y) <float[4] w = {1, 2, 3, 4}> {
    ["/shape"] s = Constant<value = int64[1] {-1}>()
    ["/one/Add"] a = Add(x, w)
    ["/two/Mul"] b = Mul(a, a)
    ["/two/Reshape"] c = Reshape(b, s)
    ["/three/Abs"] d = Abs(c)
    ["/three/Neg"] e = Neg(c)
    ["/three/Add"] y = Add(d, e)
}"""


def test_a_block_by_name_brings_the_constants_that_it_reads():
    assert cut(BLOCKS, scopes=["/two"]) == (["a"], ["Constant", "Mul", "Reshape"], ["c"])


def test_blocks_by_operator_node_and_neighbourhood():
    assert cut(BLOCKS, ops=["Add"])[1:] == (["Add", "Add"], ["a", "y"])
    assert cut(BLOCKS, nodes=["/two/Mul", "/three/*"])[1] == ["Mul", "Abs", "Neg", "Add"]
    assert cut(BLOCKS, around=["/two/Mul"], hops=1)[1] == ["Constant", "Add", "Mul", "Reshape"]
    assert cut(BLOCKS, around=["/two/Mul"], hops=0)[1] == ["Mul"]


def test_what_a_block_passes_on_is_returned_even_if_it_reads_it_itself():
    text = "g (float[2] x) => (float[2] y) { [b1] a = Neg(x) [b2] b = Abs(a) y = Add(a, b) }"
    assert cut(text, nodes=["b1", "b2"])[2] == ["a", "b"]


def test_one_way_at_once():
    assert refused(CHAIN, UsageError, to=["c"], nodes=["mul"]).code == "OB201"
    assert refused(CHAIN, UsageError).code == "OB201"


# --- bodies and functions

NESTED = """
g (float[2] x, bool c) => (float[2] y) <float[2] w = {1, 2}> {
    a = Neg(x)
    k = Constant<value = float[2] {5, 6}>()
    y = If(c) <then_branch = t () => (float[2] p) { q = Add(a, w) r = Mul(q, k) p = Abs(r) },
               else_branch = e () => (float[2] s) { s = Neg(a) }>
}"""


def test_a_value_inside_a_branch_is_cut_there():
    result = extracted(NESTED, from_=["a"], to=["r"])
    graph = result.model.proto.graph
    assert (names(graph.input), [n.op_type for n in graph.node]) == (["a"], ["Add", "Mul"])
    assert set(names(graph.initializer)) == {"w", "k"}
    assert run(result.model.proto, {"a": X})["r"].tolist() == (np.add(X, [1, 2]) * [5, 6]).tolist()
    assert "If" in result.report.where


def test_captures_become_inputs_of_a_piece_of_a_branch():
    assert cut(NESTED, to=["s"]) == (["a"], ["Neg"], ["s"])


def test_one_piece_is_of_one_graph():
    assert "different graphs" in refused(NESTED, to=["r", "s"]).message
    assert "another graph" in refused(NESTED, from_=["q"], to=["s"]).message


def test_a_name_in_several_bodies_is_refused():
    text = """g (float[2] x, bool c) => (float[2] y) {
        y = If(c) <then_branch = t () => (float[2] p) { q = Neg(x) p = Abs(q) },
                   else_branch = e () => (float[2] s) { q = Neg(x) s = Neg(q) }> }"""
    error = refused(text, NameNotFound, to=["q"])
    assert "then_branch" in error.message
    assert "else_branch" in error.message


LOOP = """
g (int64 n, float[2] x, float[2] w) => (float[2] y, float[K, 2] z) {
    y, z = Loop(n, , x) <body = b (int64 i, bool k, float[2] v) => (bool k2, float[2] v2, float[2] u) {
        k2 = Identity(k) f = Cast<to = 1>(i) g = Mul(f, w) h = Add(v, g) v2 = Add(h, w) u = Neg(v2) }>
}"""


def test_a_piece_of_a_loop_body_takes_what_goes_round():
    result = extracted(LOOP, to=["u"], with_data=True)
    assert names(result.model.proto.graph.input) == ["i", "v", "w"]
    inputs, outputs = result.data.inputs, result.data.outputs
    assert int(inputs["i"]) == 0
    np.testing.assert_allclose(outputs["u"], -(inputs["v"] + inputs["w"]), rtol=1e-6)


def test_a_piece_of_a_body_that_is_not_run_has_no_data():
    feeds = {"n": np.array(0), "x": X, "w": X}
    with pytest.raises(ModelError, match="is not run"):
        extracted(LOOP, lambda _: feeds, to=["u"], with_data=True)


SCAN = """
g (float[2] s, float[3, 2, 4] x, float[2] w) => (float[2] e, float[3, 2] y) {
    e, y = Scan<num_scan_inputs = 1, scan_input_axes = [2], scan_input_directions = [1], body = b (float[2] v, float[3, 2] u)
    => (float[2] v2, float[2] o) { q = ReduceSum<keepdims = 0>(u) v2 = Add(v, q) o = Mul(v2, w) }>(s, x)
}"""


def test_a_piece_of_a_scan_body_takes_a_slice():
    feeds = {"s": X, "x": np.arange(24, dtype=np.float32).reshape(3, 2, 4), "w": X}
    text = SCAN.replace("float[3, 2] y)", "float[4, 2] y)")
    result = extracted(text, lambda _: feeds, to=["o"], with_data=True)
    np.testing.assert_array_equal(result.data.inputs["u"], feeds["x"][:, :, -1])
    np.testing.assert_array_equal(result.data.outputs["o"], (X + feeds["x"][:, :, -1].sum()) * X)


FUNCTIONS = """
g (float[N] x, bool c) => (float[N] y) {
    a = Neg(x)
    y = If(c) <then_branch = t () => (float[N] p) { p = loc.Outer(a) }, else_branch = e () => (float[N] s) { s = Abs(a) }>
}
<domain: "loc", opset_import: ["": 21, "loc": 1]>
Outer (u) => (v) { mid = Neg(u) v = loc.Inner(mid) }
<domain: "loc", opset_import: ["": 21]>
Inner (u) => (v) { v = Abs(u) }
<domain: "loc", opset_import: ["": 21]>
Unused (u) => (v) { v = Abs(u) }
"""


def test_functions_that_branches_call_come_along_with_those_that_they_call():
    result = extracted(FUNCTIONS, from_=["a", "c"], to=["y"])
    assert [f.name for f in result.model.proto.functions] == ["Outer", "Inner"]
    assert result.report.functions == ["loc::Outer", "loc::Inner"]
    assert list(extracted(FUNCTIONS, to=["a"]).model.proto.functions) == []


def test_a_name_in_a_function_is_said_to_live_there():
    error = refused(FUNCTIONS, NameNotFound, to=["mid"])
    assert (error.code, "lives inside the function 'loc::Outer'" in error.message) == ("OB303", True)
    assert "Outer" in error.hint


def test_unknown_names_suggest_the_nearest():
    assert "/two/Reshape" in refused(BLOCKS, NameNotFound, to=["/two/Reshap"]).hint


# --- types

UNTOLD = "g (float[2] x) => (float[2] y) { z = com.example.Zap(x) q = com.example.Zip(z) y = com.example.Zap(q) }"


def test_a_type_that_nobody_tells_is_refused_by_name_with_what_to_type():
    error = refused(UNTOLD, from_=["z"], to=["q"])
    assert error.code == "OB102"
    assert "'z', 'q'" in error.message
    assert "--value-type z=float32[1,3]" in error.hint.replace("'", "")


def test_the_user_tells_types():
    types = {"z": parse_type("float32[1,N]"), "q": parse_type("sequence(int64[?])")}
    graph = extracted(UNTOLD, from_=["z"], to=["q"], value_types=types).model.proto.graph
    assert graph.input[0].type == types["z"]
    assert graph.output[0].type == types["q"]


def test_told_types_are_inferred_on():
    text = "g (float[2] x) => (float[2] y) { z = com.example.Zap(x) q = Neg(z) y = com.example.Zap(q) }"
    graph = extracted(text, from_=["z"], to=["q"], value_types={"z": parse_type("float16[3]")}).model.proto.graph
    assert graph.output[0].type == parse_type("float16[3]")
    graph = extracted(text, from_=["q"], to=["y"], value_types={n: parse_type("int8[]") for n in "zy"})
    assert graph.model.proto.graph.input[0].type == parse_type("int8[]")


def test_a_type_that_only_a_run_tells_is_recorded():
    text = "g (float[N] x, int64[K] s) => (float[M] y) { a = Reshape(x, s) b = Neg(a) c = Abs(b) y = Flatten(c) }"
    text = text.replace("y = Flatten(c)", "f = Constant<value = int64[1] {-1}>() y = Reshape(c, f)")
    feeds = {"x": np.ones(6, np.float32), "s": np.array([2, 3, 1])}
    result = extracted(text, lambda _: feeds, from_=["b"], to=["c"])
    assert result.model.proto.graph.input[0].type == parse_type("float[?,?,?]")
    assert [port.told_by for port in result.report.inputs] == ["recorded"]
    assert result.report.outputs[0].type == "float[?, ?, ?]"  # nothing is made up


def test_sequences_and_optionals_are_cut():
    text = """g (float[N] x) => (float[M] y) {
        s = SequenceConstruct(x, x) o = Optional(s) t = OptionalGetElement(o) y = ConcatFromSequence<axis = 0>(t) }"""
    graph = extracted(text, from_=["s"], to=["t"]).model.proto.graph
    assert graph.input[0].type.WhichOneof("value") == "sequence_type"
    result = extracted(text, from_=["t"], with_data=True)
    assert isinstance(result.data.inputs["t"], list)


def test_sizes_that_go_through_shape_arithmetic_are_inferred():
    text = "g (float[N, 3] x) => (float[N, 3] y) { a = Neg(x) s = Shape(a) b = Reshape(a, s) y = Abs(b) }"
    graph = extracted(text, from_=["a"], to=["b"]).model.proto.graph
    assert graph.output[0].type == parse_type("float[N,3]")


@pytest.mark.parametrize("text", ["float32", "float[1", "flat32[1]", "float32[1,,3]", "sequence(x)", "", "[3]"])
def test_what_is_no_type_is_refused(text):
    with pytest.raises(UsageError):
        parse_type(text)


# --- what comes along


def test_names_docs_and_metadata_are_kept():
    model = parse_model(HEADER + CHAIN)
    model.doc_string, model.graph.doc_string = "model doc", "graph doc"
    model.metadata_props.add(key="k", value="v")
    model.graph.input[0].doc_string = "the picture"
    model.graph.input[0].metadata_props.add(key="unit", value="m")
    model.graph.node[1].metadata_props.add(key="line", value="m.py:3")
    made = extracted(model, to=["c"]).model.proto
    assert (made.doc_string, made.graph.doc_string, made.metadata_props[0].key) == ("model doc", "graph doc", "k")
    assert made.graph.input[0] == model.graph.input[0]
    assert made.graph.node[1] == model.graph.node[1]
    assert made.opset_import == model.opset_import


def test_a_fault_that_the_model_has_too_is_a_note():
    model = parse_model('<ir_version: 10, opset_import: ["": 21]>' + UNTOLD)
    types = {name: parse_type("float[2]") for name in "zq"}
    result = extract_model(Model(model), ExtractRequest(from_=["z"], to=["q"], value_types=types))
    assert [note for note in result.report.notes if "a fault of the model" in note]


def test_a_wrong_type_is_refused_rather_than_written():
    error = refused(CHAIN, from_=["a"], to=["b"], value_types={"a": parse_type("int64[2]")})
    assert (error.code, "would be invalid" in error.message) == ("OB102", True)


def test_the_data_is_that_of_one_run_of_the_whole():
    feeds = {"x": X, "p": X}
    result = extracted(CHAIN, lambda _: feeds, from_=["a"], to=["c"], with_data=True)
    assert result.data.inputs["a"].tolist() == (X + 3).tolist()
    assert result.data.outputs["c"].tolist() == ((X + 3) * -3 + 4).tolist()


def test_a_model_that_cannot_be_run_has_no_data():
    types = {name: parse_type("float[2]") for name in "zq"}
    error = refused(UNTOLD, ModelError, from_=["z"], to=["q"], value_types=types, with_data=True)
    assert error.code == "OB308"


# --- weights in other files


@pytest.fixture
def heavy(tmp_path):
    """Two weights of 2 MB in one file."""
    model = parse_model(HEADER + "g (float[N, 700] x) => (float[N, 700] y) { a = MatMul(x, u) y = MatMul(a, v) }")
    for name, value in (("u", 1), ("v", 2)):
        weight = np.full((700, 700), value, np.float32)
        model.graph.initializer.append(numpy_helper.from_array(weight, name))
    onnx.save(model, tmp_path / "heavy.onnx", save_as_external_data=True, location="heavy.data")
    return load(tmp_path / "heavy.onnx")


def test_weights_are_referenced_in_the_same_folder_and_copied_elsewhere(heavy, tmp_path):
    piece = extract_model(heavy, ExtractRequest(from_=["a"])).model
    save(piece, tmp_path / "piece.onnx")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["heavy.data", "heavy.onnx", "piece.onnx"]
    (tmp_path / "other").mkdir()
    save(piece, tmp_path / "other" / "piece.onnx")
    copied = next((tmp_path / "other").glob("*.data"))
    assert copied.stat().st_size == 700 * 700 * 4
    onnx.checker.check_model(tmp_path / "other" / "piece.onnx", full_check=True)
    whole = onnx.load(tmp_path / "other" / "piece.onnx")
    assert numpy_helper.to_array(whole.graph.initializer[0])[0, 0] == 2


def test_weights_elsewhere_may_become_inputs(heavy):
    result = extract_model(heavy, ExtractRequest(from_=["a"], weights_as_inputs=True, with_data=True))
    assert names(result.model.proto.graph.input) == ["a", "v"]
    assert result.data.inputs["v"][0, 0] == 2


def test_a_weight_that_is_not_there_is_refused(heavy, tmp_path):
    (tmp_path / "heavy.data").unlink()
    with pytest.raises(ModelError) as caught:
        extract_model(heavy, ExtractRequest(from_=["a"]))
    assert caught.value.code == "OB304"


def test_in_memory():
    model = parse_model(HEADER + CHAIN)
    before = model.SerializeToString()
    piece = onnxbench.extract(model, to=["c"], from_=["a"])
    assert names(piece.graph.output) == ["c"]
    assert model.SerializeToString() == before


def test_large_embedded_weights_stay_embedded():
    weight = np.ones((3000, 3000), np.float32)
    text = "g (float[N, 3000] x) => (float[N, 3000] y) { a = Neg(x) y = Mul(a, w) }"
    model = parse_model(HEADER + text)
    model.graph.initializer.append(numpy_helper.from_array(weight, "w"))
    piece = onnxbench.extract(model, from_=["a"])
    assert piece.graph.initializer[0].data_location == TensorProto.DEFAULT
    assert len(piece.graph.initializer[0].raw_data) == weight.nbytes
