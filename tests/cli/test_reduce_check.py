"""`reduce --check`: the user's command decides."""

import json
import os
import subprocess
import sys

import numpy as np
import onnx
import pytest

from .conftest import write

CHAIN = """<ir_version: 8, opset_import: ["": 17]>
g (float[N, 3] x) => (float[N, 3] y) {
  [a] v0 = Sin (x) [b] v1 = Sin (v0) [c] v2 = Softsign (v1) [d] v3 = Sin (v2) [e] v4 = Cos (v3) [f] y = Sin (v4) }"""

HOLDS = """import onnx, sys
ops = [node.op_type for node in onnx.load(sys.argv[1]).graph.node]
if len(sys.argv) > 2:
    import numpy
    assert sys.argv[2].endswith("inputs.npz") and all(numpy.isfinite(v).all() for v in numpy.load(sys.argv[2]).values())
"""


@pytest.fixture
def chain(tmp_path):
    return write(tmp_path / "chain.onnx", CHAIN)


@pytest.fixture
def check(tmp_path):
    """A command from the lines that follow `ops = [...]`."""

    def make(lines: str, tail: str = "{model}") -> str:
        (tmp_path / "check.py").write_text(HOLDS + lines)
        return f"{sys.executable} check.py {tail}".strip()

    return make


def left(folder) -> list[str]:
    return [node.op_type for node in onnx.load(folder / "model.onnx").graph.node]


@pytest.mark.parametrize("tail", ["{model}", "", "{model} {inputs}"])
def test_a_check_is_asked_about_models_and_inputs(bench, chain, check, tmp_path, tail):
    done = bench(
        "reduce",
        chain,
        "--passes",
        "",
        "--check",
        check("sys.exit('Softsign' in ops)", tail),
        "--bundle",
        "out",
        "--json",
    )
    said = json.loads(done.stdout)
    assert (done.returncode, said["status"], said["confirmed"]) == (0, "minimal", True)
    assert left(tmp_path / "out") == ["Softsign"]
    assert said["signature"]["phase"] == "check"


def test_another_ending_is_another_failure(bench, chain, check, tmp_path):
    """Code and last line are the signature: losing `Cos` ends differently, and is no success."""
    lines = "print('no Softsign' if 'Softsign' not in ops else 'with Cos' if 'Cos' in ops else 'without')\n"
    command = check(lines + "sys.exit('Softsign' in ops)")
    assert bench("reduce", chain, "--passes", "", "--check", command, "--bundle", "out").returncode == 0
    assert sorted(left(tmp_path / "out")) == ["Cos", "Softsign"]


@pytest.mark.parametrize(
    "loosened, kept",
    [
        (["--fail-any"], ["Softsign"]),
        (["--fail-code", "3"], ["Cos", "Softsign"]),
        (["--fail-code", "3", "--fail-code", "4"], ["Softsign"]),
        (["--fail-regex", "^with$"], ["Cos", "Softsign"]),
        (["--fail-regex", "o[a-z]t"], ["Softsign"]),
    ],
)
def test_the_user_says_which_endings_count(bench, chain, check, tmp_path, loosened, kept):
    lines = "print('with' if 'Cos' in ops else 'without')\nsys.exit('Softsign' in ops and (3 if 'Cos' in ops else 4))"
    if loosened == ["--fail-regex", "o[a-z]t"]:
        lines = "print('with, not out' if 'Cos' in ops else 'without')\nsys.exit(3 * ('Softsign' in ops))"
    done = bench("reduce", chain, "--passes", "", "--check", check(lines), *loosened, "--bundle", "out")
    assert done.returncode == 0, done.stderr
    assert sorted(left(tmp_path / "out")) == kept


def test_a_candidate_that_cannot_be_told_is_no_success(bench, chain, check, tmp_path):
    lines = "sys.exit(125 if 'Cos' not in ops else 'Softsign' in ops)"
    assert bench("reduce", chain, "--passes", "", "--check", check(lines), "--bundle", "out").returncode == 0
    assert sorted(left(tmp_path / "out")) == ["Cos", "Softsign"]


