"""Searches that stop, and go on."""

import json
import os
import signal
import subprocess
import sys
import time

import onnx
import pytest

from .conftest import write

LENGTH = 60
CHAIN = f"""<ir_version: 8, opset_import: ["": 17]>
g (float[N, 3] t0) => (float[N, 3] t{LENGTH}) {{
  {" ".join(f"[n{i}] t{i + 1} = {'Softsign' if i in (7, 41) else 'Sin'} (t{i})" for i in range(LENGTH))} }}"""

#: Needs both, so that the search takes a while.
CHECK = """import onnx, sys, time
time.sleep(0.05)
open("asked", "a").write(".")
sys.exit(sum(node.op_type == "Softsign" for node in onnx.load(sys.argv[1]).graph.node) == 2)
"""


@pytest.fixture
def slow(tmp_path):
    (tmp_path / "check.py").write_text(CHECK)
    model = write(tmp_path / "chain.onnx", CHAIN)
    return ["reduce", model, "--check", f"{sys.executable} check.py", "--passes", "", "--bundle", "out", "--json"]


def asked(folder) -> int:
    return len((folder / "asked").read_text())


def test_a_spent_budget_hands_back_the_best_so_far(bench, slow, tmp_path):
    done = bench(*slow, "--max-checks", "14")
    said = json.loads(done.stdout)
    assert (done.returncode, said["status"], said["checks"], said["confirmed"]) == (0, "best", 14, True)
    assert len(onnx.load(tmp_path / "out" / "model.onnx").graph.node) == said["nodes_after"] < LENGTH
    assert any("stopped" in note for note in said["notes"])
    short = json.loads(bench(*slow, "--time-limit", "0.5", "--force").stdout)
    assert short["status"] == "best"


def test_a_killed_search_goes_on_where_it_was(bench, slow, tmp_path):
    command = [sys.executable, "-m", "onnxbench", *map(str, slow)]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        journal = tmp_path / "out.journal"
        while not journal.exists() or len(journal.read_text().splitlines()) < 6:
            assert process.poll() is None
            time.sleep(0.02)
        os.kill(process.pid, signal.SIGKILL)
    known = len(journal.read_text().splitlines()) - 1
    with journal.open("a") as file:
        file.write('{"key": "cut of')  # what a kill leaves of the line that was being written
    (tmp_path / "asked").unlink()
    done = bench(*slow, "--resume")
    said = json.loads(done.stdout)
    assert (done.returncode, said["status"], said["nodes_after"]) == (0, "minimal", 2)
    assert not journal.exists()
    whole = (tmp_path / "out" / "journal.jsonl").read_text().splitlines()
    assert len(whole) - 1 > known
    proofs_and_confirmation = (
        3 + 1 + 1 + 1
    )  # of the original, of the best candidate, of the bundle; one outlived the kill
    assert asked(tmp_path) <= len(whole) - 1 - known + proofs_and_confirmation


def test_ctrl_c_keeps_the_best_and_resume_goes_on(bench, slow, tmp_path):
    command = [sys.executable, "-m", "onnxbench", *map(str, slow)]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        journal = tmp_path / "out.journal"
        while not journal.exists() or len(journal.read_text().splitlines()) < 4:
            assert process.poll() is None
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        said = json.loads(process.communicate()[0])
    assert (process.returncode, said["status"], said["interrupted"]) == (130, "best", 2)
    assert (tmp_path / "out" / "model.onnx").exists()
    assert journal.exists()
    more = bench(*slow, "--resume")
    assert (more.returncode, json.loads(more.stdout)["nodes_after"]) == (0, 2)


@pytest.mark.parametrize("times", [1, 2])
def test_ctrl_c_while_the_result_is_confirmed_waits_for_it_and_a_second_does_not(slow, tmp_path, times):
    command = [sys.executable, "-m", "onnxbench", *map(str, slow)]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert any(line.startswith("confirming") for line in process.stderr)
        process.send_signal(signal.SIGINT)
        assert "interrupted" in process.stderr.readline()
        if times == 2:
            process.send_signal(signal.SIGINT)
        said = json.loads(process.communicate()[0])
    assert process.returncode == 130
    if times == 1:
        assert (said["interrupted"], said["confirmed"], said["nodes_after"]) == (2, True, 2)
        assert {"repro.py", "report.json"} <= {path.name for path in (tmp_path / "out").iterdir()}
    else:
        assert said["error"]["code"] == "OB801"
        assert {path.name for path in tmp_path.glob("*out*")} == {"out.journal"}
    assert not list(tmp_path.glob(".onnxbench*"))


def test_resume_refuses_another_reduction(bench, slow, tmp_path):
    none = bench(*slow, "--resume")
    assert (none.returncode, json.loads(none.stdout)["error"]["code"]) == (2, "OB207")
    assert bench(*slow, "--max-checks", "3").returncode == 0
    other = bench(*slow[:-3], "--bundle", "out", "--json", "--resume", "--timeout", "7")
    assert (other.returncode, json.loads(other.stdout)["error"]["code"]) == (2, "OB207")
    assert (tmp_path / "out.journal").exists(), "the right command can still go on"
    assert bench(*slow, "--resume").returncode == 0


@pytest.mark.parametrize("damage", [b"\x8e\xff\x00", b"[1]\n", b'{"key": 1}\n', b'{"key": [], "verdict": 1}\n'])
def test_a_damaged_journal_is_read_as_far_as_it_goes(bench, slow, tmp_path, damage):
    assert bench(*slow, "--max-checks", "3").returncode == 0
    with (tmp_path / "out.journal").open("ab") as file:
        file.write(damage)
    done = bench(*slow, "--resume")
    assert (done.returncode, json.loads(done.stdout)["nodes_after"]) == (0, 2)


def test_a_folder_where_the_journal_should_be(bench, slow, tmp_path):
    (tmp_path / "out.journal").mkdir()
    assert json.loads(bench(*slow).stdout)["error"]["code"] == "OB402"
    assert json.loads(bench(*slow, "--resume").stdout)["error"]["code"] == "OB207"
    assert (tmp_path / "out.journal").is_dir()
