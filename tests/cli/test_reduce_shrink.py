"""The options of `onnxbench reduce` that say how a reproducer is made small."""

import json
import signal

import onnx
import pytest

from onnxbench.reducers.passes import catalogue

from .conftest import write
from .test_reduce import interrupted

MODEL = """<ir_version: 8, opset_import: ["": 17], producer_name: "hidden_maker">
hidden_graph (float[hidden_dim, 6] hidden_in) => (float[hidden_dim, 6] hidden_out) {
  [hidden_a] hidden_h = Tanh (hidden_in) [hidden_b] hidden_k = Softsign (hidden_h) [hidden_c] hidden_out = Tanh (hidden_k) }"""
SUSPECT = "misbehaving:ops=Softsign"


@pytest.fixture
def hidden(tmp_path):
    return write(tmp_path / "hidden_model.onnx", MODEL)


def test_the_passes_are_listed_without_a_model(bench):
    listed = bench("reduce", "--list-passes")
    assert listed.returncode == 0
    assert [line.split()[0] for line in listed.stdout.splitlines()] == list(catalogue())
    for order in (["--list-passes", "--json"], ["--json", "--list-passes"]):
        said = json.loads(bench("reduce", *order).stdout)
        assert {row["name"]: row["sentence"] for row in said["passes"]} == {
            name: entry.sentence for name, entry in catalogue().items()
        }


def test_a_reproducer_is_small_and_its_report_has_the_original_names(bench, hidden, tmp_path):
    done = bench("reduce", hidden, "-r", SUSPECT, "--bundle", "b", "--json")
    said = json.loads(done.stdout)
    model = onnx.load(tmp_path / "b" / "model.onnx")
    assert [culprit["name"] for culprit in said["culprits"]] == ["hidden_b"]
    assert said["bytes_after"] == (tmp_path / "b" / "model.onnx").stat().st_size < said["bytes_before"]
    assert sum(row["accepted"] for row in said["passes"]) > 0
    assert [d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim] == [1, 1]
    assert "`names.json` says which node" in (tmp_path / "b" / "REPORT.md").read_text()


@pytest.mark.parametrize(
    "options, left", [(["--passes", "dims,values"], "dims values"), (["--passes", "names"], "names")]
)
def test_passes_are_chosen(bench, hidden, options, left):
    said = json.loads(bench("reduce", hidden, "-r", SUSPECT, "--json", *options).stdout)
    assert " ".join(row["name"] for row in said["passes"]) == left


def test_passes_are_skipped(bench, hidden, tmp_path):
    skipped = ["--skip-pass", "names", "--skip-pass", "dims"]
    said = json.loads(bench("reduce", hidden, "-r", SUSPECT, "--bundle", "b", "--json", *skipped).stdout)
    assert not {"names", "dims"} & {row["name"] for row in said["passes"]}
    assert [node.name for node in onnx.load(tmp_path / "b" / "model.onnx").graph.node] == ["hidden_b"]


@pytest.mark.parametrize("options", [["--passes", "dimms"], ["--skip-pass", "dimms"], ["--passes", "dims,"]])
def test_a_pass_that_is_none_is_said_before_anything_runs(bench, hidden, options):
    done = bench("reduce", hidden, "-r", SUSPECT, *options)
    assert (done.returncode, "error[OB201]: there is no pass" in done.stderr) == (2, True)
    assert "running" not in done.stderr


def test_an_anonymous_bundle_holds_nothing_of_the_original(bench, hidden, tmp_path):
    done = bench("reduce", hidden, "-r", SUSPECT, "--bundle", "b", "--anonymize", "--skip-pass", "names", "--json")
    held = {path: path.read_bytes() for path in (tmp_path / "b").rglob("*") if path.is_file()}
    assert len(held) >= 8
    assert not [path for path, data in held.items() if b"hidden" in data or str(tmp_path).encode() in data]
    assert [culprit["name"] for culprit in json.loads(done.stdout)["culprits"]] == ["hidden_b"]
    told = json.loads((tmp_path / "b.names.json").read_text())
    assert [(row["node"], row["original"]) for row in told["nodes"]] == [("node0", "hidden_b")]


def test_the_map_of_another_bundle_is_not_replaced(bench, hidden, tmp_path):
    (tmp_path / "b.names.json").write_text("mine")
    done = bench("reduce", hidden, "-r", SUSPECT, "--bundle", "b", "--anonymize", "--json")
    assert json.loads(done.stdout)["bundle"] == "b-2"
    assert (tmp_path / "b.names.json").read_text() == "mine"
    assert (tmp_path / "b-2.names.json").exists()


def test_an_interrupt_while_shrinking_hands_back_what_there_is(tmp_path):
    model = write(
        tmp_path / "m.onnx",
        '<ir_version: 8, opset_import: ["": 17]> g (float[N, 8] x) => (float[N, 8] y) { [bad] y = Softsign (x) }',
    )
    arguments = [
        "reduce",
        model,
        "-r",
        "misbehaving:ops=Softsign,do=sleep",
        "--timeout",
        "6",
        "--bundle",
        "b",
        "--json",
        "-v",
    ]
    returned, out, _ = interrupted(tmp_path, arguments, signal.SIGINT, "shrinking")
    said = json.loads(out)
    assert (returned, said["status"], said["confirmed"]) == (130, "minimal", True)
    assert (tmp_path / "b" / "repro.py").exists()
