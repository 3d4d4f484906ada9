"""`onnxbench reduce` from outside: exit codes, files, JSON, on failures of the installed ONNX Runtime."""

import errno
import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import onnx
import onnxruntime
import pytest

from onnxbench.errors import MachineError
from onnxbench.reducers.bundle import Draft

from .conftest import write

FAILS = tuple(map(int, onnxruntime.__version__.split(".")[:2])) >= (1, 20)
needs_failure = pytest.mark.skipif(not FAILS, reason="this onnxruntime does not have the failure")


@needs_failure
def test_a_real_load_error_is_reduced_to_its_two_nodes(bench, relu_clip, tmp_path):
    done = bench("reduce", relu_clip, "--bundle", "repro", "--json")
    said = json.loads(done.stdout)
    assert (done.returncode, said["schema"], said["status"]) == (0, "onnxbench.reduce/1", "minimal")
    assert (said["nodes_before"], said["nodes_after"], said["all_nodes_after"]) == (7, 2, 2)
    assert [culprit["name"] for culprit in said["culprits"]] == ["relu", "clip"]
    assert said["signature"]["phase"] == "load"
    model = onnx.load(tmp_path / "repro" / "model.onnx")
    assert [node.op_type for node in model.graph.node] == ["Relu", "Clip"]
    onnx.checker.check_model(model, full_check=True)


@needs_failure
def test_the_bundle_is_whole_and_fails_by_itself_without_onnxbench(bench, relu_clip, tmp_path):
    assert bench("reduce", relu_clip, "--bundle", "repro").returncode == 0
    folder = tmp_path / "repro"
    here = {path.name for path in folder.iterdir()}
    assert here >= {
        "model.onnx",
        "model.onnxtxt",
        "inputs.npz",
        "repro.py",
        "REPORT.md",
        "report.json",
        "test_data_set_0",
    }
    blocked = "import sys; sys.modules['onnxbench'] = None; import runpy; sys.argv = ['repro.py']; "
    run = f"{blocked}runpy.run_path('repro.py', run_name='__main__')"
    assert subprocess.run([sys.executable, "-c", run], cwd=folder, check=False).returncode == 1
    assert "onnxbench" not in (folder / "repro.py").read_text().replace("# ", "")
    assert json.loads((folder / "report.json").read_text())["nodes_after"] == 2
    assert "Relu" in (folder / "REPORT.md").read_text()


@needs_failure
def test_without_explanations_the_minimum_is_the_same_and_nothing_more_is_run(bench, relu_clip, tmp_path):
    whole = json.loads(bench("reduce", relu_clip, "--bundle", "whole", "--json", "-q").stdout)
    bare = json.loads(bench("reduce", relu_clip, "--bundle", "bare", "--no-explain", "--json", "-q").stdout)
    assert (tmp_path / "bare" / "model.onnx").read_bytes() == (tmp_path / "whole" / "model.onnx").read_bytes()
    assert whole["workarounds"]
    assert not bare["workarounds"]
    assert bare["cured_by_disabling"] is None or not bare["cured_by_disabling"]
    assert bare["confirmed"]


@needs_failure
@pytest.mark.parametrize("asked", [("--workaround", "fixed.onnx"), ("--versions", "1.20.1")])
def test_what_explains_cannot_be_asked_for_together_with_no_explanation(bench, relu_clip, asked):
    result = bench("reduce", relu_clip, "--no-explain", *asked)
    assert result.returncode == 2
    assert "--no-explain" in result.stderr


@needs_failure
def test_the_default_bundle_is_named_after_the_model_and_never_replaces_one(bench, relu_clip, tmp_path):
    assert bench("reduce", relu_clip).returncode == 0
    assert bench("reduce", relu_clip).returncode == 0
    assert (tmp_path / "relu_clip.repro" / "repro.py").exists()
    assert (tmp_path / "relu_clip.repro-2" / "repro.py").exists()


@needs_failure
@pytest.mark.parametrize("suffix", ["onnx", "onnxtxt", "json", "textproto"])
def test_the_reduced_model_is_written_in_the_format_of_its_suffix(bench, relu_clip, tmp_path, suffix):
    assert bench("reduce", relu_clip, "-o", f"small.{suffix}").returncode == 0
    assert not (tmp_path / "relu_clip.repro").exists()
    assert bench("reduce", f"small.{suffix}", "--json", "--bundle", "again").returncode == 0  # it reads back, and fails


@needs_failure
def test_the_model_goes_through_pipes(bench, relu_clip, tmp_path):
    done = bench("reduce", "-", "-o", "-", "-q", stdin=relu_clip.open("rb"), text=False)
    assert done.returncode == 0
    assert [node.op_type for node in onnx.ModelProto.FromString(done.stdout).graph.node] == ["Relu", "Clip"]


