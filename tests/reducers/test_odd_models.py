"""Planted faults in models that hold what most models do not: each reaches its known minimum, and moves the output."""

import subprocess
import sys

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from onnxbench import Model, Tolerance, find
from onnxbench.core.compare import differ_all
from onnxbench.core.feeds import generate
from onnxbench.core.graph import GraphView

from .conftest import model, names, ops

#: A graph with the node `bad` at fault, and what is left of it.
GRAPHS = {
    "omitted input": (
        "g (float[4] x) => (float[4] y) <float hi = {0.5}> { a = Tanh (x) [bad] b = Clip (a, , hi) y = Neg (b) }",
        ["Clip"],
    ),
    "sequence": (
        """g (float[4] x) => (float[8] y) { a = Tanh (x) b = Neg (x) s = SequenceConstruct (a, b)
        [bad] t = ConcatFromSequence <axis = 0> (s) y = Sin (t) }""",
        ["ConcatFromSequence"],
    ),
    "optional": (
        "g (float[4] x) => (float[4] y) { a = Tanh (x) o = Optional (a) [bad] b = OptionalGetElement (o) y = Sin (b) }",
        ["OptionalGetElement"],
    ),
    "zero-length dim": (
        """g (float[0, 4] x) => (float[2, 4] y) <float[2, 4] w = {1, 2, 3, 4, 5, 6, 7, 8}> {
        a = Tanh (x) [bad] b = Concat <axis = 0> (a, w) y = Sin (b) }""",
        ["Concat"],
    ),
    "overridable initializer": (
        "g (float[4] x, float[4] w) => (float[4] y) <float[4] w = {1, 2, 3, 4}> { a = Tanh (x) [bad] b = Add (a, w) y = Sin (b) }",
        ["Add"],
    ),
}


def planted(graph: str) -> Model:
    return model(graph, '"": 18')


@pytest.mark.parametrize("deed, kind", [("wrong", "numbers"), ("raise", "error"), ("signal", "crash")])
@pytest.mark.parametrize("graph, kept", GRAPHS.values(), ids=GRAPHS)
def test_the_node_at_fault_is_left_alone(reduced, graph, kept, deed, kind):
    report, left = reduced(planted(graph), f"misbehaving:names=bad,do={deed}")
    assert (report.status, report.signature["kind"], report.confirmed) == ("minimal", kind, True)
    assert (ops(left), names(left)) == (kept, ["bad"])


@pytest.mark.parametrize("graph, kept", GRAPHS.values(), ids=GRAPHS)
def test_the_planted_fault_moves_the_output(graph, kept):
    whole = planted(graph)
    feeds = generate(GraphView(whole.proto, whole.proto.graph))
    right = find("onnxruntime:opt=disable").run(whole, feeds)
    assert right.ok
    assert differ_all(right.outputs, find("misbehaving:names=bad").run(whole, feeds).outputs, Tolerance())
    assert not differ_all(right.outputs, find("misbehaving:names=absent").run(whole, feeds).outputs, Tolerance())


def test_an_omitted_output_stays_omitted(reduced):
    filled = ",".join(["0.1"] * 24), ",".join(["0.2"] * 16)
    weights = f"<float[1, 8, 3] w = {{{filled[0]}}}, float[1, 8, 2] r = {{{filled[1]}}}>"
    graph = f"""g (float[5, 1, 3] x) => (float[1, 1, 2] y) {weights} {{
        a = Tanh (x) [bad] , , c = LSTM <hidden_size = 2> (a, w, r, , , , ) y = Neg (c) }}"""
    report, left = reduced(planted(graph), "misbehaving:names=bad,do=raise")
    assert (report.confirmed, names(left)) == (True, ["bad"])
    assert list(left.graph.node[0].output)[:2] == ["", ""]


def test_an_empty_optional_is_fed_to_the_reproducer(reduced, tmp_path):
    kind = helper.make_tensor_type_proto(TensorProto.FLOAT, [4])
    nodes = [
        helper.make_node("Tanh", ["x"], ["a"]),
        helper.make_node("Optional", [], ["o"], type=kind),
        helper.make_node("OptionalHasElement", ["o"], ["h"], "bad"),
        helper.make_node("Not", ["h"], ["n"]),
    ]
    border = (
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4])],
        [
            helper.make_tensor_value_info("a", TensorProto.FLOAT, [4]),
            helper.make_tensor_value_info("n", TensorProto.BOOL, []),
        ],
    )
    whole = helper.make_model(
        helper.make_graph(nodes, "g", *border), opset_imports=[helper.make_opsetid("", 18)], ir_version=8
    )
    report, left = reduced(Model(whole, label="planted"), "misbehaving:names=bad,do=raise")
    assert (report.confirmed, names(left)) == (True, ["bad"])


CUSTOM = """g (float[4] x) => (float[4] y) { a = Tanh (x) b = Neg (a) [bad] c = own.Wonder <k = 3> (b) [bad2] d = own.Wonder (c)
    y = Sin (d) }"""


@pytest.mark.parametrize("deed, kind", [("raise", "error"), ("signal", "crash")])
def test_an_operator_that_only_the_suspect_knows_is_left_alone(reduced, deed, kind):
    """No trusted runtime runs the model: what is behind the operator has no value, and still goes."""
    whole = model(CUSTOM, '"": 17, "own": 1')
    feeds = {"x": np.ones(4, np.float32)}
    assert not any(find(name).run(whole, feeds).ok for name in ("onnxruntime:opt=disable", "reference"))
    report, left = reduced(whole, f"misbehaving:names=bad,do={deed}")
    assert (report.status, report.signature["kind"], report.confirmed) == ("minimal", kind, True)
    assert names(left) == ["bad"]


def test_a_check_finds_two_operators_that_nobody_knows(tmp_path):
    onnx.save(model(CUSTOM, '"": 17, "own": 1').proto, tmp_path / "m.onnx")
    (tmp_path / "check.py").write_text(
        "import onnx, sys\nsys.exit([n.op_type for n in onnx.load(sys.argv[1]).graph.node].count('Wonder') == 2)"
    )
    command = [sys.executable, "-m", "onnxbench", "reduce", "m.onnx", "--passes", "", "--check"]
    done = subprocess.run([*command, f"{sys.executable} check.py"], cwd=tmp_path, check=False, capture_output=True)
    assert done.returncode == 0, done.stderr
    assert names(onnx.load(tmp_path / "m.repro" / "model.onnx")) == ["bad", "bad2"]


def test_an_initializer_is_no_input_any_more_unless_the_failure_needs_that(reduced):
    graph, _ = GRAPHS["overridable initializer"]
    report, left = reduced(planted(graph), "misbehaving:names=bad,do=raise", passes=["inputs", "dims"])
    assert report.confirmed
    assert [value.name for value in left.graph.input] == ["a"]
    assert [list(tensor.dims) for tensor in left.graph.initializer] == [[1]]


def test_one_input_stays_whatever_a_pass_makes_of_the_operator(reduced):
    """Identity of what became an initializer would do, and would be computed before it runs."""
    text = "g (string[3] x) => (string[3] y) { a = Identity (x) [bad] b = StringConcat (a, x) y = Identity (b) }"
    report, left = reduced(model(text, '"": 20'), "misbehaving:names=bad,do=raise", passes=None)
    assert (report.confirmed, len(left.graph.node), len(left.graph.input)) == (True, 1, 1)
