"""However a command ends: one line that says why, an exit code, and no traceback."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

FIXTURES = Path(__file__).parents[2] / "fixtures"
LINUX_ONLY = pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")


def onnxbench(*argv: str, **options: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "onnxbench", *argv]
    return subprocess.run(command, **{"capture_output": True, "text": True, **options})


@pytest.mark.parametrize(
    "argv, says, hint",
    [
        (["reduce"], "Missing argument 'MODEL...'", "onnxbench reduce --help"),
        (["reduce", "m.onnx", "--nope"], "--nope", "onnxbench reduce --help"),
        (["reduce", "m.onnx", "--rtol", "much"], "--rtol", "onnxbench reduce --help"),
        (["redu"], "No such command 'redu'", "onnxbench --help"),
        (["reduce", "m.onnx", "--json", "-o", "-"], "both want standard output", "-o FILE"),
        (["runtimes", "--color", "pink"], "--color is auto, always or never", ""),
    ],
)
def test_wrong_usage_is_one_line_with_a_hint(argv, says, hint, tmp_path):
    done = onnxbench(*argv, cwd=tmp_path)
    assert done.returncode == 2
    assert "error[OB201]: " in done.stderr
    assert says in done.stderr
    assert not hint or f"  hint: {hint}" in done.stderr
    assert "Traceback" not in done.stderr


def test_no_arguments_show_the_commands():
    done = onnxbench()
    assert done.returncode == 2
    assert "reduce" in done.stdout
    assert "runtimes" in done.stdout


@pytest.mark.parametrize(
    "argv, code, status",
    [
        (["reduce", "absent.onnx"], "OB301", 3),
        (["reduce", str(FIXTURES / "demo.onnxtxt"), "--within", "op=Identiti"], "OB303", 3),
        (["reduce", str(FIXTURES / "demo.onnxtxt"), "-r", "onnxruntim"], "OB205", 2),
        (["reduce", str(FIXTURES / "demo.onnxtxt"), "-r", "onnxruntime@nowhere"], "OB401", 4),
        (["reduce", "--nope"], "OB201", 2),
    ],
)
def test_with_json_the_error_is_an_object(argv, code, status, tmp_path):
    done = onnxbench(*argv, "--json", cwd=tmp_path)
    answer = json.loads(done.stdout)
    assert answer["schema"] == "onnxbench.error/1"
    assert answer["error"]["code"] == code
    assert set(answer["error"]) == {"code", "message", "hint"}
    assert done.returncode == status


def test_a_failure_that_does_not_reproduce_is_the_answer_no(tmp_path):
    done = onnxbench("reduce", str(FIXTURES / "functions_dims.onnxtxt"), "-q", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith("error[OB101]: ")
    assert not list(tmp_path.iterdir())


def test_control_characters_of_names_never_reach_the_terminal(tmp_path):
    done = onnxbench("reduce", "evil\x1b]0;title\x07\u202e.onnx", cwd=tmp_path)
    assert done.returncode == 3
    assert not any(sign in done.stderr for sign in "\x1b\x07\u202e")
    assert "\\x1b" in done.stderr


@pytest.mark.parametrize("extra", [[], ["--json"]])
@pytest.mark.parametrize("number, status", [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_search_says_so_and_leaves_nothing(number, status, extra, tmp_path):
    (tmp_path / "slow.py").write_text("import time\ndef run(model, feeds):\n    time.sleep(60)\n")
    command = [sys.executable, "-m", "onnxbench", "reduce", str(FIXTURES / "demo.onnxtxt"), "-r", "python:slow.py:run"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = subprocess.Popen([*command, *extra], cwd=tmp_path, text=True, **pipes)
    assert process.stderr is not None
    assert "running" in process.stderr.readline()
    time.sleep(0.5)
    process.send_signal(number)
    said, rest = process.communicate(timeout=20)
    assert process.returncode == status
    assert "interrupted" in rest
    assert json.loads(said)["error"]["code"] == "OB801" if extra else not said
    assert "Traceback" not in rest
    assert {path.name for path in tmp_path.iterdir()} - {"__pycache__"} == {"slow.py"}


@pytest.mark.skipif(os.name != "posix", reason="pipes that close")
@pytest.mark.parametrize(
    "argv",
    [
        ["runtimes"],
        ["runtimes", "--json"],
        ["inspect", str(FIXTURES / "demo.onnxtxt")],
        ["inspect", str(FIXTURES / "demo.onnxtxt"), "--json"],
        ["inspect", str(FIXTURES / "demo.onnxtxt"), "--text"],
        ["inspect", str(FIXTURES / "demo.onnxtxt"), str(FIXTURES / "functions_dims.onnxtxt"), "-q"],
        ["inspect", "absent.onnx", "--json"],
        ["--help"],
        ["--version"],
    ],
    ids=" ".join,
)
def test_a_reader_that_goes_away_ends_a_command_as_sigpipe_would(argv):
    reader, writer = os.pipe()
    os.close(reader)
    done = onnxbench(*argv, capture_output=False, stdout=writer, stderr=subprocess.PIPE)
    os.close(writer)
    assert done.returncode == 141
    assert not done.stderr or "absent" in argv[1]
    assert "BrokenPipe" not in done.stderr


@LINUX_ONLY
@pytest.mark.parametrize("extra", [[], ["--json"]])
def test_a_full_disk_under_standard_output(extra):
    with Path("/dev/full").open("w") as full:
        done = onnxbench("runtimes", *extra, capture_output=False, stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 4
    assert done.stderr.startswith("error[OB402]: ")
    assert "Traceback" not in done.stderr


def test_a_bug_of_ours_saves_its_traceback(tmp_path):
    script = (
        "import onnxbench.runtimes.find as place, onnxbench.cli, sys\n"
        "def survey(): raise RuntimeError('the moon is in the wrong house')\n"
        "place.survey = survey\n"
        "sys.argv = ['onnxbench', 'runtimes', '--json']\n"
        "onnxbench.cli.main()\n"
    )
    environment = {**os.environ, "TMPDIR": str(tmp_path), "TEMP": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment)
    assert done.returncode == 70
    error = json.loads(done.stdout)["error"]
    assert error["code"] == "OB701"
    assert "RuntimeError: the moon is in the wrong house" in error["message"]
    assert "Traceback" not in done.stderr
    saved = next(tmp_path.glob("onnxbench-bug-*.txt"))
    assert str(saved) in error["hint"]
    assert "in survey" in saved.read_text()


SWALLOWED = """
    try:
        raise KeyboardInterrupt(15)
    except KeyboardInterrupt:
        raise ImportError('initialization failed') from None
