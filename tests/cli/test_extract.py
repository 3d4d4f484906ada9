"""`onnxbench extract` as a user has it."""

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper, parser

from .conftest import write

CHAIN = """<ir_version: 8, opset_import: ["": 17]>
g (float[N, 3] x, float[N, 3] p) => (float[N, 3] y) {
  [one] a = Relu (x) [two] b = Neg (a) [three] c = Add (b, p) [four] y = Abs (c) }"""
UNTOLD = """<ir_version: 8, opset_import: ["": 17, "com.example": 1]>
g (float[2] x) => (float[2] y) { z = com.example.Zap (x) q = com.example.Zip (z) y = com.example.Zap (q) }"""


@pytest.fixture
def chain(tmp_path: Path) -> Path:
    return write(tmp_path / "chain.onnx", CHAIN)


def names(path):
    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    return [v.name for v in model.graph.input], [v.name for v in model.graph.output]


def test_a_piece_and_what_is_said_of_it(bench, chain, tmp_path):
    done = bench("extract", chain, "--from", "a", "--to", "b", "-o", "piece.onnx")
    assert (done.returncode, names(tmp_path / "piece.onnx")) == (0, (["a"], ["b"]))
    assert "4 nodes -> 1" in done.stdout
    assert "in   a  float[N, 3]" in done.stdout
    assert "written to piece.onnx" in done.stdout


def test_json(bench, chain):
    done = bench("extract", chain, "--from", "a", "--to", "b", "-o", "piece.onnx", "--json", "-q")
    report = json.loads(done.stdout)
    assert report["schema"] == "onnxbench.extraction/1"
    assert (report["nodes_before"], report["nodes_after"], report["output"]) == (4, 1, "piece.onnx")
    assert report["inputs"] == [{"name": "a", "type": "float[N, 3]", "source": "cut", "told_by": ""}]
    assert done.stderr == ""


def test_missing_inputs_end_with_1_and_the_command_of_the_hint_works(bench, chain, tmp_path):
    done = bench("extract", chain, "--from", "a", "--to", "c", "-o", "piece.onnx", "--json")
    error = json.loads(done.stdout)["error"]
    assert (done.returncode, error["code"], "'p'" in error["message"]) == (1, "OB102", True)
    assert not (tmp_path / "piece.onnx").exists()
    command = error["hint"].partition("  (")[0].replace("-o FILE", "-o piece.onnx").split()
    assert bench(*command[1:]).returncode == 0
    assert names(tmp_path / "piece.onnx") == (["p", "a"], ["c"])
    assert bench("extract", chain, "--from", "a", "--to", "c", "-o", "auto.onnx", "--auto-inputs").returncode == 0


def test_the_command_of_the_hint_for_types_works(bench, tmp_path):
    model = write(tmp_path / "untold.onnx", UNTOLD)
    done = bench("extract", model, "--from", "z", "--to", "q", "-o", "piece.onnx")
    assert (done.returncode, "OB102" in done.stderr) == (1, True)
    hint = done.stderr.partition("hint: ")[2].split()
    options = [part.replace("[1,3]", "[2]").strip("'") for part in hint]
    assert bench("extract", model, "--from", "z", "--to", "q", "-o", "piece.onnx", *options).returncode == 0
    assert names(tmp_path / "piece.onnx") == (["z"], ["q"])


@pytest.mark.parametrize(
    "options, code",
    [
        ([], 2),
        (["--to", "b", "--op", "Neg"], 2),
        (["--to", "b", "--value-type", "a"], 2),
        (["--to", "b", "--value-type", "a=float32"], 2),
        (["--to", "b", "--value-type", "nothing=float32[1]"], 3),
        (["--to", "nothing"], 3),
        (["--to", "not ("], 2),
        (["--to", "x"], 1),
        (["--around", "two", "--hops", "-1"], 2),
        (["--scope", "nowhere"], 3),
        (["--to", "b", "--with-data", "--shape", "nothing=1"], 3),
    ],
)
def test_what_cannot_be_done_says_so_and_writes_nothing(bench, chain, tmp_path, options, code):
    done = bench("extract", chain, *options, "-o", "piece.onnx")
    assert done.returncode == code, done.stderr
    assert "error[OB" in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["chain.onnx"]


def test_where_it_goes(bench, chain, tmp_path):
    assert bench("extract", chain, "--to", "b").returncode == 2
    stream = bench("extract", chain, "--to", "b", "-o", "-", "-q", text=False)
    assert [v.name for v in onnx.load_model_from_string(stream.stdout).graph.output] == ["b"]
    assert bench("extract", chain, "--to", "b", "-n").returncode == 0
    assert bench("extract", chain, "--to", "b", "-o", "-", "--json").returncode == 2
    assert [path.name for path in tmp_path.iterdir()] == ["chain.onnx"]
    assert bench("extract", chain, "--to", "b", "-o", "chain.onnx").returncode == 2
    assert bench("extract", chain, "--to", "b", "--in-place").returncode == 0
    assert names(chain) == (["x"], ["b"])


def test_from_standard_input(bench, chain):
    done = bench("extract", "-", "--to", "b", "-o", "-", "-q", input=chain.read_bytes(), text=False)
    assert [v.name for v in onnx.load_model_from_string(done.stdout).graph.output] == ["b"]