@needs_failure
def test_an_existing_output_is_kept(bench, relu_clip, tmp_path):
    (tmp_path / "out.onnx").write_text("mine")
    done = bench("reduce", relu_clip, "-o", "out.onnx")
    assert (done.returncode, (tmp_path / "out.onnx").read_text()) == (2, "mine")
    assert "OB202" in done.stderr
    assert "--force" in done.stderr


def test_a_folder_that_is_no_bundle_is_never_replaced(bench, healthy, tmp_path):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter1.txt").write_text("mine")
    done = bench("reduce", healthy, "--bundle", "thesis", "--force")
    assert done.returncode == 2
    assert (tmp_path / "thesis" / "chapter1.txt").read_text() == "mine"


def test_a_healthy_model_is_said_to_be_healthy(bench, healthy, tmp_path):
    done = bench("reduce", healthy, "--json")
    said = json.loads(done.stdout)
    assert (done.returncode, said["status"], said["error"]["code"]) == (1, "not-reproduced", "OB101")
    assert list(tmp_path.glob("*.repro*")) == []
    plain = bench("reduce", healthy)
    assert plain.returncode == 1
    assert "OB101" in plain.stderr


def test_inputs_that_matter_are_given_by_a_file(bench, tmp_path):
    model = write(
        tmp_path / "m.onnx",
        '<ir_version: 8, opset_import: ["": 17]> '
        "g (float[N] x) => (float[N] y) { [a] h = Abs (x) [b] k = Softsign (h) [c] y = Neg (k) }",
    )
    np.savez(tmp_path / "high.npz", x=np.array([500, 1], np.float32))
    suspect = "misbehaving:ops=Softsign,above=100"
    assert bench("reduce", model, "-r", suspect).returncode == 1
    done = bench("reduce", model, "-r", suspect, "--inputs", "high.npz", "--json")
    assert json.loads(done.stdout)["nodes_after"] == 1


def test_within_takes_a_selection(bench, tmp_path):
    nodes = " ".join(f"t{i + 1} = {'Softsign' if i in (2, 14) else 'Tanh'} (t{i})" for i in range(20))
    text = f'<ir_version: 8, opset_import: ["": 17]> g (float[N] t0) => (float[N] t20) {{ {nodes} }}'
    proto = onnx.parser.parse_model(text)
    for i, node in enumerate(proto.graph.node):
        node.name = f"/block{i // 4}/n{i}"
    model = tmp_path / "m.onnx"
    onnx.save(proto, model)
    suspect = "misbehaving:ops=Softsign,do=raise"
    done = bench("reduce", model, "-r", suspect, "--within", "scope=/block3", "--json")
    assert [c["name"] for c in json.loads(done.stdout)["culprits"]] == ["/block3/n14"]
    done = bench("reduce", model, "-r", suspect, "--within", "op=Tanh", "--json")
    assert (done.returncode, json.loads(done.stdout)["error"]["code"]) == (1, "OB104")
    done = bench("reduce", model, "-r", suspect, "--within", "scope=/blok3", "--json")
    assert (done.returncode, json.loads(done.stdout)["error"]["code"]) == (3, "OB303")


@pytest.mark.parametrize(
    "arguments, code, exit_code",
    [
        (["absent.onnx"], "OB301", 3),
        (["healthy.onnx", "-r", "onnxruntim"], "OB205", 2),
        (["healthy.onnx", "-r", "onnxruntime:level=3"], "OB205", 2),
        (["healthy.onnx", "-r", "onnxruntime@nowhere"], "OB401", 4),
        (["healthy.onnx", "--shape", "z=3"], "OB303", 3),
        (["healthy.onnx", "--dim", "M=3"], "OB303", 3),
        (["healthy.onnx", "--dim", "N=1,2"], "OB201", 2),
        (["healthy.onnx", "--max-memory", "lots"], "OB201", 2),
        (["healthy.onnx", "--max-memory", "1M"], "OB201", 2),
        (["healthy.onnx", "--inputs", "absent.npz"], "OB301", 3),
        (["healthy.onnx", "--color", "blue"], "OB201", 2),
        (["healthy.onnx", "--json", "-o", "-"], "OB201", 2),
        (["healthy.onnx", "--timeout", "-1"], "OB201", 2),
    ],
)
def test_what_is_wrong_is_said_with_its_code(bench, healthy, arguments, code, exit_code):
    done = bench("reduce", *arguments)
    assert done.returncode == exit_code
    assert f"error[{code}]" in done.stderr
    assert "Traceback" not in done.stderr


