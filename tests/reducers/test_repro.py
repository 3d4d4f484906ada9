"""A bundle's repro.py sees what the worker saw, whatever the runtime does, and leaves nothing running."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from onnxbench import Tolerance
from onnxbench.reducers.repro import script
from onnxbench.reducers.signature import Signature
from onnxbench.runtimes.base import Limits
from onnxbench.runtimes.find import find

from .conftest import chain, names

RUNTIME = """
import os, subprocess, sys, threading, time
import numpy, onnx, onnxruntime


class Mute(Exception):
    def __str__(self):
        raise RuntimeError("not a word")


def run(model, feeds):
    session = onnxruntime.InferenceSession(model)
    names = [output.name for output in session.get_outputs()]
    outputs = dict(zip(names, session.run(names, feeds)))
    if any(node.op_type == "Softsign" for node in onnx.load_from_string(model).graph.node):
        {deed}
    return outputs
"""


@pytest.fixture
def planted(tmp_path):
    """The text of a python: runtime that does `deed` where there is a Softsign."""

    def write(deed: str) -> str:
        (tmp_path / "deeds.py").write_text(RUNTIME.format(deed=deed))
        return f"python:{tmp_path / 'deeds.py'}:run"

    return write


@pytest.mark.parametrize(
    "deed, kind, detail",
    [
        ("sys.exit(7)", "error", "SystemExit"),
        ("raise KeyboardInterrupt", "error", "KeyboardInterrupt"),
        ("raise Mute", "error", "Mute"),
        ("raise ValueError('word ' * 1_000_000)", "error", "ValueError"),
        ("raise ValueError('caf\\u00e9 \\udcff')", "error", "ValueError"),
        ("threading.Thread(target=time.sleep, args=[600]).start(); raise ValueError", "error", "ValueError"),
        ("numpy.ones(1 << 50)", "memory", ""),
        ("os.kill(os.getpid(), 9)", "memory", ""),
        ("os._exit(1)", "crash", "exit 1"),
        ("return {}", "numbers", "presence"),
        ("outputs['more'] = outputs[names[0]]", "numbers", "presence"),
        ("return dict.fromkeys(names)", "numbers", "presence"),
    ],
)
def test_what_a_runtime_may_do_fails_again(reduced, planted, deed, kind, detail):
    report, left = reduced(chain(6, {3: "Softsign"}), planted(deed), timeout=10.0)
    assert names(left) == ["n3"]
    assert (report.signature["kind"], report.signature["detail"], report.confirmed) == (kind, detail, True)


def run_repro(tmp_path, *arguments, **more):
    command = [sys.executable, "repro.py", *arguments]
    return subprocess.run(command, cwd=tmp_path / "bundle", capture_output=True, text=True, check=False, **more)


@pytest.mark.parametrize("arguments", [["--timeout"], ["--timeout", "soon"], ["--nope"]])
def test_a_wrong_argument_is_no_failure_of_the_model(reduced, tmp_path, arguments):
    reduced(chain(3, {1: "Softsign"}), "misbehaving:ops=Softsign")
    assert run_repro(tmp_path, *arguments).returncode == 125


def test_a_terminal_without_unicode_changes_nothing(reduced, planted, tmp_path):
    reduced(chain(3, {1: "Softsign"}), planted("raise ValueError('caf\\u00e9')"))
    assert run_repro(tmp_path, env={**os.environ, "PYTHONIOENCODING": "ascii"}).returncode == 1
    planted("raise KeyError('th\\u00e9')")
    assert run_repro(tmp_path, env={**os.environ, "PYTHONIOENCODING": "ascii"}).returncode == 125


def test_a_runtime_that_cannot_be_imported_does_not_pass_for_the_crash(reduced, tmp_path):
    reduced(chain(3, {1: "Softsign"}), "misbehaving:ops=Softsign,do=exit,exit=1")
    (tmp_path / "numpy.py").write_text("raise SystemExit(1)")
    done = run_repro(tmp_path, env={**os.environ, "PYTHONPATH": str(tmp_path)})
    assert done.returncode == 125


def test_a_failure_that_comes_and_goes_is_waited_for(reduced, tmp_path):
    beat = tmp_path / "beat"
    reduced(chain(6, {3: "Softsign"}), f"misbehaving:ops=Softsign,beat={beat}")
    assert [run_repro(tmp_path).returncode for _ in range(2)] == [1, 1]


def test_no_child_of_the_runtime_outlives_the_run(reduced, planted, tmp_path):
    pids = tmp_path / "pids"
    deed = (
        f"child = subprocess.Popen(['sleep', '600']); open({str(pids)!r}, 'a').write(f'{{child.pid}} '); time.sleep(60)"
    )
    reduced(chain(3, {1: "Softsign"}), planted(deed), timeout=3.0)
    assert run_repro(tmp_path).returncode == 1
    assert len(pids.read_text().split()) >= 3
    assert not [pid for pid in pids.read_text().split() if is_alive(int(pid))]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_two_interrupts_during_the_confirmation_leave_nothing(tmp_path, number):
    """The first one waits for the result, which is nearly there; the confirmation takes a minute here."""
    (tmp_path / "slow.py").write_text(
        "import os, sys, time\n"
        "def run(model, feeds):\n"
        "    if '--child' in sys.argv:\n"
        f"        open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid()))\n"
        "        time.sleep(60)\n"
        "    raise ValueError('no')\n"
    )
    (tmp_path / "m.onnxtxt").write_text(
        '<ir_version: 8, opset_import: ["": 17]> g (float[2] x) => (float[2] y) { y = Relu (x) }'
    )
    (tmp_path / "temporary").mkdir()
    process = subprocess.Popen(
        [sys.executable, "-m", "onnxbench", "reduce", "m.onnxtxt", "-r", "python:slow.py:run"],
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(tmp_path / "temporary")},
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 60
    while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.send_signal(number)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(1)
    process.send_signal(number)
    assert process.wait(30) == 128 + number
    assert not is_alive(int((tmp_path / "pid").read_text()))
    assert not list((tmp_path / "temporary").iterdir())
    assert {path.name for path in tmp_path.iterdir()} - {"__pycache__"} == {
        *("slow.py", "m.onnxtxt", "pid", "temporary"),
        "m.repro.journal",  # to go on with
    }


def is_alive(pid):
    """Whether it runs; one that was killed may take a moment to go."""
    for _ in range(50):
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return False
        except OSError:
            return False
        time.sleep(0.05)
    return True


@pytest.mark.parametrize(
    "name", ["  # noqa: F821", "# <<normalise>>\n", "    # <<runtime>>\n", '"<<config>>"', "'''\\"]
)
def test_no_name_is_taken_for_a_part_of_the_script(name):
    model = chain(1, {})
    model.proto.graph.node[0].name = name
    signature = Signature("error", "ValueError", "run", name)
    text = script(find("reference"), model.proto, signature, Tolerance(), Limits())
    held = {}
    exec(compile(text, "repro.py", "exec"), {"__name__": "repro", "__file__": __file__}, held)
    assert name in held["CONFIG"]["names"]
    assert held["CONFIG"]["signature"]["message"] == name