def test_several_models_go_into_a_folder_and_a_bad_one_stops_none(bench, chain, tmp_path):
    write(tmp_path / "other.onnx", CHAIN.replace("b", "d"))
    done = bench("extract", "chain.onnx", "other.onnx", "--to", "b", "-o", "pieces", "--json")
    rows = json.loads(done.stdout)["models"]
    assert done.returncode == 3
    assert ["error" in row for row in rows] == [False, True]
    assert [path.name for path in (tmp_path / "pieces").iterdir()] == ["chain.onnx"]


def test_the_data_set_beside_it_is_right(bench, chain, tmp_path):
    arguments = ["extract", chain, "--from", "a", "--from", "p", "--to", "c", "-o", "piece.onnx", "--with-data"]
    assert bench(*arguments, "--dim", "N=5").returncode == 0
    folder = tmp_path / "test_data_set_0"
    values = {path.stem: numpy_helper.to_array(onnx.load_tensor(path)) for path in sorted(folder.iterdir())}
    assert list(values) == ["input_0", "input_1", "output_0"]
    assert values["output_0"].shape == (5, 3)
    p, a = values["input_0"], values["input_1"]
    np.testing.assert_array_equal(values["output_0"], -a + p)
    again = bench(*arguments)
    assert (again.returncode, "OB202" in again.stderr) == (2, True)
    assert bench(*arguments, "--force").returncode == 0
    assert numpy_helper.to_array(onnx.load_tensor(folder / "output_0.pb")).shape == (2, 3)


@pytest.mark.skipif(sys.platform != "linux", reason="a limit on the size of files stands for a full disk")
def test_without_room_for_the_data_there_is_no_piece_either(chain, tmp_path):
    arguments = [
        "extract",
        "chain.onnx",
        "--to",
        "b",
        "-o",
        "piece.onnx",
        "--with-data",
        "--dim",
        "N=5000",
    ]  # 60 kB, which no worker writes
    done = subprocess.run(
        [sys.executable, "-m", "onnxbench", *arguments],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, 30_000)),
    )
    assert done.returncode == 4, done.stderr
    assert "error[OB402]" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["chain.onnx"]


def test_hops_without_a_place_are_refused(bench, chain, tmp_path):
    done = bench("extract", chain, "--to", "b", "--hops", "2", "-o", "piece.onnx")
    assert (done.returncode, "--around" in done.stderr) == (2, True)
    assert bench("extract", chain, "--around", "two", "--hops", "0", "-o", "piece.onnx").returncode == 0
    assert names(tmp_path / "piece.onnx") == (["a"], ["b"])


def test_data_needs_a_folder_of_its_own(bench, chain, tmp_path):
    write(tmp_path / "other.onnx", CHAIN)
    assert bench("extract", "chain.onnx", "--to", "b", "-o", "-", "--with-data").returncode == 2
    assert bench("extract", "chain.onnx", "other.onnx", "--to", "b", "-o", "d", "--with-data").returncode == 2


def test_text_in_and_out(bench, tmp_path):
    (tmp_path / "m.onnxtxt").write_text(CHAIN)
    assert bench("extract", "m.onnxtxt", "--to", "b", "-o", "piece.onnxtxt").returncode == 0
    assert len(parser.parse_model((tmp_path / "piece.onnxtxt").read_text()).graph.node) == 2
    model = parser.parse_model(CHAIN)
    model.graph.node[0].doc_string = "lost in text"
    onnx.save(model, tmp_path / "doc.onnx")
    done = bench("extract", "doc.onnx", "--to", "b", "-o", "doc.onnxtxt")
    assert (done.returncode, "OB203" in done.stderr) == (2, True)
    assert bench("extract", "doc.onnx", "--to", "b", "-o", "doc.onnxtxt", "--allow-lossy").returncode == 0


def test_small_weights_go_into_the_graph_of_a_piece_elsewhere(bench, tmp_path):
    model = parser.parse_model(CHAIN.replace("Neg (a)", "Mul (a, w)"))
    model.graph.initializer.append(numpy_helper.from_array(np.full(3, 2, np.float32), "w"))
    onnx.save(model, tmp_path / "m.onnx", save_as_external_data=True, location="m.data", size_threshold=0)
    (tmp_path / "elsewhere").mkdir()
    assert bench("extract", "m.onnx", "--to", "b", "-o", "elsewhere/piece.onnx").returncode == 0
    assert [path.name for path in (tmp_path / "elsewhere").iterdir()] == ["piece.onnx"]
    assert bench("extract", "m.onnx", "--to", "b", "-o", "piece.onnx").returncode == 0
    light = onnx.load(tmp_path / "piece.onnx", load_external_data=False)
    assert light.graph.initializer[0].external_data[0].value == "m.data"


def test_hostile_names_do_not_reach_the_terminal(bench, tmp_path):
    model = parser.parse_model(CHAIN)
    for node in model.graph.node:
        node.output[:] = [name.replace("b", "b\x1b[31m") for name in node.output]
        node.input[:] = [name.replace("b", "b\x1b[31m") for name in node.input]
    onnx.save(model, tmp_path / "m.onnx")
    done = bench("extract", "m.onnx", "--node", "two", "-o", "piece.onnx")
    assert done.returncode == 0
    assert "\x1b" not in done.stdout + done.stderr