"""


@pytest.mark.parametrize("strike", [SWALLOWED, "exec('raise KeyboardInterrupt(15)')"], ids=["import", "exec"])
def test_an_interrupt_is_one_whatever_is_made_of_it(strike):
    """Native modules answer one with an ImportError; Python itself ends by SIGINT after one inside exec."""
    script = (
        "import onnxbench.runtimes.find as place, onnxbench.cli, sys\n"
        f"def survey():\n    {strike}\n"
        "place.survey = survey\n"
        "sys.argv = ['onnxbench', 'runtimes', '--json']\n"
        "onnxbench.cli.main()\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.returncode, json.loads(done.stdout)["error"]["code"]) == (143, "OB801")
    assert done.stderr == "error[OB801]: interrupted; nothing was written\n"


def test_an_interrupt_before_the_command_line_is_there():
    script = (
        "import builtins, sys\n"
        "real = builtins.__import__\n"
        "def strike(name, *rest, **more):\n"
        "    if name == 'typer':\n"
        "        raise KeyboardInterrupt\n"
        "    return real(name, *rest, **more)\n"
        "from onnxbench.__main__ import main\n"
        "builtins.__import__ = strike\n"
        "sys.argv = ['onnxbench', 'runtimes', '--json']\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.returncode, json.loads(done.stdout)["error"]["code"]) == (130, "OB801")
    assert done.stderr == "error[OB801]: interrupted; nothing was written\n"


def test_an_interrupt_after_the_command_disturbs_no_tidying_up():
    script = """
