"""What `inspect` finds in small models that have it."""

import json

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper, parser

from onnxbench import GraphView, Model, load
from onnxbench.core.scopes import scopes, source_line
from onnxbench.inspecting.inspect import inspect
from onnxbench.inspecting.problems import catalogue
from onnxbench.runtimes.base import Limits, Runtime
from onnxbench.runtimes.outcome import Outcome


def model(graph, opsets='"": 17', functions="", ir=8):
    return Model(
        parser.parse_model(f"<ir_version: {ir}, opset_import: [{opsets}]> {graph} {functions}"), label="m.onnx"
    )


def look(*arguments, **more):
    return inspect(model(*arguments, **more))


def codes(report):
    return [problem.code for problem in report.problems]


def test_the_head():
    report = look(
        "g (float[N,4,H,H] x, float[3] k) => (float[N] y, z) <float[3] k = {1,2,3}, float[2,2] w = {1,2,3,4}> "
        "{ y = loc.F (x) z = Add (k, w) }",
        '"": 17, "loc": 1',
        '<domain: "loc", opset_import: ["": 17]> F (p) => (q) { a = Neg (p) q = Abs (a) }',
    )
    head = report.header
    assert (head.nodes, head.all_nodes, head.functions, head.initializers, head.parameters) == (2, 4, 1, 2, 7)
    assert head.bytes_by_type == {"FLOAT": 28}
    assert [(v.name, v.dims, v.overridable) for v in head.inputs] == [
        ("x", ["N", 4, "H", "H"], False),
        ("k", [3], True),
    ]
    assert head.opsets == [("", 17), ("loc", 1)]


def test_operators_with_version_place_and_share():
    report = look(
        "g (float[2] x, bool c) => (y) <float[2] w = {1,2}> { a = Mul (x, w) b = com.acme.Zap (a) y = If (c) "
        "<then_branch = t () => (o) { o = Mul (b, w) }, else_branch = e () => (o) { o = Gelu (b) }> }",
        '"": 17, "com.acme": 1',
    )
    rows = {o.name: o for o in report.operators}
    assert (rows["Mul"].count, rows["Mul"].in_bodies, rows["Mul"].since, rows["Mul"].parameters) == (1, 1, 14, 2)
    assert (rows["Zap"].kind, rows["Gelu"].kind) == ("custom", "unknown")  # Gelu came with opset 20
    assert {"OB623", "OB624"} <= set(codes(report))


def test_tensors_that_are_equal_unused_or_large():
    proto = model("g (float[400] x) => (y) { a = Add (x, p) b = Add (a, q) y = Add (b, r) }").proto
    same = np.arange(400, dtype=np.float32)
    for name, array in (("p", same), ("q", same), ("r", same + 1), ("u", same)):
        proto.graph.initializer.append(numpy_helper.from_array(array, name))
    report = inspect(Model(proto))
    assert report.tensors.duplicates == [["p", "q", "u"]]
    assert report.tensors.duplicate_bytes == 2 * 1600
    assert report.tensors.unused == ["u"]
    assert {t.name for t in report.tensors.largest} == {"p", "q", "r", "u"}
    assert {"OB643", "OB644"} <= set(codes(report))


def test_external_files_are_weighed_and_not_read(tmp_path):
    tensor = TensorProto(name="w", data_type=1, dims=[1 << 28], data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value="w.data")
    proto = model("g (float[1] x) => (float[N] y) { y = Add (x, w) }").proto
    proto.graph.initializer.append(tensor)
    onnx.save(proto, tmp_path / "m.onnx")
    (tmp_path / "w.data").touch()
    with (tmp_path / "w.data").open("wb") as file:
        file.truncate(1 << 30)
    report = inspect(load(tmp_path / "m.onnx"))
    assert [(f.location, f.bytes, f.used, f.fault) for f in report.tensors.files] == [("w.data", 1 << 30, 1 << 30, "")]
    assert report.exit_code == 0
    with (tmp_path / "w.data").open("wb") as file:
        file.truncate(100)
    report = inspect(load(tmp_path / "m.onnx"))
    assert "OB603" in codes(report)
    assert report.exit_code == 3


def test_control_flow_as_a_tree_with_captures():
    report = look(
        "g (float[2] x, bool c) => (y) <float[2] w = {1,2}> { a = Neg (x) y = If (c) <then_branch = t () => (o) "
        "{ o = If (c) <then_branch = tt () => (p) { p = Add (a, w) }, else_branch = te () => (p) { p = Neg (a) }> }, "
        "else_branch = e () => (o) { o = Abs (x) }> }"
    )
    (control,) = report.structure.control
    then, other = control.bodies
    assert (then.attribute, then.nodes, then.captures) == ("then_branch", 1, ["c", "a", "w"])
    assert (other.captures, [c.operator for c in then.control]) == (["x"], ["If"])