@pytest.mark.parametrize("lines, code", [("sys.exit(125)", 4), ("sys.exit(127)", 4), ("sys.exit(0)", 1)])
def test_a_check_that_says_nothing_or_passes_ends_with_the_reason(bench, chain, check, tmp_path, lines, code):
    done = bench("reduce", chain, "--passes", "", "--check", check(lines))
    assert done.returncode == code
    assert ("OB405" if code == 4 else "OB101") in done.stderr
    assert not list(tmp_path.glob("*.repro*"))


def test_a_command_that_is_not_there_cannot_start(bench, chain):
    done = bench("reduce", chain, "--passes", "", "--check", "./no-such-check {model}")
    assert done.returncode == 4
    assert "OB405" in done.stderr
    assert "no-such-check" in done.stderr


def test_a_check_that_crashes_and_one_that_hangs_are_failures(bench, chain, check, tmp_path):
    lines = "import os, signal\nif 'Softsign' in ops: os.kill(os.getpid(), signal.SIGSEGV)"
    assert bench("reduce", chain, "--passes", "", "--check", check(lines), "--bundle", "crash").returncode == 0
    assert left(tmp_path / "crash") == ["Softsign"]
    lines = "import time\nif 'Softsign' in ops: time.sleep(100)"
    assert (
        bench("reduce", chain, "--passes", "", "--check", check(lines), "--bundle", "hang", "--timeout", "3").returncode
        == 0
    )
    assert left(tmp_path / "hang") == ["Softsign"]


@pytest.mark.parametrize(
    "wrong",
    [["--fail-any"], ["--check", "true", "-r", "reference"], ["--check", "true", "--fail-any", "--fail-code", "1"]],
)
def test_options_that_contradict_each_other_are_refused(bench, chain, wrong):
    done = bench("reduce", chain, *wrong)
    assert done.returncode == 2
    assert "OB201" in done.stderr


def test_prove_only_tells_and_speaks_to_git_bisect(bench, chain, check, tmp_path):
    bad, good = check("sys.exit('Softsign' in ops)"), "true"
    assert bench("reduce", "--prove", chain, "--check", bad).returncode == 0
    assert bench("reduce", "--prove", chain, "--check", good).returncode == 1
    assert bench("reduce", "--prove", "--git-bisect", chain, "--check", bad).returncode == 1
    assert bench("reduce", "--prove", "--git-bisect", chain, "--check", good).returncode == 0
    assert bench("reduce", "--prove", "--git-bisect", chain, "--check", "./absent").returncode == 125
    assert bench("reduce", "--prove", "--git-bisect", "absent.onnx", "--check", bad).returncode == 125
    assert bench("reduce", "--git-bisect", chain, "--check", bad).returncode == 2
    assert {path.name for path in tmp_path.iterdir()} == {"chain.onnx", "check.py"}


def test_what_is_expected_is_who_is_right(bench, tmp_path):
    """The reference gives the expected numbers; the suspect, planted, does not."""
    path = write(tmp_path / "m.onnx", CHAIN)
    x = np.linspace(-2, 2, 6, dtype=np.float32).reshape(2, 3)
    y = np.sin(np.cos(np.sin((lambda v: v / (1 + abs(v)))(np.sin(np.sin(x))))))
    np.savez(tmp_path / "in.npz", x=x)
    np.savez(tmp_path / "right.npz", y=y)
    np.savez(tmp_path / "odd.npz", y=y + 1)
    np.savez(tmp_path / "other.npz", z=y)
    common = ["reduce", path, "-r", "misbehaving:ops=Softsign", "--inputs", "in.npz", "--json"]
    said = json.loads(bench(*common, "--expected", "right.npz", "--bundle", "out").stdout)
    assert (said["status"], [c["name"] for c in said["culprits"]]) == ("minimal", ["c"])
    odd = bench(*common, "--expected", "odd.npz")
    assert (odd.returncode, json.loads(odd.stdout)["error"]["code"]) == (3, "OB308")
    other = bench(*common, "--expected", "other.npz")
    assert (other.returncode, json.loads(other.stdout)["error"]["code"]) == (2, "OB206")
    right = bench("reduce", path, "--inputs", "in.npz", "--expected", "right.npz")
    assert right.returncode == 1


def test_another_model_of_the_same_interface_tells_what_is_right(bench, tmp_path):
    path, right = write(tmp_path / "m.onnx", CHAIN), write(tmp_path / "right.onnx", CHAIN)
    common = ["reduce", path, "-r", "misbehaving:ops=Softsign", "--bundle", "out", "--json"]
    said = json.loads(bench(*common, "--against", right).stdout)
    assert (said["status"], [c["name"] for c in said["culprits"]]) == ("minimal", ["c"])


