"""Differences between models, whatever the order in their files."""

import json

import numpy as np
import onnx
from onnx import ModelProto, numpy_helper, parser

from onnxbench import Model, load
from onnxbench.core.shapes import propagate
from onnxbench.inspecting.diff import diff

TEXT = """<ir_version: 8, opset_import: ["": 17]>
g (float[N,4] x) => (float[N,4] y) <float[4] w = {1,2,3,4}, float[4] v = {0,0,0,0}> {
  [a] a = Add (x, w) [b] b = Relu (a) [c] c = Mul (b, v) [d] y = LeakyRelu <alpha = 0.5> (c) }"""


def compare(before, after):
    return diff(Model(before, label="old"), Model(after, label="new"), propagate)


def changed(text=TEXT, **edits):
    for old, new in edits.values():
        assert old in text
        text = text.replace(old, new)
    return parser.parse_model(text)


def test_files_of_one_name_go_by_their_paths(tmp_path):
    paths = []
    for folder, op in (("old", "Relu"), ("new", "Neg")):
        paths.append(tmp_path / folder / "m.onnxtxt")
        paths[-1].parent.mkdir()
        text = f'<ir_version: 8, opset_import: ["": 17]> g (float[2] x) => (float[2] y) {{ y = {op} (x) }}'
        paths[-1].write_text(text)
    found = diff(load(paths[0]), load(paths[1]), propagate)
    assert (found.before, found.after) == tuple(map(str, paths))


def test_a_model_is_the_same_as_itself_in_another_order_with_other_node_names():
    other = changed()
    nodes = [*other.graph.node][::-1]
    del other.graph.node[:]
    other.graph.node.extend(nodes)
    for node in other.graph.node:
        node.name = f"new_{node.name}"
    found = compare(changed(), other)
    assert found.same
    assert (found.matched, found.renamed) == (4, 4)


def test_inner_values_may_have_other_names():
    other = changed(a=("a = Add (x, w) [b] b = Relu (a)", "q = Add (x, w) [b] b = Relu (q)"))
    found = compare(changed(), other)
    assert found.same
    assert found.exit_code == 0


def test_nodes_added_and_removed():
    other = changed(a=("[b] b = Relu (a) [c] c = Mul (b, v)", "[e] e = Sigmoid (a) [c] c = Mul (e, v)"))
    found = compare(changed(), other)
    assert found.removed == ["'b' (Relu)"]
    assert found.added == ["'e' (Sigmoid)"]
    assert [(c.where, c.what, c.before, c.after) for c in found.changed] == [("'c' (Mul)", "input 0", "b", "e")]
    assert found.exit_code == 1


def test_attributes_shapes_opsets_and_weights():
    other = changed(
        a=("alpha = 0.5", "alpha = 0.25"),
        b=("{1,2,3,4}", "{1,2,3,4.5}"),
        c=('"": 17', '"": 18'),
        d=("float[N,4] x", "float[N,1] x"),
    )
    found = compare(changed(), other)
    assert [(c.what, c.before, c.after) for c in found.changed] == [("attribute alpha", "0.5", "0.25")]
    assert [(w.before, w.what, w.max_abs) for w in found.weights] == [("w", "numbers", 0.5)]
    assert [(c.where, c.before, c.after) for c in found.head] == [("ai.onnx", "17", "18")]
    assert [(c.where, c.before, c.after) for c in found.types] == [("x", "float[N, 4]", "float[N, 1]")]


def test_a_renamed_initializer_is_the_same_one():
    other = ModelProto()
    other.CopyFrom(changed())
    other.graph.initializer[0].name = "weight"
    other.graph.node[0].input[1] = "weight"
    assert compare(changed(), other).same


def test_the_way_that_weights_are_stored_does_not_matter():
    other = changed()
    stored = other.graph.initializer[0]
    stored.CopyFrom(numpy_helper.from_array(np.array([1, 2, 3, 4], np.float32), "w"))
    assert changed().graph.initializer[0].float_data
    assert compare(changed(), other).same


def test_interfaces_and_metadata():
    other = changed(a=("=> (float[N,4] y)", "=> (float[N,4] y, float[N,4] b)"))
    other.metadata_props.add(key="k", value="v")
    found = compare(changed(), other)
    assert [(c.where, c.what, c.before, c.after) for c in found.types] == [("b", "output", None, "there")]
    assert [(c.where, c.what, c.after) for c in found.head] == [("k", "metadata", "v")]


def test_what_only_looks_the_same():
    """Sparse weights, the order of inputs, and overloads of a function."""
    text = """<ir_version: 10, opset_import: ["": 17, "l": 1]> g (float[2] a, float[2] b) => (float[2] y) { y = l.F (a, b) }
    <domain: "l", opset_import: ["": 17]> F (p, q) => (r) { r = Add (p, q) }"""
    other = parser.parse_model(text.replace("(float[2] a, float[2] b)", "(float[2] b, float[2] a)"))
    assert [c.what for c in compare(parser.parse_model(text), other).types] == ["order of inputs"]
    sparse = onnx.SparseTensorProto(dims=[2])
    sparse.values.CopyFrom(numpy_helper.from_array(np.array([3], np.float32), "s"))
    sparse.indices.CopyFrom(numpy_helper.from_array(np.array([1], np.int64)))
    one, two = parser.parse_model(text), parser.parse_model(text)
    for model, number in ((one, 3), (two, 4)):
        model.graph.sparse_initializer.add().CopyFrom(sparse)
        model.graph.sparse_initializer[0].values.raw_data = np.array([number], np.float32).tobytes()
    assert not compare(one, two).same
    one, two = parser.parse_model(text), parser.parse_model(text)
    for model in (one, two):
        model.functions.add().CopyFrom(model.functions[0])
        model.functions[1].overload = "other"
    two.functions[1].node[0].op_type = "Sub"
    assert [c.where for c in compare(one, two).head] == ["l::F::other"]


def test_numbers_that_are_none_are_no_trouble_for_json():
    """Strings have no difference to measure, nor has NaN against a number."""
    other = changed()
    other.graph.initializer[0].CopyFrom(numpy_helper.from_array(np.full(4, np.nan, np.float32), "w"))
    found = compare(changed(), other)
    assert [(w.what, w.max_abs) for w in found.weights] == [("numbers", None)]
    json.dumps(found.to_dict(), allow_nan=False)