def test_quantization_functions_randomness_and_precision():
    report = look(
        "g (float[2,4] x) => (y, r, h) <float s = {0.5}, uint8 z = {0}, int8[4,3] w = {1,2,3,4,5,6,7,8,9,10,11,12}, "
        "float[3] ws = {1,1,1}, int8[3] wz = {0,0,0}> { q = QuantizeLinear (x, s, z) d = DequantizeLinear (q, s, z) "
        "wd = DequantizeLinear <axis = 1> (w, ws, wz) m = MatMul (d, wd) y = loc.F (m) r = RandomNormalLike (x) "
        "h = Cast <to = 10> (x) }",
        '"": 17, "loc": 1',
        '<domain: "loc", opset_import: ["": 17]> F (p) => (q) { q = Neg (p) }',
    )
    q = report.structure.quantization
    assert (q.quantize, q.dequantize, q.pairs, q.per_tensor, q.per_channel, q.axes) == (1, 2, 1, 2, 1, {1: 1})
    assert q.weights_by_bits == {8: 12}
    assert [(f.name, f.calls, f.nodes) for f in report.structure.functions] == [("F", 1, 1)]
    assert report.structure.random == ["RandomNormalLike -> r"]
    assert report.structure.casts == {"FLOAT -> FLOAT16": 1}


def test_blocks_by_name():
    proto = model(
        "g (float[2,2] x, float[2,2] w) => (y) { a = MatMul (x, w) b = Relu (a) c = MatMul (b, w) y = Neg (c) }"
    ).proto
    for node, name in zip(
        proto.graph.node, ["/enc/l.0/MatMul", "/enc/l.0/Relu", "/enc/l.1/MatMul", "/head/Neg"], strict=True
    ):
        node.name = name
    root = inspect(Model(proto)).blocks
    assert [(b.name, b.nodes, b.macs) for b in root.blocks] == [("enc", 3, 16), ("head", 1, 0)]
    assert [(b.name, b.nodes, b.macs) for b in root.blocks[0].blocks] == [("l.0", 2, 8), ("l.1", 1, 8)]


def test_scopes_and_lines_from_the_metadata_of_pytorch():
    node = helper.make_node("MatMul", ["x", "w"], ["y"], name="node_matmul_3")
    node.metadata_props.add(key="pkg.torch.onnx.name_scopes", value="['', 'encoder', 'encoder.layers.0', 'matmul_3']")
    outer, inner = 'File "/home/me/model.py", line 12, in forward', 'File "/home/me/net.py", line 123, in f'
    trace = f"{outer}\n    y = self.f(x)\n{inner}\n    return x @ w"
    node.metadata_props.add(key="pkg.torch.onnx.stack_trace", value=trace)
    assert scopes(node) == ("encoder", "layers.0")
    assert source_line(node) == "net.py:123"
    node.metadata_props[0].value = "not a list"
    assert scopes(node) == ()


@pytest.mark.parametrize(
    "code, graph, opsets, ir",
    [
        ("OB601", "g (float[2] x) => (float[2] y) { y = Relu (x, x) }", '"": 17', 8),
        ("OB604", "g (float[2] x) => (float[2] y) { y = Relu (x) y = Neg (x) }", '"": 17', 8),
        ("OB605", "g (float[2] x) => (float[2] y) { a = Add (x, b) b = Relu (a) y = Relu (b) }", '"": 17', 8),
        ("OB620", "g (float[2] x) => (float[2] y) { y = Relu (x) }", '"": 999', 8),
        ("OB621", "g (float[2] x) => (float[2] y) { y = Relu (x) }", '"": 17', 99),
        ("OB622", "g (float[1,1,2,2] x, float[4] s) => (y) { y = Upsample (x, s) }", '"": 10', 8),
        ("OB623", "g (float[2] x) => (y) { y = Nonsense (x) }", '"": 17', 8),
        ("OB624", "g (float[2] x) => (y) { y = acme.Zap (x) }", '"": 17, "acme": 1', 8),
        ("OB625", "g (float[2] x, float[2] w) => (float[2] y) <float[2] w = {1,2}> { y = Add (x, w) }", '"": 17', 8),
        ("OB628", "g (float[2] x, float[2] w) => (float[2] y) <float[2] w = {1,2}> { y = Add (x, w) }", '"": 8', 3),
        ("OB629", "g (float[2] x) => (float[2] y) { y = Relu (x) }", '"": 999', 8),
        ("OB640", "g (float[2] x) => (float[2] y) { y = Relu (a) a = Neg (x) }", '"": 17', 8),
        ("OB641", "g (float[2] x) => (float[2] y) { [n] a = Relu (x) [n] y = Neg (a) }", '"": 17', 8),
        ("OB642", "g (float[2] x) => (float[2] y) { y = Relu (x) z = Neg (x) }", '"": 17', 8),
        ("OB643", "g (float[2] x) => (float[2] y) <float[2] w = {1,2}> { y = Relu (x) }", '"": 17', 8),
        ("OB645", "g (float[2] x) => (y) { y = acme.Zap (x) }", '"": 17, "acme": 1', 8),
        ("OB646", "g (float[2] x) => (float[2] y) <float[3] a> { a = Relu (x) y = Neg (a) }", '"": 17', 8),
        ("OB647", "g (float[2] x) => (float[2] y) <float[3] gone> { y = Neg (x) }", '"": 17', 8),
        ("OB649", "g (float[N,4] x) => (y) <int64[2] s = {1, 4}> { y = Reshape (x, s) }", '"": 17', 8),
    ],
)
def test_each_problem_is_found_where_it_is_and_not_where_it_is_not(code, graph, opsets, ir):
    healthy = look("g (float[N,4] x) => (float[N,4] y) <int64[2] s = {0, -1}> { a = Relu (x) y = Reshape (a, s) }")
    assert codes(healthy) == []
    assert code in codes(look(graph, opsets, ir=ir))


