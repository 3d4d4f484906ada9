"""Where nodes stand: bodies, functions, both spellings of the default domain, and what a model says beside its nodes."""

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper, parser

from onnxbench.converters.options import ConvertOptions
from onnxbench.converters.run import convert_model
from onnxbench.core.model import Model
from onnxbench.errors import ModelError, UsageError

from .judging import assert_same, convert, drawn, model_of, ops, opset_of, run

X = {"x": drawn(2, 3)}
CALLS = """
<ir_version: 8, opset_import: ["": 12, "local": 1]>
g (float[2,3] x) => (float[2,3] y) {{
  a = local.Wrap <axes = [1], low = 0.25> (x)
  y = local.Wrap <axes = [{second}], low = {low}> (a)
}}
<domain: "local", opset_import: ["": 12]>
Wrap <axes, low> (x) => (y) {{
  u = Unsqueeze <axes: ints = @axes> (x)
  v = Squeeze <axes: ints = @axes> (u)
  s = Softmax <axis = 0> (v)
  n = Constant <value_float: float = @low> ()
  y = Sub (s, n)
}}
"""


def test_both_branches_and_what_they_capture():
    body = """g (float[2,3] x, bool c) => (float[2,3] y) {
      t = Relu (x)
      y = If (c) <
        then_branch = then () => (float[2,3] a) { a = Softmax <axis = 0> (t) },
        else_branch = other () => (float[2,3] b) { u = Unsqueeze <axes = [0]> (t) b = Squeeze <axes = [0]> (u) }>
    }"""
    source = model_of(body, 11)
    result, report = convert(source, 13)
    assert report.state == "verified"
    assert {entry.where.split(":")[-1] for entry in report.rewrites} == {"then_branch", "else_branch"}
    assert_same(source, result, *({**X, "c": np.array(truth)} for truth in (True, False)))


@pytest.mark.parametrize("second", [1, 0])
@pytest.mark.parametrize("low", [0.25, 0.5])
def test_functions_whose_attributes_calls_give(second, low):
    source = parser.parse_model(CALLS.format(second=second, low=low))
    result, report = convert(source, 13)
    assert report.state == "verified"
    assert {entry.version for f in result.functions for entry in f.opset_import if not entry.domain} == {13}
    assert_same(source, result, X)


@pytest.mark.parametrize(("second", "low", "copies"), [(1, 0.25, 1), (0, 0.25, 2)])
def test_a_function_is_copied_only_if_its_calls_part(second, low, copies):
    """Going below opset 12 no Constant can refer to an attribute: each kind of call gets a copy."""
    text = CALLS.format(second=second, low=low).replace('"": 12', '"": 13')
    text = text.replace(
        "u = Unsqueeze <axes: ints = @axes> (x)", "k = Constant <value_ints: ints = @axes> () u = Unsqueeze (x, k)"
    )
    source = parser.parse_model(text.replace("v = Squeeze <axes: ints = @axes> (u)", "v = Squeeze (u, k)"))
    result, report = convert(source, 11)
    assert report.state == "verified"
    assert len(result.functions) == copies
    assert_same(source, result, X)


def test_a_function_of_another_opset_follows_too():
    text = """<ir_version: 8, opset_import: ["": 13, "local": 1]>
    g (float[2,3] x) => (float[2,3] y) { y = local.Wave (x) }
    <domain: "local", opset_import: ["": 11]>
    Wave (x) => (y) { y = Sin (x) }"""
    source = parser.parse_model(text)
    result, report = convert(source, 22)
    assert report.state == "verified"
    assert [entry.version for entry in result.functions[0].opset_import] == [22]
    assert_same(source, result, X)


def test_both_spellings_of_the_default_domain_at_once():
    source = model_of("g (float[2,3] x) => (float[2,3] y) { a = Softmax <axis=0> (x) y = Softmax <axis=0> (a) }", 11)
    source.graph.node[0].domain = "ai.onnx"
    source.opset_import.append(helper.make_opsetid("ai.onnx", 11))
    result, _ = convert(source, 13, verify=False)
    assert {entry.domain: entry.version for entry in result.opset_import} == {"": 13, "ai.onnx": 13}
    np.testing.assert_allclose(run(source, X)[0], run(result, X)[0], rtol=1e-4)


def test_a_default_domain_of_two_versions_is_refused():
    source = model_of("g (float[2,3] x) => (float[2,3] y) { y = Relu (x) }", 11)
    source.opset_import.append(helper.make_opsetid("ai.onnx", 12))
    with pytest.raises(ModelError, match="11 and 12"):
        convert(source, 13)


def test_nodes_of_no_opset_are_refused():
    source = parser.parse_model(
        '<ir_version: 8, opset_import: ["local": 1]> g (float[2] x) => (float[2] y) { y = Relu (x) }'
    )
    with pytest.raises(ModelError, match="does not say"):
        convert(source, 13)


def test_unknown_domains_stand_as_they_are():
    source = model_of(
        "g (float[2,3] x) => (float[2,3] y) { a = mine.Odd <k=3> (x) y = Softmax <axis=0> (a) }", 11, more=', "mine": 2'
    )
    result, report = convert(source, 13)
    assert result.graph.node[0] == source.graph.node[0]
    assert opset_of(result, "mine") == 2
    assert report.state in ("certified", "unverified")


