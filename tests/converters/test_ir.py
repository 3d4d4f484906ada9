"""The IR version of a result: never lower than what is in it, and what it would lose is said."""

import pytest
from onnx import AttributeProto, TensorProto, helper, parser

from onnxbench.converters import ir
from onnxbench.errors import UsageError

from .judging import convert, model_of

PLAIN = "g (float[2] x) => (float[2] y) { y = Relu (x) }"


def _of_graph(model):
    model.graph.metadata_props.add(key="a", value="b")


def _of_value(model):
    model.graph.input[0].metadata_props.add(key="a", value="b")


def _of_node(model):
    model.graph.node[0].metadata_props.add(key="a", value="b")


def _of_node_in_body(model):
    body = parser.parse_graph("b () => (float[2] z) { z = Relu (x) }")
    body.node[0].metadata_props.add(key="a", value="b")
    node = helper.make_node("If", ["c"], ["w"], then_branch=body, else_branch=body)
    model.graph.input.append(helper.make_tensor_value_info("c", TensorProto.BOOL, []))
    model.graph.node.append(node)


@pytest.mark.parametrize("put", [_of_graph, _of_value, _of_node, _of_node_in_body])
def test_metadata_is_never_lost(put):
    model = model_of(PLAIN, 21, ir=10)
    put(model)
    with pytest.raises(UsageError, match="IR version 9 is too low: it takes 10 for metadata of"):
        convert(model, 21, ir=9)
    result, report = convert(model, 11, verify=False)
    assert result.ir_version == 10
    assert any("the IR version is 10" in note for note in report.notes)


def test_everything_that_needs_a_version_is_found():
    for text, least in (
        ("g (float[2] x) => (float[2] y) { y = Relu (x) }", 3),
        ("g (seq(bfloat16[2]) x) => (bfloat16[2] y) <int64 z = {0}> { y = SequenceAt (x, z) }", 4),
        ("g (seq(float8e5m2[2]) x) => (seq(float8e5m2[2]) y) { y = Identity (x) }", 9),
        ("g (optional(int4[2]) x) => (int4[2] y) { y = OptionalGetElement (x) }", 10),
        ("g (optional(float[2]) x) => (float[2] y) { y = OptionalGetElement (x) }", 8),
    ):
        assert ir.needed(model_of(text, 21))[0] == least
    model = model_of(PLAIN, 21)
    model.graph.node.append(helper.make_node("Constant", [], ["k"]))
    values = helper.make_tensor("v", TensorProto.FLOAT, [1], [1.0])
    sparse = helper.make_sparse_tensor(values, helper.make_tensor("i", TensorProto.INT64, [1], [0]), [4])
    model.graph.node[1].attribute.append(helper.make_attribute("sparse_value", sparse))
    assert ir.needed(model)[0] == 6
    function = model.functions.add(name="f", domain="c")
    assert ir.needed(model)[0] == 8
    function.attribute_proto.add(name="a", type=2)
    assert ir.needed(model)[0] == 9


def test_lists_in_attributes_need_versions_too():
    model = model_of(PLAIN, 21)
    attribute = model.graph.node[0].attribute.add(name="kinds", type=AttributeProto.TYPE_PROTOS)
    attribute.type_protos.add().tensor_type.elem_type = TensorProto.INT4
    assert ir.needed(model)[0] == 10
    model = model_of(PLAIN, 21)
    attribute = model.graph.node[0].attribute.add(name="all", type=AttributeProto.SPARSE_TENSORS)
    attribute.sparse_tensors.add().values.data_type = TensorProto.FLOAT8E5M2
    assert ir.needed(model)[0] == 9
