"""`onnxbench fold` from outside: streams, places, broken models, what hangs or dies, interrupts."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from .judging import assert_same, fold, model_of, ops, random

SMALL = "g (float[N, 3] x) => (float[N, 3] y) <float[3] w = {1, 2, 3}> { a = Add(w, w) y = Add(x, a) }"
HANGING = """g (float[2] x) => (float[2] y) <float[2] w = {1, 2}, int64 many = {9223372036854775807}, bool on = {1}> {
  k = Mul(w, w) l = Loop(many, on, w) <body = b (int64 i, bool c, float[2] s) => (bool d, float[2] r) {
    d = Identity(c) r = Sin(s) }>
  b = Add(x, k) y = Add(b, l) }"""


@pytest.fixture
def bench(tmp_path):
    """Run `onnxbench fold ...` in a temporary folder; bytes in, bytes out."""

    def run(*arguments, **more):
        command = [sys.executable, "-m", "onnxbench", "fold", *map(str, arguments)]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=120, check=False, **more)

    return run


def write(path, text):
    onnx.save(model_of(text), path)
    return path


def test_streams_give_the_bytes_that_a_file_gets(bench, tmp_path):
    write(tmp_path / "m.onnx", SMALL)
    assert bench("m.onnx", "-o", "out.onnx").returncode == 0
    piped = bench("-", "-o", "-", input=(tmp_path / "m.onnx").read_bytes())
    assert piped.returncode == 0
    assert piped.stdout == (tmp_path / "out.onnx").read_bytes()
    assert ops(onnx.load_from_string(piped.stdout)) == ["Add"]


def test_a_broken_model_among_several_stops_no_other(bench, tmp_path):
    write(tmp_path / "a.onnx", SMALL)
    (tmp_path / "b.onnx").write_bytes(b"\xff\x00junk" * 20)
    write(tmp_path / "c.onnx", SMALL)
    done = bench("a.onnx", "b.onnx", "c.onnx", "-o", "out", "--json")
    said = json.loads(done.stdout)
    assert done.returncode == 3
    assert [("error" in entry) for entry in said["models"]] == [False, True, False]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["a.onnx", "c.onnx"]


@pytest.mark.parametrize("content", [b"", b"\x08\x0a" * 50])
def test_junk_is_told_from_a_model(bench, tmp_path, content):
    (tmp_path / "m.onnx").write_bytes(content)
    done = bench("m.onnx", "-o", "out.onnx")
    assert done.returncode == 3
    assert b"error[OB30" in done.stderr
    assert b"Traceback" not in done.stderr
    assert not (tmp_path / "out.onnx").exists()


def test_in_place_keeps_external_data_that_is_still_used(bench, tmp_path):
    source = model_of("g (float[1, 300] x) => (float[1, 300] y) { a = Add(w, w) b = MatMul(x, v) y = Add(b, a) }")
    source.graph.initializer.append(numpy_helper.from_array(random(300), "w"))
    source.graph.initializer.append(numpy_helper.from_array(random(300, 300), "v"))
    path = tmp_path / "m.onnx"
    copy = onnx.ModelProto.FromString(source.SerializeToString())
    onnx.save(copy, path, save_as_external_data=True, location="m.data", size_threshold=100)
    assert bench("m.onnx", "--in-place").returncode == 0
    folded = onnx.load(path)
    assert ops(folded) == ["MatMul", "Add"]
    assert path.stat().st_size < 5000
    assert_same(source, folded, {"x": random(1, 300)})


def test_what_hangs_stays_and_stops_nothing(bench, tmp_path):
    write(tmp_path / "m.onnx", HANGING)
    started = time.monotonic()
    done = bench("m.onnx", "-o", "out.onnx", "--timeout", "1")
    assert done.returncode == 0, done.stderr
    assert time.monotonic() - started < 40
    assert ops(onnx.load(tmp_path / "out.onnx")) == ["Loop", "Add", "Add"]


def test_what_kills_a_runtime_stays_and_stops_nothing(bench, tmp_path):
    write(
        tmp_path / "m.onnx",
        """g (int64[2] x) => (int64[2] y) <int64[2] w = {1, 2}, int64[2] z = {0, 0}> {
        zero = Add(z, z) d = Div(w, zero) k = Mul(w, w) b = Add(x, k) y = Add(b, d) }""",
    )
    assert bench("m.onnx", "-o", "out.onnx").returncode == 0
    assert sorted(ops(onnx.load(tmp_path / "out.onnx"))) == ["Add", "Add", "Div"]


def test_a_target_that_cannot_be_written_is_told(bench, tmp_path):
    write(tmp_path / "m.onnx", SMALL)
    assert bench("m.onnx", "-o", "absent/out.onnx").returncode == 2
    assert bench("m.onnx", "-o", "m.onnx").returncode == 2
    assert bench("m.onnx", "-o", "/proc/out.onnx").returncode == 4


def test_nothing_is_written_in_a_dry_run_and_each_node_has_a_reason(bench, tmp_path):
    before = write(tmp_path / "m.onnx", SMALL).read_bytes()
    done = bench("m.onnx", "--dry-run", "--explain")
    assert done.returncode == 0
    assert b"removed Add that makes 'a': the same in every run (constants)" in done.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["m.onnx"]
    assert (tmp_path / "m.onnx").read_bytes() == before


@pytest.mark.skipif(os.name == "nt", reason="signals")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupt_leaves_no_half_written_file(tmp_path, number, code):
    write(tmp_path / "m.onnx", HANGING)
    command = [sys.executable, "-m", "onnxbench", "fold", "m.onnx", "-o", "out.onnx"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        time.sleep(3)
        process.send_signal(number)
        _, said = process.communicate(timeout=30)
    assert process.returncode == code
    assert b"Traceback" not in said
    assert [path.name for path in tmp_path.iterdir()] == ["m.onnx"]


def test_frozen_defaults_are_asked_for(bench, tmp_path):
    write(tmp_path / "m.onnx", "g (float[2] x, float[2] w = {1, 2}) => (float[2] y) { k = Mul(w, w) y = Add(x, k) }")
    assert bench("m.onnx", "-o", "a.onnx").returncode == 0
    assert ops(onnx.load(tmp_path / "a.onnx")) == ["Mul", "Add"]
    assert bench("m.onnx", "-o", "b.onnx", "--freeze-initializers").returncode == 0
    frozen = onnx.load(tmp_path / "b.onnx")
    assert ops(frozen) == ["Add"]
    assert [value.name for value in frozen.graph.input] == ["x"]
    assert_same(onnx.load(tmp_path / "m.onnx"), frozen, {"x": np.ones(2, np.float32)})


def test_models_of_several_folders_are_told_apart_by_their_paths(bench, tmp_path):
    for place in ("zoo/one", "zoo/two"):
        (tmp_path / place).mkdir(parents=True)
        write(tmp_path / place / "m.onnx", SMALL)
    (tmp_path / "zoo/two/n.onnx").write_bytes(b"\x08\x0a")
    told = bench("zoo", "-n", "--json")
    assert {row["model"] for row in json.loads(told.stdout)["models"]} == {
        "zoo/one/m.onnx",
        "zoo/two/m.onnx",
        "zoo/two/n.onnx",
    }
    said = bench("zoo", "-n").stderr.decode()
    assert said.count("n.onnx") == said.count("zoo/two/n.onnx")


def test_an_initializer_that_goes_is_told_once():
    text = "g (float[2] x) => (float[2] y) <float[2] w = {1, 2}, float[2] v = {1, 2}> { a = Mul(x, w) y = Add(a, v) }"
    assert fold(text)[1].by_rule() == {"copies": 1}