def interrupted(tmp_path, arguments, number, when):
    """The command, stopped by a signal once a line of its progress holds `when`."""
    command = [sys.executable, "-m", "onnxbench", *map(str, arguments)]
    process = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    lines = []
    for line in process.stderr:
        lines.append(line)
        if when in line:
            time.sleep(0.3)
            os.killpg(process.pid, number)
            break
    out, rest = process.communicate(timeout=60)
    return process.returncode, out, "".join(lines) + rest


@pytest.mark.parametrize("number, code", [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_search_hands_back_the_best_so_far(tmp_path, number, code):
    """Every candidate hangs, so the search takes long enough to be stopped."""
    nodes = " ".join(f"[n{i}] t{i + 1} = {'Softsign' if i == 30 else 'Tanh'} (t{i})" for i in range(64))
    model = write(
        tmp_path / "m.onnx",
        f'<ir_version: 8, opset_import: ["": 17]> g (float[N] t0) => (float[N] t64) {{ {nodes} }}',
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
    returned, out, _ = interrupted(tmp_path, arguments, number, "32 nodes left")
    said = json.loads(out)
    assert (returned, said["status"], said["interrupted"]) == (code, "best", int(number))
    assert said["nodes_after"] <= 32
    assert (tmp_path / "b" / "repro.py").exists()
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_an_early_interrupt_leaves_nothing(tmp_path, healthy):
    arguments = ["reduce", healthy, "-r", "misbehaving:ops=Neg,do=sleep", "--bundle", "b"]
    returned, _, said = interrupted(tmp_path, arguments, signal.SIGINT, "running")
    assert returned == 130
    assert "interrupted" in said
    assert not (tmp_path / "b").exists()


def test_another_environment_runs_the_suspect(bench, healthy, tmp_path):
    """A venv that borrows this environment's packages stands for another version."""
    import site

    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
    folder = next((tmp_path / "venv" / "lib").glob("python*")) / "site-packages"
    (folder / "borrow.pth").write_text("\n".join(site.getsitepackages()) + "\n")
    done = bench("reduce", healthy, "-r", "onnxruntime@venv", "--json")
    said = json.loads(done.stdout)
    assert (done.returncode, said["versions"]["onnxruntime@venv"]) == (1, onnxruntime.__version__)


def test_the_runtimes_are_listed(bench):
    done = bench("runtimes", "--json")
    listed = {row["name"]: row for row in json.loads(done.stdout)["runtimes"]}
    assert listed["onnxruntime"]["version"] == onnxruntime.__version__
    assert set(listed) >= {"onnxruntime", "reference", "python", "misbehaving"}
    assert "onnxruntime" in bench("runtimes").stdout


@pytest.mark.parametrize("suspect", ["onnxruntime@bare", "onnxruntime:ep=Imaginary"])
def test_a_suspect_that_is_not_there_is_no_failure_of_the_model(bench, healthy, tmp_path, suspect):
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "bare"], check=True)
    done = bench("reduce", healthy, "-r", suspect)
    assert (done.returncode, "error[OB401]" in done.stderr) == (4, True)


@pytest.mark.parametrize("size", ["0", "0.1", "-5", "9e", "9" * 400])
def test_a_size_that_is_none_is_refused(bench, healthy, size):
    done = bench("reduce", healthy, f"--max-memory={size}")
    assert (done.returncode, "is no size" in done.stderr) == (2, True)


def test_no_end_of_time_is_a_timeout(bench, healthy):
    assert bench("reduce", healthy, "--timeout", "inf").returncode == 1


@pytest.mark.parametrize("place", [".", "..", "deep/..", "x" * 256])
def test_a_bundle_needs_a_name_of_its_own(bench, healthy, tmp_path, place):
    done = bench("reduce", healthy, "--bundle", place)
    assert (done.returncode, "error[OB20" in done.stderr) == (2, True)
    assert [path.name for path in tmp_path.iterdir()] == ["healthy.onnx"]


@needs_failure
def test_a_long_name_is_a_name(bench, relu_clip, tmp_path):
    assert bench("reduce", relu_clip, "--bundle", "x" * 255).returncode == 0
    assert {path.name for path in tmp_path.iterdir()} == {"relu_clip.onnx", "x" * 255}
    relu_clip.rename(tmp_path / ("y" * 250 + ".onnx"))
    done = bench("reduce", "y" * 250 + ".onnx")
    assert (done.returncode, "error[OB201]" in done.stderr) == (2, True)


@pytest.mark.parametrize("output, code", [("healthy.onnx", "OB202"), (".", "OB201"), ("no/such.onnx", "OB201")])
def test_an_output_that_cannot_be_written_is_said_before_the_search(bench, healthy, output, code):
    done = bench("reduce", healthy, "-o", output)
    assert (done.returncode, done.stderr.startswith(f"error[{code}]")) == (2, True)


def test_an_earlier_bundle_comes_back_if_the_new_one_cannot_take_its_place(tmp_path):
    (tmp_path / "repro").mkdir()
    (tmp_path / "repro" / "repro.py").touch()
    with Draft(tmp_path / "repro") as draft:
        draft.folder.rmdir()
        with pytest.raises(MachineError):
            draft.replace(tmp_path / "repro")
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["repro", "repro.py"]


@needs_failure
def test_two_runs_in_one_folder_do_not_take_each_others_place(relu_clip, tmp_path):
    command = [sys.executable, "-m", "onnxbench", "reduce", str(relu_clip), "--bundle", "repro", "--json"]
    running = [subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    said = [json.loads(process.communicate(timeout=120)[0]) for process in running]
    assert {answer["bundle"] for answer in said} == {"repro", "repro-2"}
    for answer in said:
        assert json.loads((tmp_path / answer["bundle"] / "report.json").read_text())["bundle"] == answer["bundle"]


@needs_failure
@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_standard_streams_are_no_bug(relu_clip, tmp_path, closed):
    command = f"{sys.executable} -m onnxbench reduce {relu_clip} --bundle repro --json {closed}"
    done = subprocess.run(["sh", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "repro" / "repro.py").exists()
    assert ">&-" in closed.replace("2>&-", "") or json.loads(done.stdout)["confirmed"]
    assert "Traceback" not in done.stderr


@needs_failure
def test_a_terminal_without_unicode_gets_escapes(bench, relu_clip, tmp_path):
    place = relu_clip.rename(tmp_path / "\u6f22.onnx")
    done = bench("reduce", place, "--bundle", "\u00e9", env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert (done.returncode, "\\xe9" in done.stdout) == (0, True)


def test_what_a_model_calls_itself_reaches_neither_terminal_nor_report_raw(bench, tmp_path):
    node = onnx.helper.make_node("Bad\x1b[31m", ["x"], ["y"], name="a|b `c` <img> ```\n# head", domain="loc\x1b[0m")
    value = [onnx.helper.make_tensor_value_info(name, 1, [2]) for name in "xy"]
    opsets = [onnx.helper.make_opsetid("", 17), onnx.helper.make_opsetid("loc\x1b[0m", 1)]
    model = onnx.helper.make_model(onnx.helper.make_graph([node], "g", value[:1], value[1:]), opset_imports=opsets)
    model.ir_version = 8
    onnx.save(model, tmp_path / "m.onnx")
    done = bench("reduce", "m.onnx", "-v", "--skip-pass", "names")
    assert done.returncode == 0, done.stderr
    report = (tmp_path / "m.repro" / "REPORT.md").read_text()
    assert "\x1b" not in done.stdout + done.stderr + report
    assert "| ````a\\|b `c` <img> ```\\n# head```` |" in report
    fences = [line for line in report.splitlines() if line and not line.strip("`")]
    assert len(fences) % 2 == 0
    assert max(map(len, fences)) > 3


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="POSIX")
@pytest.mark.parametrize("ignored", [False, True])
def test_a_terminal_that_closes_ends_it_as_ctrl_c_does_unless_nohup(tmp_path, healthy, ignored):
    (tmp_path / "slow.py").write_text("import time\ndef run(model, feeds):\n    time.sleep(2)\n    return {}\n")
    trap = "trap '' HUP; " if ignored else ""
    command = f"{trap}exec {sys.executable} -m onnxbench reduce {healthy} -r python:slow.py:run"
    process = subprocess.Popen(["sh", "-c", command], cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    assert "running" in process.stderr.readline()
    process.send_signal(signal.SIGHUP)
    process.communicate(timeout=60)
    assert process.returncode == (0 if ignored else 129)


def test_a_full_disk_is_said_of_the_place_that_was_asked_for(monkeypatch, tmp_path):
    def full(*_: object, **__: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with Draft(tmp_path / "repro") as draft:
        monkeypatch.setattr(type(tmp_path), "write_text", full)
        with pytest.raises(MachineError, match=r"the disk is full: cannot write '.*/repro'") as caught:
            draft.add("REPORT.md", "text")
    assert caught.value.hint == f"df -h '{tmp_path}'"


@needs_failure
def test_the_command_that_is_shown_can_be_typed(bench, relu_clip, tmp_path):
    done = bench("reduce", relu_clip, "--bundle", "it's mine")
    shown = next(line for line in done.stdout.splitlines() if line.startswith("  python "))
    command = shown.replace("  python", sys.executable, 1)
    assert subprocess.run(["sh", "-c", command], cwd=tmp_path, capture_output=True, check=False).returncode == 1
