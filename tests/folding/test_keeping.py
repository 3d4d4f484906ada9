"""What else a file holds is kept: quantization, metadata, old versions, odd orders."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from .judging import SIZES, all_ops, bare, fold, judged, model_of, ops, random

X = {"x": random(2)}
DEFAULT_IR3 = '<ir_version: 3, opset_import: ["": 11]>'


def test_ir_3_stays_valid():
    folded = judged(
        DEFAULT_IR3
        + " g (float[2] x, float[2] w) => (float[2] y) <float[2] w = {1, 2}> { k = Add(w, w) y = Add(x, k) }",
        X,
    )
    assert folded.ir_version == 3
    assert {tensor.name for tensor in folded.graph.initializer} <= {value.name for value in folded.graph.input}


def test_ir_3_hoists_and_folds_sizes():
    judged(
        DEFAULT_IR3
        + """ g (float[3, 2] x, bool c) => (float[3, 2] y) <bool c = {1}> {
        s = Shape(x) e = Expand(x, s)
        y = If(c) <then_branch = a () => (float[3, 2] t) { t = Neg(e) }, else_branch = b () => (float[3, 2] f) { f = Abs(e) }> }""",
        {"x": random(3, 2)},
    )


def test_nodes_in_any_order():
    proto = model_of(
        """g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> { k = Add(w, w) i = Identity(k) a = Add(x, i) b = Identity(a)
        y = Neg(b) }"""
    )
    nodes = list(proto.graph.node)[::-1]
    copies = [onnx.NodeProto.FromString(node.SerializeToString()) for node in nodes]
    del proto.graph.node[:]
    proto.graph.node.extend(copies)
    assert sorted(ops(bare(proto))) == ["Add", "Neg"]


QUANTIZED = """g (float[2, 2] x) => (float[2, 2] y)
        <float s = {0.1}, uint8 z = {3}, int8[2, 2] w = {1, 2, 3, 4}, float t = {0.5}, int8 o = {0}> {
    q = QuantizeLinear(x, s, z) d = DequantizeLinear(q, s, z) f = DequantizeLinear(w, t, o) y = MatMul(d, f) }"""


def test_quantization_keeps_its_structure():
    assert ops(judged(QUANTIZED, {"x": random(2, 2)})) == ops(model_of(QUANTIZED))
    assert "DequantizeLinear" in ops(judged(QUANTIZED, {"x": random(2, 2)}, fold_qdq=True))
    assert ops(judged(QUANTIZED, {"x": random(2, 2)}, fold_qdq=True)).count("DequantizeLinear") == 1


@pytest.mark.parametrize(
    "steps",
    [
        "f = DequantizeLinear(w, t, o) g = Transpose(f) y = MatMul(x, g)",
        "a = QuantizeLinear(v, t, o) f = DequantizeLinear(a, t, o) y = MatMul(x, f)",
        "f = DequantizeLinear(w, t, o) h = DequantizeLinear(w, t, o) a = MatMul(x, f) y = MatMul(a, h)",
        "f = local.dq(w, t, o) y = MatMul(x, f)",
        """a = QuantizeLinear(x, t, o) f = DequantizeLinear(a, t, o) b = QuantizeLinear(x, t, o) h = DequantizeLinear(b, t, o)
        y = MatMul(f, h)""",
    ],
)
def test_quantized_weights_are_not_turned_into_floats(steps):
    text = f"""g (float[2, 2] x) => (float[2, 2] y)
        <int8[2, 2] w = {{1, 2, 3, 4}}, float[2, 2] v = {{1, 2, 3, 4}}, float t = {{0.5}}, int8 o = {{0}}> {{
      {steps} }}
      <domain: "local", opset_import: ["": 21]> dq (a, b, c) => (d) {{ d = DequantizeLinear(a, b, c) }}"""
    source = model_of(text)
    folded = judged(source, {"x": random(2, 2)})
    for op in ("QuantizeLinear", "DequantizeLinear"):
        assert all_ops(folded).count(op) == all_ops(source).count(op)


def test_metadata_docs_and_annotations_are_kept():
    proto = model_of(
        "g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> { k = Add(w, w) i = Identity(x) n = Neg(i) y = Add(n, k) }"
    )
    proto.doc_string, proto.producer_name, proto.domain, proto.model_version = "about", "me", "org", 7
    proto.metadata_props.add(key="a", value="b")
    proto.graph.doc_string, proto.graph.name = "graph doc", "named"
    proto.graph.metadata_props.add(key="c", value="d")
    proto.graph.node[2].doc_string = "node doc"
    proto.graph.node[2].metadata_props.add(key="e", value="f")
    proto.graph.value_info.append(helper.make_tensor_value_info("n", TensorProto.FLOAT, [2], "value doc"))
    proto.graph.input[0].doc_string = "input doc"
    note = proto.graph.quantization_annotation.add(tensor_name="n")
    note.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value="w")
    folded = judged(proto, X)
    assert (folded.doc_string, folded.producer_name, folded.domain, folded.model_version) == ("about", "me", "org", 7)
    assert folded.metadata_props == proto.metadata_props
    assert (folded.graph.doc_string, folded.graph.name) == ("graph doc", "named")
    assert folded.graph.metadata_props == proto.graph.metadata_props
    neg = next(node for node in folded.graph.node if node.op_type == "Neg")
    assert (neg.doc_string, neg.metadata_props[0].value) == ("node doc", "f")
    assert folded.graph.value_info[0].doc_string == "value doc"
    assert folded.graph.input[0].doc_string == "input doc"
    assert folded.graph.quantization_annotation[0].tensor_name == "n"
    assert "w" in {tensor.name for tensor in folded.graph.initializer}, "the annotation's scale went"


def test_a_value_with_an_annotation_is_not_renamed():
    proto = model_of("g (float[2] x) => (float[2] y) { a = Neg(x) i = Identity(a) y = Exp(i) }")
    note = proto.graph.quantization_annotation.add(tensor_name="i")
    note.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value="s")
    folded = judged(proto, X)
    assert [entry.tensor_name for entry in folded.graph.quantization_annotation] == ["i"]


def test_everything_has_a_reason():
    _, report = fold(
        """g (float[2] x) => (float[2] y) <float[2] w = {1, 2}, float[2] u = {0, 0}> { k = Add(w, w) i = Identity(x) d = Neg(i)
        e = Neg(i) y = Sum(d, e, k) }"""
    )
    assert {removal.rule for removal in report.removals} >= {"constants", "idle", "duplicates", "unused"}
    assert all(removal.reason and removal.name for removal in report.removals)
    assert report.nodes_before - report.nodes_after == sum(removal.kind == "node" for removal in report.removals)


def test_sizes_as_booleans_are_one():
    judged(
        """g (float[N, 4] x) => (int64[2] y, int64[1] z) { s = Shape(x) b = Cast<to = 9>(s) y = Cast<to = 7>(b)
        u = Shape<end = 1>(x) c = Cast<to = 9>(u) z = Cast<to = 7>(c) }""",
        *SIZES,
    )


def test_sizes_in_half_precision_lose_what_that_loses():
    judged(
        "g (float[2049, N] x) => (int64[2] y) { s = Shape(x) b = Cast<to = 10>(s) y = Cast<to = 7>(b) }",
        {"x": np.zeros((2049, 2049), np.float32)},
    )


def test_skipped_passes_do_nothing():
    text = "g (float[2] x) => (float[2] y) { k = Constant<value = float[2] {1, 2}>() d = Add(k, k) i = Identity(x) y = Add(i, d) }"
    assert ops(bare(text, skip=["constants"])) == ["Constant", "Add", "Add"]
    assert "Identity" in ops(bare(text, skip=["idle"]))


def test_what_training_needs_is_kept():
    """Training information reads values of the main graph by name, and sets its initializers."""
    model = model_of(
        """g (float[2] x) => (float[2] y)
        <float[2] w = {1, 2}, float[2] v = {1, 2}, float[1] step = {0}, float[1] one = {1}> {
        a = Mul(x, w) i = Identity(a) b = Mul(x, v) k = Add(one, one) e = Mul(k, k) c = Mul(b, e) y = Add(i, c) }"""
    )
    training = model.training_info.add()
    nodes = [helper.make_node("Sub", ["v", "i"], ["new_v"]), helper.make_node("Add", ["step", "k"], ["new_step"])]
    made = [helper.make_tensor_value_info("new_v", 1, [2]), helper.make_tensor_value_info("new_step", 1, [1])]
    training.algorithm.CopyFrom(helper.make_graph(nodes, "train", [], made))
    for key in ("v", "step"):
        training.update_binding.add(key=key, value=f"new_{key}")
    folded = judged(model, X)
    there = {tensor.name for tensor in folded.graph.initializer} | {
        n for node in folded.graph.node for n in node.output
    }
    assert {"v", "step", "i", "k"} <= there
    assert folded.training_info == model.training_info


def test_what_is_spread_over_devices_follows_a_renamed_value():
    model = model_of(
        """<ir_version: 11, opset_import: ["": 23]>
        g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> { a = Neg(x) i = Identity(a) y = Mul(i, w) }"""
    )
    model.configuration.add(name="two", num_devices=2)
    told = model.graph.node[2].device_configurations.add(configuration_id="two")
    told.sharding_spec.add(tensor_name="i")
    (product,) = [node for node in judged(model, X).graph.node if node.op_type == "Mul"]
    assert product.device_configurations[0].sharding_spec[0].tensor_name == product.input[0] == "a"


@pytest.mark.parametrize("seed", range(4))
def test_what_nodes_in_any_order_read_stays(seed):
    """Each initializer is read by a node that itself is read by one before it in the file."""
    proto = model_of("""g (float[2] x) => (float[2] y) <float[2] k = {1, 2}, float[2] m = {3, 4}> {
        a = Add(x, k) b = Mul(a, m) c = Identity(b) d = Neg(c) dead = Exp(d) deader = Abs(dead) y = Sin(d) }""")
    nodes = list(proto.graph.node)
    np.random.default_rng(seed).shuffle(nodes)
    del proto.graph.node[:]
    proto.graph.node.extend(nodes)
    folded = judged(proto, X)
    assert sorted(ops(folded)) == ["Add", "Mul", "Neg", "Sin"]
    assert {tensor.name for tensor in folded.graph.initializer} == {"k", "m"}