import atexit, sys, time
from onnxbench import cli

def tidy():
    print("tidying", file=sys.stderr, flush=True)
    time.sleep(1)
    print("tidied", file=sys.stderr)

atexit.register(tidy)
sys.argv = ["onnxbench", "--version"]
cli.main()
"""
    running = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert running.stderr is not None
    assert running.stderr.readline() == "tidying\n"
    running.send_signal(signal.SIGTERM)
    _, said = running.communicate(timeout=60)
    assert (running.returncode, said) == (0, "tidied\n")


def test_too_few_files_that_may_be_open_are_the_machines_fault(tmp_path):
    limited = ["bash", "-c", 'ulimit -n 8; exec "$0" "$@"', sys.executable, "-m", "onnxbench"]
    model = str(FIXTURES / "relu_clip_double.onnxtxt")
    done = subprocess.run([*limited, "reduce", model], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 4
    assert "too many open files" in done.stderr.lower()


def test_an_interrupt_waits_until_the_command_line_is_imported():
    """What it strikes inside a class body or a native module may become any error, or a crash."""
    script = (
        "import builtins, os, signal, sys\n"
        "real = builtins.__import__\n"
        "def strike(name, *rest, **more):\n"
        "    if name == 'typer':\n"
        "        try:\n"
        "            os.kill(os.getpid(), signal.SIGTERM)\n"
        "            eval('0')\n"
        "        except KeyboardInterrupt:\n"
        "            raise RuntimeError('Error calling __set_name__')\n"
        "    return real(name, *rest, **more)\n"
        "from onnxbench.__main__ import main\n"
        "builtins.__import__ = strike\n"
        "sys.argv = ['onnxbench', 'runtimes']\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (143, "error[OB801]: interrupted; nothing was written\n")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupt_that_comes_when_all_is_said_changes_nothing(number):
    script = (
        "import atexit, os, signal, sys, onnx\n"
        "from onnxbench.__main__ import main\n"
        f"atexit.register(lambda: os.kill(os.getpid(), {int(number)}))\n"
        "sys.argv = ['onnxbench', '--version']\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("command", ["fold m.onnx -o f.onnx", "convert m.onnx --to 13 -o f.onnx", "reduce m.onnx"])
def test_a_working_folder_that_is_gone(command, tmp_path):
    (tmp_path / "m.onnxtxt").write_text(
        '<ir_version: 8, opset_import: ["": 17]> g (float[2] x) => (float[2] y) { y = Relu(x) }'
    )
    command = command.replace("m.onnx", str(tmp_path / "m.onnxtxt"))
    script = f"mkdir away; cd away; rmdir ../away; exec {sys.executable} -m onnxbench {command}"
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(["sh", "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode in (1, 4)  # reduce: it does not fail
    assert "OB701" not in done.stderr


@pytest.mark.parametrize(
    "error, code",
    [
        ("OSError(24, 'Too many open files')", "OB402"),
        ("BlockingIOError(11, 'Resource temporarily unavailable')", "OB403"),
        ('RuntimeError("can\'t start new thread")', "OB403"),
    ],
)
def test_a_limit_of_the_process_is_no_bug(error, code):
    script = (
        "import onnxbench.runtimes.find as place, onnxbench.cli, sys\n"
        f"def survey():\n    raise {error}\n"
        "place.survey = survey\n"
        "sys.argv = ['onnxbench', 'runtimes']\n"
        "onnxbench.cli.main()\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 4
    assert done.stderr.startswith(f"error[{code}]: ")
    assert "hint: ulimit" in done.stderr
