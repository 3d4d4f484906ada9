"""Faults planted by the misbehaving runtime reach their known minimum."""

import math
import subprocess
import sys

import numpy as np
import pytest
from onnx import ModelProto
from onnx.helper import make_empty_tensor_value_info

from onnxbench import Limits, Model, Tolerance, find
from onnxbench.core.compare import differ_all
from onnxbench.core.feeds import generate
from onnxbench.core.graph import GraphView
from onnxbench.reducers.engine import Engine
from onnxbench.reducers.oracle import Oracle
from onnxbench.reducers.request import Budget
from onnxbench.reducers.signature import Signature

from .conftest import branches, chain, model, names, ops

DEEDS = [
    ("wrong", "numbers", "values"),
    ("nan", "numbers", "nonfinite"),
    ("load", "error", "RuntimeError"),
    ("raise", "error", "ValueError"),
    ("signal", "crash", "SIGSEGV"),
    ("signal,signal=SIGFPE", "crash", "SIGFPE"),
    ("exit,exit=7", "crash", "exit 7"),
]
#: One deed of each kind in long chains, all of them in short ones.
LONG = ("wrong", "raise", "signal")


@pytest.mark.parametrize(
    "deed, kind, detail, length",
    [(*deed, length) for deed in DEEDS for length in (50, 1000) if length == 50 or deed[0] in LONG],
)
def test_one_culprit_in_a_chain_is_left_alone(reduced, deed, kind, detail, length):
    report, left = reduced(chain(length, {length // 3: "Softsign"}), f"misbehaving:ops=Softsign,do={deed}")
    assert names(left) == [f"n{length // 3}"]
    assert (report.signature["kind"], report.signature["detail"]) == (kind, detail)
    assert (report.status, report.confirmed, report.nodes_before, report.nodes_after) == ("minimal", True, length, 1)
    assert report.checks <= math.ceil(math.log2(length)) + 3


def test_the_planted_fault_moves_the_output():
    """Else the reductions of wrong numbers above would prove nothing."""
    planted = chain(1000, {333: "Softsign"})
    feeds = generate(GraphView(planted.proto, planted.proto.graph))
    right = find("onnxruntime:opt=disable").run(planted, feeds)
    wrong = find("misbehaving:ops=Softsign").run(planted, feeds)
    absent = find("misbehaving:ops=Selu").run(planted, feeds)
    assert differ_all(right.outputs, wrong.outputs, Tolerance())
    assert not differ_all(right.outputs, absent.outputs, Tolerance())


def test_a_hang_is_reduced_without_waiting_for_its_whole_timeout_each_time(reduced):
    report, left = reduced(chain(50, {20: "Softsign"}), "misbehaving:ops=Softsign,do=sleep", timeout=5.0)
    assert names(left) == ["n20"]
    assert report.signature["kind"] == "timeout"


def test_a_model_that_eats_the_memory_is_reduced(reduced):
    report, left = reduced(chain(50, {20: "Softsign"}), "misbehaving:ops=Softsign,do=allocate", memory=600 << 20)
    assert names(left) == ["n20"]
    assert report.signature["kind"] == "memory"


@pytest.mark.parametrize("length", [50, 1000])
@pytest.mark.parametrize("deed", ["wrong", "raise", "signal"])
def test_two_culprits_far_apart_leave_two_nodes(reduced, length, deed):
    planted = chain(length, {3: "Softsign", length - 4: "Softplus"})
    report, left = reduced(planted, f"misbehaving:ops=Softsign+Softplus,do={deed}")
    assert names(left) == ["n3", f"n{length - 4}"]
    assert report.status == "minimal"


def test_one_of_many_branches_is_found(reduced):
    _, left = reduced(branches(8, 6, {(5, 2): "Softsign"}), "misbehaving:ops=Softsign")
    assert names(left) == ["b5_2"]


def test_culprits_in_two_branches_leave_two_nodes(reduced):
    planted = branches(8, 6, {(1, 1): "Softsign", (6, 4): "Softplus"})
    _, left = reduced(planted, "misbehaving:ops=Softsign+Softplus")
    assert sorted(names(left)) == ["b1_1", "b6_4"]


def test_a_fusion_that_an_exposed_value_prevents_is_kept_whole(reduced):
    planted = chain(60, {30: "Softsign", 31: "Softplus"})
    _, left = reduced(planted, "misbehaving:fused=Softsign+Softplus")
    assert names(left) == ["n30", "n31"]
    assert len(left.graph.output) == 1


def test_a_fault_that_needs_a_constant_keeps_it_constant(reduced):
    planted = model(
        "agraph (float[N, 2] x) => (float[N, 2] y) <float[2] one = {1, 1}> "
        "{ [a] a = Tanh(x) [b] b = Min(a, one) [c] y = Neg(b) }"
    )
    _, left = reduced(planted, "misbehaving:ops=Min,constant=1")
    assert names(left) == ["b"]
    assert [tensor.name for tensor in left.graph.initializer] == ["one"]


def test_a_constant_that_was_computed_becomes_an_initializer_when_its_maker_goes(reduced):
    planted = model(
        "agraph (float[N, 2] x) => (float[N, 2] y) <float[2] one = {1, 1}> "
        "{ [k] k = Softplus(one) [b] b = Min(x, k) [c] y = Neg(b) }"
    )
    _, left = reduced(planted, "misbehaving:ops=Min,do=raise")
    assert names(left) == ["b"]
    assert [tensor.name for tensor in left.graph.initializer] == ["k"]
    assert [value.name for value in left.graph.input] == ["x"]


def test_a_failure_that_only_real_values_show_keeps_them(reduced):
    """The culprit fails above 3 only; its input comes from a large weight, whatever random data would do."""
    planted = model(
        "agraph (float[N, 2] x) => (float[N, 2] y) <float[2] big = {100, 100}> "
        "{ [a] a = Abs(x) [b] b = Add(a, big) [c] c = Softsign(b) [d] y = Neg(c) }"
    )
    _, left = reduced(planted, "misbehaving:ops=Softsign,above=90")
    assert names(left) == ["c"]


@pytest.mark.parametrize("truth, culprit", [(True, "q"), (False, "u")])
def test_the_taken_branch_of_an_if_is_opened(reduced, truth, culprit):
    operators = {"q": "Tanh", "u": "Tanh", culprit: "Softsign"}
    planted = model(
        "agraph (float[N, 3] x, bool c) => (float[N, 3] y) { [a] a = Abs(x) [i] r = If (c) <"
        f"then_branch = t () => (float[N, 3] o) {{ [p] p = Neg(a) [q] q = {operators['q']}(p) [s] o = Neg(q) }}, "
        f"else_branch = e () => (float[N, 3] o2) {{ [u] u = {operators['u']}(a) [v] o2 = Abs(u) }}> [z] y = Neg(r) }}"
    )
    feeds = {"x": np.ones((2, 3), np.float32), "c": np.array(truth)}
    report, left = reduced(planted, "misbehaving:ops=Softsign", feeds=feeds)
    assert (names(left), ops(left)) == ([culprit], ["Softsign"])
    assert report.all_nodes_before == 8


def test_a_culprit_in_nested_branches_is_opened_level_by_level(reduced):
    planted = model(
        "agraph (float[N, 3] x) => (float[N, 3] y) <bool c = {1}> { [a] a = Softplus(x) [i] r = If (c) <"
        "then_branch = t () => (float[N, 3] o) { [k] k = Identity(c) [j] o = If (k) <"
        "  then_branch = tt () => (float[N, 3] m) { [p] p = Neg(a) [q] q = Softsign(p) [s] m = Neg(q) },"
        "  else_branch = ee () => (float[N, 3] m) { [w] m = Abs(a) }> }, "
        "else_branch = e () => (float[N, 3] o2) { [v] o2 = Abs(a) }> [z] y = Neg(r) }"
    )
    _, left = reduced(planted, "misbehaving:ops=Softsign,do=raise")
    assert names(left) == ["q"]
    _, left = reduced(planted, "misbehaving:ops=Softsign+Softplus,do=raise", force=True)
    assert names(left) == ["a", "q"]


def test_control_flow_that_is_part_of_the_failure_is_kept(reduced):
    planted = model(
        "agraph (float[N, 3] x) => (float[N, 3] y) <bool c = {1}> { [a] a = Abs(x) [i] r = If (c) <"
        "then_branch = t () => (float[N, 3] o) { [q] o = Softsign(a) }, "
        "else_branch = e () => (float[N, 3] o2) { [v] o2 = Abs(a) }> [z] y = Neg(r) }"
    )
    _, left = reduced(planted, "misbehaving:ops=Softsign,inside=1,do=raise")
    assert names(left) == ["i"]


def test_functions_are_inlined(reduced):
    planted = model(
        "agraph (float[N, 3] x) => (float[N, 3] y) { [a] a = Abs(x) [f] b = loc.F <alpha = 0.3> (a) [z] y = Neg(b) }",
        '"": 17, "loc": 1',
        '<domain: "loc", opset_import: ["": 17, "loc": 1]> F <alpha> (q) => (z) '
        "{ q1 = loc.G (q) z = LeakyRelu <alpha: float = @alpha> (q1) }"
        '<domain: "loc", opset_import: ["": 17]> G (q) => (z) { q1 = Abs(q) q2 = Softsign(q1) z = Neg(q2) }',
    )
    _, left = reduced(planted, "misbehaving:ops=Softsign,do=signal")
    assert ops(left) == ["Softsign"]
    assert not left.functions


def test_a_failure_that_needs_the_function_keeps_it(reduced):
    planted = model(
        "agraph (float[N, 3] x) => (float[N, 3] y) { [a] a = Abs(x) [f] b = loc.F (a) [z] y = Neg(b) }",
        '"": 17, "loc": 1',
        '<domain: "loc", opset_import: ["": 17]> F (q) => (z) { z = Softsign(q) }',
    )
    _, left = reduced(planted, "misbehaving:ops=Softsign,inside=1,do=raise")
    assert names(left) == ["f"]
    assert [function.name for function in left.functions] == ["F"]


def test_a_flaky_failure_is_measured_and_reduced(reduced, tmp_path):
    """It fails every second time: the half that passes at first must not be taken for healthy."""
    suspect = f"misbehaving:ops=Softsign,beat={tmp_path / 'beats'}"
    report, left = reduced(chain(50, {20: "Softsign"}), suspect)
    assert names(left) == ["n20"]
    assert (report.failed, report.runs) == (11, 20)  # the second was to tell whether cheap settings hide it
    assert report.notes == ["flaky: the original failed 11 of 20 runs"]


def test_another_failure_on_the_way_does_not_count(reduced, tmp_path):
    """Half of the chain alone fails too, but with another message: a runtime that wants both operators or neither."""
    planted = chain(40, {10: "Softsign", 30: "Softplus"})
    picky = tmp_path / "picky.py"
    picky.write_text(PICKY)
    report, left = reduced(planted, f"python:{picky}:run")
    assert names(left) == ["n10", "n30"]
    assert report.by_products


def test_names_that_are_words_or_numbers_of_the_message_do_not_matter(reduced):
    """The kernel "failed after 808 ms": of a model whose values are called failed, ms, kernel, 0, 1, 2, ..."""
    planted = chain(1000, {700: "Softsign"})
    words = {"t1": "kernel", "t2": "failed", "t990": "ms", "t995": "after", "t0": "node", "t1000": "of"}
    for i in range(3, 980):
        words[f"t{i}"] = str(i)
    for node in planted.proto.graph.node:
        node.input[0], node.output[0] = (
            words.get(node.input[0], node.input[0]),
            words.get(node.output[0], node.output[0]),
        )
    for value in (*planted.proto.graph.input, *planted.proto.graph.output):
        value.name = words[value.name]
    report, left = reduced(planted, "misbehaving:ops=Softsign,do=raise")
    assert names(left) == ["n700"]
    assert report.checks <= math.ceil(math.log2(1000)) + 3


PICKY = """
import onnx

def run(model, feeds):
    ops = {node.op_type for node in onnx.ModelProto.FromString(model).graph.node}
    if {"Softsign", "Softplus"} <= ops:
        raise ValueError("both")
    if "Softsign" in ops or "Softplus" in ops:
        raise ValueError("one without the other")
    return {}
"""


def test_symbolic_dims_stay_symbolic(reduced):
    _, left = reduced(chain(30, {20: "Softsign"}), "misbehaving:ops=Softsign,do=raise")
    assert left.graph.input[0].type.tensor_type.shape.dim[0].dim_param == "N"
    assert left.graph.output[0].type.tensor_type.shape.dim[0].dim_param == "N"


def test_a_failure_that_no_trusted_runtime_gets_past_is_reduced(reduced):
    """The trusted runtime is the failing one: values behind the culprit cannot be recorded."""
    suspect = "misbehaving:ops=Softsign,do=signal"
    _, left = reduced(chain(50, {20: "Softsign"}), suspect, against=suspect)
    assert names(left) == ["n20"]


def test_a_model_that_does_not_fail_is_said_so(reduced):
    report, left = reduced(chain(20, {}), "misbehaving:ops=Softsign")
    assert (report.status, report.exit_code, left) == ("not-reproduced", 1, None)


def test_within_searches_only_there(reduced):
    planted = chain(40, {10: "Softsign", 30: "Softsign"})
    _, left = reduced(
        planted,
        "misbehaving:ops=Softsign,do=raise",
        within=lambda view: [node for node in view.order if 25 <= node.index < 35],
    )
    assert names(left) == ["n30"]


def test_the_inputs_of_the_bundle_are_the_recorded_values(reduced, tmp_path):
    planted = chain(20, {15: "Softsign"})
    reduced(planted, "misbehaving:ops=Softsign")
    view = GraphView(planted.proto, planted.proto.graph)
    exposed = planted.proto
    exposed.graph.output.add().name = "t15"
    right = find("onnxruntime:opt=disable").run(planted, generate(view)).outputs["t15"]
    with np.load(tmp_path / "bundle" / "inputs.npz") as held:
        np.testing.assert_array_equal(held["t15"], right)


def test_repro_says_gone_when_the_runtime_is_cured(reduced, tmp_path):
    """The script of a bundle, with the fault taken out of its runtime: exit 0, not 1."""
    reduced(chain(20, {15: "Softsign"}), "misbehaving:ops=Softsign")
    repro = tmp_path / "bundle" / "repro.py"
    assert subprocess.run([sys.executable, repro], check=False).returncode == 1
    repro.write_text(repro.read_text().replace("'ops': 'Softsign'", "'ops': 'Selu'"))
    assert subprocess.run([sys.executable, repro], check=False).returncode == 0
    repro.write_text(repro.read_text().replace("import onnxruntime", "import no_such_runtime"))
    assert subprocess.run([sys.executable, repro], check=False).returncode == 125


def test_random_numbers_do_not_hide_the_fault(reduced, tmp_path):
    graph = """agraph (float[4] x) => (float[4] y) {
        [draw] r = RandomNormal <shape = [4]> () [add] a = Add (r, x) [bad] b = Softsign (a) [last] y = Tanh (b) }"""
    report, left = reduced(model(graph), "misbehaving:ops=Softsign", against="reference")
    assert names(left) == ["bad"]
    assert not report.notes


def test_only_random_numbers_are_called_so(reduced, tmp_path):
    graph = "agraph (float[4] x) => (float[4] y) { [draw] r = RandomNormal <shape = [4]> () [add] y = Add (r, x) }"
    report, left = reduced(model(graph), "onnxruntime", against="reference")
    assert names(left) == ["draw"]
    assert report.notes == ["RandomNormal draws random numbers, which two runtimes draw differently"]


@pytest.mark.parametrize("at", ["input", "output"])
def test_a_type_that_numpy_lacks_at_the_border_fails_again(reduced, at):
    """ONNX Runtime gets and gives it as bytes, in repro.py as in the worker."""
    body = "h = Cast <to = 16> (x) [bad] s = Reshape (h, five)"
    end = "[last] y = Cast <to = 1> (s)" if at == "input" else "[last] y = Reshape (s, five)"
    result = "float[5] y" if at == "input" else "bfloat16[5] y"
    planted = model(
        f"agraph (float[4] x) => ({result}) <int64[1] five = {{5}}> {{ [cast] {body} {end} }}", opsets='"": 19'
    )
    report, left = reduced(planted, "onnxruntime:opt=disable")
    assert names(left) == ["bad"]
    assert (report.signature["kind"], report.signature["phase"]) == ("error", "run")


def test_a_failure_that_cheap_settings_hide_is_searched_without_them(reduced):
    report, left = reduced(chain(50, {20: "Softsign"}), "misbehaving:ops=Softsign,dear=1")
    assert names(left) == ["n20"]
    assert (report.failed, report.runs) == (3, 3)
    cheap = find("misbehaving:ops=Softsign,dear=1").cheap()
    planted = chain(50, {20: "Softsign"})
    feeds = generate(GraphView(planted.proto, planted.proto.graph))
    right, hidden = (runtime.run(planted, feeds) for runtime in (find("onnxruntime:opt=disable"), cheap))
    assert not differ_all(right.outputs, hidden.outputs)


@pytest.fixture
def heavy(monkeypatch):
    """Networks of any size are searched as large ones are: by halves, before the whole runs once more."""
    monkeypatch.setattr("onnxbench.reducers.searching._FEW", 10)


@pytest.mark.parametrize("deed", ["wrong", "raise", "nan"])
def test_a_large_network_is_halved_at_once(reduced, heavy, deed):
    report, left = reduced(chain(64, {40: "Softsign"}), f"misbehaving:ops=Softsign,do={deed}")
    assert names(left) == ["n40"]
    assert report.checks <= math.ceil(math.log2(64)) + 1


def test_a_large_network_with_two_culprits_keeps_both(reduced, heavy):
    _, left = reduced(chain(64, {3: "Softsign", 60: "Softplus"}), "misbehaving:ops=Softsign+Softplus")
    assert names(left) == ["n3", "n60"]


def test_a_large_network_of_which_nothing_can_go_is_handed_back_when_the_budget_is_spent(reduced, heavy):
    planted = chain(64, {3: "Softsign", 60: "Softplus"})
    report, left = reduced(planted, "misbehaving:ops=Softsign+Softplus", budget=Budget(checks=2))
    assert len(names(left)) == 64
    assert report.status == "best"


def test_what_was_recorded_does_not_speak_for_the_judge_to_the_end():
    """A recording that is wrong itself makes a node look wrong that is not; the judge is asked before it is believed."""
    planted = chain(32, {20: "Softsign"})
    view = GraphView(planted.proto, planted.proto.graph)
    right, suspect = find("onnxruntime:opt=disable"), find("misbehaving:ops=Softsign")
    feeds = generate(view)
    exposed = ModelProto.FromString(planted.proto.SerializeToString())
    exposed.graph.output.extend(make_empty_tensor_value_info(f"t{i}") for i in range(1, 32))
    values = {**feeds, **right.run(Model(exposed, label="exposed"), feeds).outputs}
    values["t16"] = values["t16"] + 1  # what n15 makes
    oracle = Oracle(
        suspect, right, Signature("numbers", "values"), None, frozenset(), Tolerance(), Limits(), hasty=True
    )
    engine = Engine(planted, view, values, {}, oracle)
    engine.minimise()
    assert [node.proto.name for node in engine.best.nodes] == ["n15"]
    assert not engine.confirm()
    engine.restart(None)
    engine.minimise()
    assert [node.proto.name for node in engine.best.nodes] == ["n20"]
    assert engine.confirm()
