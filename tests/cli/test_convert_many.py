"""`onnxbench convert` of folders, from outside: trees, reports, kills, interrupts."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import onnx
import pytest
from onnx import numpy_helper, parser

from onnxbench.commands._convert_many import Many, tree_of
from onnxbench.errors import UsageError

from .conftest import write
from .test_convert import OLD, STRINGS, version

JOURNAL = ".onnxbench-convert.jsonl"


@pytest.fixture
def zoo(tmp_path):
    """Six models: four at opset 9, of which one is broken and one has external data; one above 13, one that cannot go down."""
    folder = tmp_path / "zoo"
    (folder / "deep").mkdir(parents=True)
    write(folder / "a.onnx", OLD)
    write(folder / "new.onnx", OLD.replace('"": 9', '"": 17').replace("ir_version: 4", "ir_version: 8"))
    write(folder / "strings.onnx", STRINGS)
    (folder / "junk.onnx").write_bytes(b"\xff\x00junk" * 20)
    model = parser.parse_model(OLD.replace("y = Add (h, x)", "y = Add (h, w)"))
    model.graph.initializer.append(numpy_helper.from_array(np.ones((1, 3), np.float32).repeat(200, 0)[:1], "w"))
    onnx.save(model, folder / "deep/data.onnx", save_as_external_data=True, location="data.bin", size_threshold=0)
    (folder / "deep/labels.txt").write_text("cat\n")
    return folder


def test_a_folder_is_raised_and_the_rest_carried_along(bench, tmp_path, zoo):
    done = bench("convert", "zoo", "--to", "13", "-o", "out", "--jobs", "2", "--no-verify")
    assert done.returncode == 3, done.stderr
    assert "error[OB302]: zoo/junk.onnx" in done.stderr
    assert version(tmp_path / "out/a.onnx") == 13
    assert onnx.load(tmp_path / "out/deep/data.onnx").opset_import[0].version == 13
    for name in ("new.onnx", "strings.onnx", "deep/labels.txt"):
        assert (tmp_path / "out" / name).read_bytes() == (zoo / name).read_bytes()
    assert not (tmp_path / "out/junk.onnx").exists()
    assert not (tmp_path / "out/deep/data.bin").exists()
    said = json.loads((tmp_path / "out/report.json").read_text())
    assert said["schema"] == "onnxbench.conversions/1"
    by_place = {row["place"]: row for row in said["models"]}
    assert by_place["new.onnx"]["state"] == "other"
    assert by_place["a.onnx"]["after"] == {"ai.onnx": 13}
    assert by_place["junk.onnx"]["error"]["code"] == "OB302"
    assert said["totals"]["states"]["failed"] == 1
    assert "5 models" in done.stdout


def test_exact_brings_down_and_reports_refusals_without_obeying_names(bench, tmp_path, zoo):
    (zoo / "junk.onnx").unlink()
    odd = onnx.load(zoo / "strings.onnx")
    odd.graph.node[0].name = "<b>join</b>"
    onnx.save(odd, zoo / "strings.onnx")
    done = bench("convert", "zoo", "--to", "13", "-o", "out", "--exact", "--no-verify", "--others", "skip", "--json")
    assert done.returncode == 1
    said = json.loads(done.stdout)
    assert said == json.loads((tmp_path / "out/report.json").read_text())
    (refusal,) = said["totals"]["refusals"]
    assert (refusal["op"], refusal["nodes"], refusal["models"]) == ("StringConcat", 1, ["zoo/strings.onnx"])
    assert not (tmp_path / "out/strings.onnx").exists()
    assert version(tmp_path / "out/new.onnx") == 13
    page, text = (tmp_path / "out/report.html").read_text(), (tmp_path / "out/report.md").read_text()
    assert "<b>join</b>" not in page
    assert "&lt;b&gt;join" in page
    assert "<script" not in page
    assert "<b>join</b>" not in text
    assert "StringConcat" in text


def test_a_killed_and_an_interrupted_run_go_on(tmp_path):
    (tmp_path / "zoo").mkdir()
    for number in range(40):
        write(tmp_path / f"zoo/m{number}.onnx", OLD)
    command = [sys.executable, "-m", "onnxbench", "convert", "zoo", "--to", "13", "-o", "out", "--jobs", "2", "-q"]
    command += ["--report", "named.md"]
    killed = stop_after(5, command, tmp_path, signal.SIGKILL)
    assert killed.returncode == -signal.SIGKILL
    stopped = stop_after(12, command, tmp_path, signal.SIGINT)
    assert stopped.returncode == 130, stopped.stderr
    assert b"error[OB801]" in stopped.stderr
    said = json.loads((tmp_path / "out/report.json").read_text())
    assert said["interrupted"] is True
    assert said["totals"]["earlier"] >= 5
    assert 12 <= said["totals"]["done"] < 40
    done = subprocess.run([*command, "--json"], cwd=tmp_path, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    finished = json.loads(done.stdout)
    assert finished["totals"]["states"] == {"verified": 40}
    assert finished["totals"]["earlier"] >= said["totals"]["done"]
    assert "verified 40" in (tmp_path / "named.md").read_text()
    assert not list((tmp_path / "out").glob("*.part"))
    assert all(version(tmp_path / f"out/m{number}.onnx") == 13 for number in range(40))


def stop_after(count, command, folder, number):
    """Send a signal when so many models are done."""
    running = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    journal = folder / "out" / JOURNAL
    end = time.monotonic() + 60
    while time.monotonic() < end and running.poll() is None:
        if journal.exists() and journal.read_text().count('{"done"') >= count:
            break
        time.sleep(0.01)
    os.kill(running.pid, number)
    out, err = running.communicate(timeout=60)
    return subprocess.CompletedProcess(command, running.returncode, out, err)


def test_a_plan_of_a_folder_writes_nothing(bench, tmp_path, zoo):
    (zoo / "junk.onnx").unlink()
    done = bench("convert", "zoo", "--to", "13", "--dry-run")
    assert done.returncode == 0, done.stderr
    assert "a.onnx: opset 9 -> 13, IR 4, 2 nodes: " in done.stdout
    assert "zoo/new.onnx: stays as it is: it is at opset 17 already" in done.stdout
    assert not (tmp_path / "out").exists()


def test_odd_requests_are_told(bench, zoo):
    done = bench("convert", "zoo", "--to", "13", "--explain", "a")
    assert (done.returncode, "--explain is for one model" in done.stderr) == (2, True), done.stderr


@pytest.mark.parametrize(
    "models, output, in_place, says",
    [
        (["."], None, False, "give -o FOLDER"),
        (["."], "-", False, "'-' is none"),
        (["."], ".", False, "the output folder too"),
        (["."], "a.onnx", False, "is none"),
        ([".", "-"], "out", False, "standard input holds one model"),
        ([".", "-"], None, True, "no place to write"),
        (["."], "out", True, "leave out -o"),
    ],
)
def test_odd_places_are_told(zoo, monkeypatch, models, output, in_place, says):
    monkeypatch.chdir(zoo)
    with pytest.raises(UsageError, match=says):
        tree_of(Many(models, output, in_place, False, "copy", None, 1, (), True))


def test_models_in_hidden_folders_are_left_out_and_told(bench, tmp_path):
    for folder in ("zoo", "zoo/.venv/lib", "zoo/deep/__pycache__"):
        (tmp_path / folder).mkdir(parents=True)
        write(tmp_path / folder / "a.onnx", OLD)
    for command in (["-o", "out"], ["--in-place"], ["--dry-run"]):
        done = bench("convert", "zoo", "--to", "13", "--no-verify", *command)
        assert done.returncode == 0, done.stderr
        said = " ".join((done.stdout + done.stderr).split())
        assert "2 models in hidden folders were left out: zoo/.venv/lib/a.onnx, zoo/deep/__pycache__/a.onnx" in said
    assert not (tmp_path / "out/.venv").exists()
    assert version(tmp_path / "zoo/.venv/lib/a.onnx") == 9
    named = bench("convert", "zoo/.venv", "--to", "13", "--no-verify", "-o", "other")
    assert (named.returncode, version(tmp_path / "other/lib/a.onnx")) == (0, 13)
    (tmp_path / "zoo/a.onnx").unlink()
    alone = bench("convert", "zoo", "--to", "13", "-o", "more")
    assert (alone.returncode, "no model in 'zoo' but in hidden folders" in alone.stderr) == (3, True)