def test_a_runtime_that_contradicts_itself(bench, tmp_path):
    path = write(tmp_path / "m.onnx", CHAIN)
    suspect = f"misbehaving:ops=Softsign,beat={tmp_path / 'beat'}"
    said = json.loads(bench("reduce", path, "-r", suspect, "--against", "itself", "--bundle", "out", "--json").stdout)
    assert said["status"] == "minimal"
    assert [c["name"] for c in said["culprits"]] == ["c"]
    assert bench("reduce", path, "--against", "itself").returncode == 1


#: What commands do to the folder they are called in, to their output, and to what they start.
RUDE = {
    "writes over the model": "open(sys.argv[1], 'w').write('gone')",
    "removes its folder": "import os, shutil; shutil.rmtree(os.path.dirname(sys.argv[1]))",
    "leaves a child that holds its output": "import subprocess; subprocess.Popen(['sleep', '20'], start_new_session=True)",
    "prints megabytes": "print('x' * (20 << 20))",
    "commands the terminal": "print('\\x1b]0;title\\x07\\u202e')",
}


@pytest.mark.parametrize("deed", RUDE.values(), ids=RUDE)
def test_a_rude_check_is_judged_and_its_reproducer_stays_whole(bench, chain, check, tmp_path, deed):
    (tmp_path / "tmp").mkdir()
    environment = {**os.environ, "TMPDIR": str(tmp_path / "tmp")}
    command = check(f"{deed}\nprint('last \\x1b[31mline') if 'Softsign' in ops else None\nsys.exit('Softsign' in ops)")
    done = bench(
        "reduce", chain, "--passes", "", "--check", command, "--timeout", "9", "--bundle", "out", env=environment
    )
    assert done.returncode == 0, done.stderr
    for _ in range(2):
        assert left(tmp_path / "out") == ["Softsign"]
        again = subprocess.run(
            [sys.executable, "out/repro.py"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert again.returncode == 1, again.stdout + again.stderr
        assert not any(sign in again.stdout for sign in "\x1b\x07\u202e")
    assert not list((tmp_path / "tmp").iterdir())


@pytest.mark.parametrize("type_", ["map", "no rank"])
def test_inputs_that_cannot_be_made_up_are_not_needed(bench, check, tmp_path, type_):
    proto = onnx.parser.parse_model(CHAIN)
    odd = proto.graph.input.add(name="odd")
    if type_ == "map":
        odd.type.map_type.key_type = onnx.TensorProto.INT64
        odd.type.map_type.value_type.tensor_type.elem_type = onnx.TensorProto.FLOAT
    else:
        odd.type.tensor_type.elem_type = onnx.TensorProto.FLOAT
    proto.graph.node.insert(2, onnx.helper.make_node("Identity", ["odd"], ["same"], name="odd"))
    proto.graph.output.add(name="same").type.CopyFrom(odd.type)
    onnx.save(proto, tmp_path / "odd.onnx")
    command = check("sys.exit('Identity' in ops and 'Softsign' in ops)")
    done = bench("reduce", "odd.onnx", "--passes", "", "--check", command, "--bundle", "out", "--json")
    assert (done.returncode, json.loads(done.stdout).get("confirmed")) == (0, True), done.stderr
    assert sorted(left(tmp_path / "out")) == ["Identity", "Softsign"]
    told = bench("reduce", "odd.onnx", "--check", command, "--shape", "absent=1")
    assert (told.returncode, "OB303" in told.stderr) == (3, True)


def test_the_hint_says_which_way_round_exit_codes_are(bench, chain, check):
    done = bench("reduce", chain, "--check", check("sys.exit('Softsign' not in ops)"))
    assert (done.returncode, "exit code 0 of the command" in done.stderr) == (1, True)


def test_a_bundle_in_a_folder_that_is_not_there_yet(bench, chain, check, tmp_path):
    command = check("sys.exit('Softsign' in ops)")
    assert bench("reduce", chain, "--passes", "", "--check", command, "--bundle", "new/deep/out").returncode == 0
    assert left(tmp_path / "new" / "deep" / "out") == ["Softsign"]