def test_new_names_are_nobodys():
    body = "g (float[2,1] x) => (float[2,1] y) { y_axes = Relu (x) z = Squeeze <axes=[1]> (y_axes) y = Unsqueeze <axes=[1]> (z) }"
    source = model_of(body, 11)
    result, _ = convert(source, 13)
    names = [name for node in result.graph.node for name in node.output] + [t.name for t in result.graph.initializer]
    assert len(names) == len(set(names))
    assert_same(source, result, {"x": drawn(2, 1)})


def test_nothing_of_a_model_gets_lost():
    source = model_of("g (float[n,3] x) => (float[n,3] y) { h = Softmax <axis=1> (x) y = Relu (h) }", 11, ir=10)
    source.producer_name, source.doc_string, source.model_version = "tool", "a model", 7
    source.metadata_props.add(key="author", value="me")
    graph = source.graph
    graph.doc_string = "a graph"
    graph.metadata_props.add(key="layer", value="1")
    graph.node[0].name, graph.node[0].doc_string = "first", "a node"
    graph.node[0].metadata_props.add(key="where", value="here")
    graph.input[0].doc_string = "an input"
    graph.input[0].type.denotation = "IMAGE"
    graph.value_info.append(helper.make_tensor_value_info("h", 1, ["n", 3], "in the middle"))
    graph.initializer.append(numpy_helper.from_array(np.float32([1]), "unused"))
    graph.quantization_annotation.add(tensor_name="h").quant_parameter_tensor_names.add(
        key="SCALE_TENSOR", value="unused"
    )
    result, _ = convert(source, 13)
    assert result.graph.node[0].op_type == "Softmax"
    rest = onnx.ModelProto()
    rest.CopyFrom(result)
    rest.opset_import[0].version = 11
    rest.graph.node[0].attribute[0].i = 1
    assert rest == source


@pytest.mark.parametrize(
    ("start", "end", "ir", "wanted"), [(11, 13, 6, 6), (13, 9, 8, 4), (13, 9, 3, 3), (9, 28, 3, 3), (21, 13, 10, 7)]
)
def test_the_ir_version_rises_only_if_it_must(start, end, ir, wanted):
    source = model_of("g (float[2,3] x) => (float[2,3] y) { y = Relu (x) }", start, ir)
    result, report = convert(source, end)
    assert result.ir_version == report.ir_after == wanted


def test_the_ir_version_may_be_asked_for():
    source = model_of("g (float[2,3] x) => (float[2,3] y) { y = Relu (x) }", 11, 6)
    assert convert(source, 13, ir=9)[0].ir_version == 9
    functions = parser.parse_model(CALLS.format(second=1, low=0.25))
    with pytest.raises(UsageError, match="takes 8 for function Wrap"):
        convert(functions, 13, ir=7)


def test_at_least_leaves_alone_what_is_above():
    source = model_of("g (float[2,3] x) => (float[2,3] y) { y = Softmax <axis=0> (x) }", 13)
    result, report = convert(source, 11, at_least=True)
    assert report.state == "unchanged"
    assert result == source


def test_what_one_runs_is_what_is_asked_to_be_expanded():
    source = model_of("g (float[2,3] x) => (float[2,3] y) { y = Celu (x) }", 13)
    result, report = convert(source, 13, expand=frozenset({"Celu"}))
    assert "Celu" not in ops(result)
    assert report.state == "verified"
    assert_same(source, result, X)


def test_expanding_needs_no_target_and_knows_its_operators():
    source = model_of("g (float[2,3] x) => (float[2,3] y) { y = Celu (x) }", 13)
    options = ConvertOptions(expand=frozenset({"Celu"}))
    result, report = convert_model(Model(source), options)
    assert "Celu" not in ops(result.proto)
    assert report.by_step() == {"Celu expanded": 1}
    with pytest.raises(UsageError, match="is called 'Foo'"):
        convert_model(Model(source), ConvertOptions(expand=frozenset({"Foo"})))


def test_an_ir_version_that_cannot_fall_with_the_opset_is_told():
    source = model_of("g (float[2,3] x) => (float[2,3] y) { y = Relu (x) }", 18)
    source.ir_version = 10
    source.graph.node[0].metadata_props.add(key="k", value="v")
    result, report = convert(source, 9)
    assert result.ir_version == 10
    assert any(note.startswith("the IR version is 10, not the 4 of") for note in report.notes)


def test_training_graphs_follow():
    source = model_of("g (float[2,1] x) => (float[2,1] y) { y = Relu (x) }", 11)
    info = source.training_info.add()
    part = parser.parse_graph("t () => (float[2] s) { s = Squeeze <axes=[1]> (y) }")
    info.algorithm.CopyFrom(part)
    result, report = convert(source, 13, verify=False)
    assert len(result.training_info[0].algorithm.node[0].input) == 2
    assert report.rewrites[0].where == "training_info[0].algorithm"