@pytest.mark.parametrize("opset", [0, -1, 2**31, 2**62])
def test_an_opset_that_nobody_knows_is_a_problem_and_no_crash(opset):
    proto = model("g (float[2] x) => (float[2] y) { y = Relu (x) }").proto
    proto.opset_import[0].version = opset
    assert "OB623" in codes(inspect(Model(proto)))


def test_what_asks_onnx_runtime_keeps_to_the_limits(monkeypatch):
    asked = []
    monkeypatch.setattr(Runtime, "run", lambda *_, limits, **__: asked.append(limits) or Outcome("timeout"))
    proto = model("g (float[2] x) => (float[2] y) { y = Relu (x) }", '"": 999').proto
    assert "OB629" not in codes(inspect(Model(proto), timeout=7.0, memory=2**30))
    assert asked == [Limits(7.0, 2**30)]


def test_a_problem_of_many_places_names_the_first_and_counts_the_rest():
    report = look(
        "g (float[2] x) => (float[2] y) <float[1] u = {1}, float[1] v = {1}> { y = Relu (x) z = Neg (x) w = Abs (z) }"
    )
    assert report.dead_nodes == 2
    places = {problem.code: problem.place for problem in report.problems}
    assert places["OB642"] == "Neg that makes 'z' and 1 more"
    assert places["OB643"] == "initializer 'u' and 1 more"


def test_tensors_and_functions_that_are_broken_are_problems():
    proto = model("g (float[2] x) => (float[2] y) { y = Add (x, w) }").proto
    proto.graph.initializer.append(TensorProto(name="w", data_type=1, dims=[2], raw_data=b"\0" * 7))
    assert "OB602" in codes(inspect(Model(proto)))
    report = look(
        "g (float[2] x) => (y) { y = loc.F (x) }",
        '"": 17, "loc": 1',
        '<domain: "loc", opset_import: ["loc": 1]> F (p) => (q) { q = loc.F (p) }',
    )
    assert "OB606" in codes(report)
    assert report.exit_code == 3


def test_metadata_and_spellings():
    proto = model("g (float[2] x) => (float[2] y) { y = Relu (x) }").proto
    for value in "ab":
        proto.metadata_props.add(key="k", value=value)
    proto.opset_import.add(domain="ai.onnx", version=17)
    assert {"OB626", "OB627"} <= set(codes(inspect(Model(proto))))


def test_the_catalogue_is_whole():
    assert all(entry.sentence and code.startswith("OB6") for code, entry in catalogue().items())


def test_json_has_no_surprises():
    data = look("g (float[N,4] x) => (y) { y = Relu (x) }").to_dict()
    again = json.loads(json.dumps(data, allow_nan=False))
    assert again == data
    assert again["schema"] == "onnxbench.inspect/1"
    assert again["cost"]["peak_bytes"] == "32*N"


def test_a_model_survives_except_for_its_weights():
    given = model("g (float[2] x) => (float[2] y) <float[2] w = {1,2}> { y = Add (x, w) }")
    before = given.proto.SerializeToString(deterministic=True)
    inspect(given)
    assert given.proto.SerializeToString(deterministic=True) == before  # small weights stay
    assert GraphView(given.proto, given.proto.graph).initializers
