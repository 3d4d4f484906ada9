"""What standard error shows while a reduction goes on."""

import os
import pty
import select
import signal
import subprocess
import sys
import time

import pytest

from onnxbench.reducers.course import Course, Progress
from onnxbench.render import progress as shown
from tests.reducers.conftest import chain

STATE = Progress("searching", "", 208, 32, 2_000_000, 400_000, 14, 3, 7.5)


def test_a_line_has_two_bars_checks_and_times():
    line = shown.bars(STATE, 65.0, 200, plain=True)
    assert line == (
        "searching  nodes ##...... 32  bytes ##...... 400 KB  1:05  14 checks (3 remembered)  smaller 7 s ago"
    )
    assert "\u2588" in shown.bars(STATE, 65.0, 200, plain=False)


@pytest.mark.parametrize("width", [1, 5, 20, 40, 60, 79, 120])
def test_a_line_fits_whatever_the_width(width):
    for plain in (False, True):
        assert 0 < len(shown.bars(STATE, 65.0, width, plain)) <= width


@pytest.mark.parametrize(
    "part, whole, drawn", [(0, 9, "........"), (1, 900, "#......."), (9, 9, "########"), (4, 0, "#")]
)
def test_a_bar_is_never_longer_than_its_cells(part, whole, drawn):
    assert shown.bar(part, whole, plain=True) == drawn.ljust(8, ".")
    assert len(shown.bar(part, whole)) == 8


def test_a_log_has_sentences():
    assert shown.sentence(STATE) == "32 nodes left after 14 checks, 3 of them remembered"
    assert shown.sentence(Progress("recording", done=2, total=5)) == "recorded 2 of 5 nodes"
    assert shown.sentence(Progress("shrinking", "dims", 9, 2, 90, 20, 5)).startswith("shrinking, dims: 20 B, 2 nodes")


@pytest.mark.parametrize("count, text", [(0, "0 B"), (999, "999 B"), (1500, "1.5 KB"), (25_000_000, "25 MB")])
def test_bytes_are_readable(count, text):
    assert shown.size(count) == text


def test_the_curve_goes_down_only():
    told: list[Progress] = []
    course = Course(20, 10_000_000, told.append)
    for length in (8, 12, 3, 3):
        course.judged("searching", chain(length, {}), len(told) + 1, 0)
    course.judged("searching", None, 9, 0)
    assert [(point.checks, point.nodes) for point in course.curve] == [(0, 20), (1, 8), (3, 3)]
    assert [state.nodes for state in told] == [8, 8, 3, 3, 3]


def on_a_terminal(command, columns, stop_at=None):
    """What a command writes to a terminal of that width, and how it ends; Ctrl-C once it has written `stop_at`."""
    ours, theirs = pty.openpty()
    subprocess.run(["stty", "cols", str(columns)], stdin=theirs, check=True)
    process = subprocess.Popen(
        command, stderr=theirs, stdout=subprocess.DEVNULL, env={**os.environ, "TERM": "xterm"}, start_new_session=True
    )
    os.close(theirs)
    said, deadline = b"", time.monotonic() + 60
    while time.monotonic() < deadline:
        if select.select([ours], [], [], 0.1)[0]:
            try:
                said += os.read(ours, 65536)
            except OSError:  # the other end is closed
                break
        if stop_at is not None and stop_at in said:
            os.killpg(process.pid, signal.SIGINT)
            stop_at = None
    os.close(ours)
    return process.wait(60), said.decode()


@pytest.fixture
def slow(tmp_path):
    """A command whose candidates take long enough to be drawn."""
    import onnx

    onnx.save(chain(40, {11: "Softsign", 29: "Softsign"}).proto, tmp_path / "m.onnx")
    (tmp_path / "check.py").write_text(
        "import onnx, sys, time\ntime.sleep(0.06)\n"
        "sys.exit(sum(n.op_type == 'Softsign' for n in onnx.load(sys.argv[1]).graph.node) == 2)\n"
    )
    return [
        *(sys.executable, "-m", "onnxbench", "reduce", str(tmp_path / "m.onnx"), "--passes", ""),
        *("--check", f"{sys.executable} {tmp_path / 'check.py'}", "--bundle", str(tmp_path / "b")),
    ]


@pytest.mark.parametrize("columns", [100, 30, 3])
def test_a_terminal_keeps_one_line_and_is_left_clean(slow, columns):
    code, said = on_a_terminal(slow, columns)
    assert code == 0
    assert "\n" not in said
    assert said.endswith("\r\x1b[2K")
    lines = said.split("\r\x1b[2K")
    assert max(map(len, lines)) < columns
    assert columns < 100 or any("nodes" in line and "bytes" in line for line in lines)


def test_ctrl_c_leaves_no_half_line(slow):
    code, said = on_a_terminal(slow, 100, stop_at=b"bytes")
    assert code == 130
    assert said.rpartition("\r\x1b[2K")[2] == "" or said.endswith("\n")


def test_quiet_says_nothing(slow):
    done = subprocess.run([*slow, "-q"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
