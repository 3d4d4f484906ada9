"""Shrinking reaches the known minimum of planted faults, and keeps what they need."""

import json

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from onnxbench import Tolerance, find
from onnxbench.core.compare import differ_all
from onnxbench.core.feed_files import read
from onnxbench.core.feeds import generate
from onnxbench.core.graph import GraphView

from .conftest import chain, model, names, ops

RANDOM = np.random.default_rng(0)


def convolution(attributes: str = "pads = [1, 1, 1, 1]", channels: int = 64, group: int = 1):
    """A Conv of 3x3 kernels between two Tanh."""
    planted = model(
        f"agraph (float[N, {channels}, 16, 16] image_in) => (float[N, {channels}, P, Q] image_out) "
        f"{{ [before] a = Tanh(image_in) [conv] c = Conv <{attributes}> (a, weight, bias) [after] image_out = Tanh(c) }}"
    )
    kernels = RANDOM.normal(size=(channels, channels // group, 3, 3)).astype(np.float32)
    planted.proto.graph.initializer.append(numpy_helper.from_array(kernels, "weight"))
    planted.proto.graph.initializer.append(numpy_helper.from_array(kernels[:, 0, 0, 0].copy(), "bias"))
    return planted


def weights(proto):
    return {tensor.name: numpy_helper.to_array(tensor) for tensor in proto.graph.initializer}


def fed(tmp_path):
    with np.load(tmp_path / "bundle" / "inputs.npz") as held:
        return dict(held)


@pytest.mark.parametrize("deed", ["wrong", "nan", "raise", "signal", "load"])
def test_a_convolution_shrinks_to_one_number(reduced, tmp_path, deed):
    report, left = reduced(convolution(), f"misbehaving:ops=Conv,do={deed}", passes=None)
    assert [list(value.shape) for value in (*weights(left).values(), *fed(tmp_path).values())] == [[1, 1, 1, 1]] * 2
    assert not left.graph.node[0].attribute
    assert (tmp_path / "bundle" / "model.onnx").stat().st_size == report.bytes_after < 400 < report.bytes_before
    assert report.checks < 60
    assert (report.status, report.confirmed) == ("minimal", True)
    assert [culprit.name for culprit in report.culprits] == ["conv"]
    onnx.checker.check_model(left, full_check=True)


@pytest.mark.parametrize("declared", ["seq(float[6, 5])", "seq(float[N, 5])"])
def test_tensors_in_a_sequence_shrink_too(reduced, tmp_path, declared):
    planted = model(
        f"agraph ({declared} s) => (float[M, 5] y) {{ [bad] t = ConcatFromSequence <axis = 0> (s) [after] y = Tanh(t) }}"
    )
    items = [RANDOM.normal(size=(6, 5)).astype(np.float32) for _ in range(3)]
    _, left = reduced(planted, "misbehaving:ops=ConcatFromSequence", passes=["dims"], feeds={"s": items})
    written = read(str(tmp_path / "bundle" / "test_data_set_0"), GraphView(left, left.graph))["s"]
    assert [item.shape for item in written] == [(1, 1)] * 3
    assert names(left) == ["bad"]
    onnx.checker.check_model(left, full_check=True)


def test_the_map_of_names_leads_back(reduced, tmp_path):
    _, left = reduced(convolution(), "misbehaving:ops=Conv", passes=None)
    told = json.loads((tmp_path / "bundle" / "names.json").read_text())
    assert [(row["node"], row["original"]) for row in told["nodes"]] == [("node0", "conv")]
    assert names(left) == ["node0"]


def test_the_planted_convolution_moves_the_output():
    planted = convolution()
    feeds = generate(GraphView(planted.proto, planted.proto.graph))
    right = find("onnxruntime:opt=disable").run(planted, feeds)
    for options in ("ops=Conv", "attribute=group:2"):
        wrong = find(f"misbehaving:{options}").run(planted, feeds)
        assert bool(differ_all(right.outputs, wrong.outputs, Tolerance())) == (options == "ops=Conv")


def test_an_attribute_that_the_fault_needs_is_kept(reduced):
    planted = convolution("pads = [1, 1, 1, 1], group = 2, kernel_shape = [3, 3], dilations = [2, 2]", group=2)
    _, left = reduced(planted, "misbehaving:ops=Conv,attribute=group:2", passes=None)
    assert [(a.name, a.i) for a in left.graph.node[0].attribute] == [("group", 2)]
    assert [list(value.shape) for value in weights(left).values()] == [[2, 1, 1, 1]]


def test_one_negative_number_is_kept(reduced, tmp_path):
    feeds = {"x": RANDOM.normal(size=(4, 6)).astype(np.float32)}
    planted = model("agraph (float[N, 6] x) => (float[N, 6] y) { [bad] y = Softsign(x) }")
    reduced(planted, "misbehaving:ops=Softsign,below=0", passes=None, feeds=feeds)
    (value,) = fed(tmp_path).values()
    assert (value.shape, value.item()) == ((1, 1), -1)


def test_a_threshold_keeps_numbers_large(reduced, tmp_path):
    feeds = {"x": np.linspace(1, 123, 24, dtype=np.float32).reshape(4, 6)}
    planted = model("agraph (float[N, 6] x) => (float[N, 6] y) { [bad] y = Softsign(x) }")
    reduced(planted, "misbehaving:ops=Softsign,above=90", passes=None, feeds=feeds)
    (value,) = fed(tmp_path).values()
    assert value.shape == (1, 1)
    assert 90 < value.item() <= 200


def test_inner_dims_of_a_product_shrink_together(reduced, tmp_path):
    planted = model(
        "agraph (float[N, 24, 48] a, float[N, 48, 36] b) => (float[N, 24, 36] c) { [bad] c = MatMul(a, b) }"
    )
    report, left = reduced(planted, "misbehaving:ops=MatMul", passes=None)
    assert len(left.graph.input) == 1
    assert [value.shape for value in (*fed(tmp_path).values(), *weights(left).values())] == [(1, 1, 1)] * 2
    assert report.checks < 60


def test_a_shape_in_the_model_shrinks_with_what_it_shapes(reduced, tmp_path):
    planted = model(
        "agraph (float[2, 12] x) => (float[2, 3, 4] y) <int64[3] shape = {2, 3, 4}> { [bad] y = Reshape(x, shape) }"
    )
    _, left = reduced(planted, "misbehaving:ops=Reshape", passes=None)
    assert [value.shape for value in fed(tmp_path).values()] == [(1, 1)]
    assert weights(left)["w"].tolist() == [1, 1, 1]


def test_outputs_and_optional_operands_go(reduced):
    planted = model(
        "agraph (float[6, 4] x) => (float[2, 4] a, float[2, 4] b, float[2, 4] c) "
        "<int64[3] split = {2, 2, 2}> { [bad] a, b, c = Split <axis = 0> (x, split) }"
    )
    _, left = reduced(planted, "misbehaving:ops=Split,do=raise", passes=None)
    assert len(left.graph.output) == 1
    assert not left.graph.node[0].attribute


@pytest.mark.parametrize("dtype, values", [("double", 8), ("float16", 2)])
def test_rare_types_become_float32(reduced, dtype, values):
    planted = model(f"agraph ({dtype}[3] x) => ({dtype}[3] y) {{ [bad] y = Softsign(x) }}")
    _, left = reduced(planted, "misbehaving:ops=Softsign,do=raise", passes=None)
    assert left.graph.input[0].type.tensor_type.elem_type == onnx.TensorProto.FLOAT


def test_a_body_keeps_the_node_at_fault_only(reduced):
    planted = model(
        "agraph (float[3] x, bool keep) => (float[3] y) <int64 trips = {4}> { [loop] y = Loop (trips, keep, x) <body = b "
        "(int64 i, bool c, float[3] v) => (bool c2, float[3] v2) "
        "{ [p] p = Abs(v) [q] q = Softsign(p) [s] s = Neg(q) [t] v2 = Tanh(s) [k] c2 = Identity(c) }> }"
    )
    feeds = {"x": np.ones(3, np.float32), "keep": np.array(True)}
    report, left = reduced(planted, "misbehaving:ops=Softsign,inside=1,do=raise", passes=None, feeds=feeds)
    assert ops(left) == ["Loop"]
    body = next(a.g for a in left.graph.node[0].attribute if a.name == "body")
    assert [node.op_type for node in body.node if node.op_type != "Identity"] == ["Softsign"]
    assert report.all_nodes_after <= 4


def test_a_function_keeps_the_node_at_fault_only(reduced):
    planted = model(
        "agraph (float[N, 3] x) => (float[N, 3] y) { [f] y = loc.F (x) }",
        '"": 17, "loc": 1',
        '<domain: "loc", opset_import: ["": 17]> F (q) => (z) { a = Abs(q) b = Softsign(a) c = Neg(b) z = Tanh(c) }',
    )
    _, left = reduced(planted, "misbehaving:ops=Softsign,inside=1,do=raise", passes=None)
    assert [node.op_type for function in left.functions for node in function.node] == ["Softsign"]
    assert [(f.domain, f.name) for f in left.functions] == [("local", "f0")]


def test_an_operator_that_only_has_to_be_there_becomes_a_simpler_one(reduced):
    """The fault needs a value that is made, not who makes it."""
    planted = chain(4, {1: "Softplus", 2: "Softsign"})
    _, left = reduced(planted, "misbehaving:pair=Softsign", passes=None)
    assert ops(left) == ["Identity", "Softsign"]


def test_a_clear_difference_does_not_become_rounding(reduced, tmp_path):
    """The suspect adds a hundredth of what is there, and a ten-thousandth to small numbers."""
    suspect = tmp_path / "off.py"
    suspect.write_text(
        "import numpy\ndef run(model, feeds):\n    x = next(iter(feeds.values()))\n    off = 1.01 if x.size > 3 else 1.0002\n"
        "    import onnx\n    name = onnx.ModelProto.FromString(model).graph.output[0].name\n"
        "    return {name: (numpy.tanh(x) * off).astype(x.dtype)}\n"
    )
    planted = model("agraph (float[8] x) => (float[8] y) { [bad] y = Tanh(x) }")
    report, _ = reduced(planted, f"python:{suspect}:run", passes=["dims", "values"])
    (value,) = fed(tmp_path).values()
    assert value.size == 4
    assert report.differences[0]["tolerances"] >= 10


def test_passes_are_chosen(reduced):
    report, left = reduced(convolution(), "misbehaving:ops=Conv", passes=["dims"])
    assert [record.name for record in report.passes] == ["dims"]
    assert names(left) == ["conv"]
    assert [list(value.shape) for value in weights(left).values()] == [[1, 1, 1, 1], [1]]


def test_large_weights_stay_where_they_are_while_nothing_shrinks_them(reduced, tmp_path):
    planted = convolution()
    _, left = reduced(planted, "misbehaving:ops=Conv", passes=["names", "metadata"])
    np.testing.assert_array_equal(weights(left)["w1"], weights(planted.proto)["weight"])


def test_a_fault_that_hides_in_a_value_that_inference_refuses_is_left_as_it_is(reduced):
    """The original breaks the rules itself: that is the failure."""
    planted = model(
        "agraph (float[2, 3] x) => (float[2, 3] y) { [bad] y = Softsign(x) [other] z = MatMul(x, x) }",
    )
    planted.proto.graph.output.add().name = "z"
    _, left = reduced(planted, "onnxruntime", passes=None)
    assert ops(left) == ["MatMul"]


def test_anonymous_bundles_tell_nothing_of_the_original(reduced, tmp_path):
    planted = convolution()
    planted.proto.producer_name = "secret_producer"
    planted.proto.graph.name = "secret_graph"
    planted.proto.doc_string = "secret_doc"
    planted.proto.metadata_props.add(key="secret_key", value="secret_value")
    planted.proto.graph.node[1].doc_string = "secret_node"
    planted.proto.graph.node[1].name = "secret_conv"
    report, _ = reduced(
        planted, "misbehaving:ops=Conv", passes=["dims"], anonymize=True, documents={"report.json": as_json}
    )
    held = b"".join(path.read_bytes() for path in (tmp_path / "bundle").rglob("*") if path.is_file())
    secrets = [b"secret", b"image", b'weight"', b"'bias'", b"planted"]
    assert not [secret for secret in secrets if secret in held]
    told = json.loads((tmp_path / "bundle.names.json").read_text())
    assert [row["original"] for row in told["nodes"]] == ["secret_conv"]
    assert not (tmp_path / "bundle" / "names.json").exists()
    assert [culprit.name for culprit in report.culprits] == ["secret_conv"]


def as_json(finding):
    assert finding.outline is None
    return json.dumps(finding.report.to_dict(), default=str)


def test_weights_that_a_failure_does_not_need_are_scrambled(reduced):
    planted = convolution()
    _, left = reduced(planted, "misbehaving:ops=Conv", passes=[], anonymize=True)
    ours, theirs = weights(left)["w1"], weights(planted.proto)["weight"]
    assert ours.shape == theirs.shape
    assert not np.isclose(ours, theirs).all(axis=(1, 2, 3)).any()
    assert abs(ours.std() / theirs.std() - 1) < 0.1


def test_weights_that_a_failure_needs_are_named(reduced):
    planted = model("agraph (float[N, 4] x) => (float[N, 4] y) { [bad] y = Mul(x, secret) }")
    numbers = np.array([1.5, 2.5, 3.5, 99.25], np.float32)
    planted.proto.graph.initializer.append(numpy_helper.from_array(numbers, "secret"))
    suspect = "misbehaving:ops=Mul,sum=106.75"
    report, left = reduced(planted, suspect, passes=[], anonymize=True)
    assert weights(left)["w"].tolist() == numbers.tolist()
    assert [note for note in report.notes if "needs the values of a weight" in note]


def test_a_size_beyond_all_memory_is_one_number_more(reduced):
    """A shape that asks for terabytes is shrunk like any other, and never counted out."""
    bomb = model(
        "agraph (float[2] x) => (float[2] y) <int64[1] s = {2200000000000}> "
        "{ [fill] b = ConstantOfShape (s) [r] r = ReduceSum <keepdims = 0> (b) [add] y = Add (x, r) }"
    )
    report, left = reduced(bomb, "onnxruntime", passes=None)
    assert report.status == "minimal"
    assert ops(left) == ["ConstantOfShape"]
