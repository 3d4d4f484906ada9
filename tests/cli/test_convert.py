"""`onnxbench convert` of one model, from outside."""

import json

import onnx
import pytest

from onnxbench.commands._opsets import opsets
from onnxbench.errors import UsageError

from .conftest import write

OLD = """<ir_version: 4, opset_import: ["": 9]>
g (float[N, 3] x) => (float[N, 3] y) { [a] h = Relu (x) [b] y = Add (h, x) }"""
#: Strings cannot be put together before opset 20, whatever is written.
STRINGS = """<ir_version: 9, opset_import: ["": 20]>
g (string[2] x) => (string[2] y) { [join] y = StringConcat (x, x) }"""


def version(path):
    return onnx.load(path).opset_import[0].version


def test_a_model_is_raised_and_verified(bench, tmp_path):
    write(tmp_path / "m.onnx", OLD)
    done = bench(
        "convert", "m.onnx", "--to", "13", "-o", "out.onnx", "--report", "r.md", "--report", "r.html", "--json"
    )
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["schema"] == "onnxbench.convert/1"
    assert (said["before"], said["after"]) == ({"ai.onnx": 9}, {"ai.onnx": 13})
    assert said["verification"]["state"] == "verified"
    assert said["output"] == "out.onnx"
    assert version(tmp_path / "out.onnx") == 13
    assert "verified" in (tmp_path / "r.md").read_text()
    assert "<td>verified</td>" in (tmp_path / "r.html").read_text()


def test_text_says_what_was_done(bench, tmp_path):
    write(tmp_path / "m.onnx", OLD)
    done = bench("convert", "m.onnx", "--to", "13", "-o", "out.onnx", "--no-verify")
    assert "m.onnx: opset 9 -> 13, IR" in done.stdout
    assert "2 nodes: " in done.stdout
    assert "written to out.onnx" in done.stdout


def test_a_refusal_is_told_with_node_step_and_code_and_writes_nothing(bench, tmp_path):
    write(tmp_path / "m.onnx", STRINGS)
    done = bench("convert", "m.onnx", "--to", "13", "-o", "out.onnx")
    assert done.returncode == 1
    assert "refused 'join' (StringConcat): StringConcat " in done.stdout
    assert "error[OB107]: m.onnx was not converted: 'join' (StringConcat): StringConcat " in done.stderr
    assert "m.onnx: opset 20, IR 9" in done.stdout
    assert "hint: --dry-run" in done.stderr
    assert not (tmp_path / "out.onnx").exists()
    assert bench("convert", "m.onnx", "--to", "13", "-o", "-").stdout == ""
    said = json.loads(bench("convert", "m.onnx", "--to", "13", "-o", "out.onnx", "--json").stdout)
    assert said["error"]["code"] == "OB107"
    assert said["refusals"][0]["op"] == "StringConcat"


def test_what_must_be_verified_and_is_not_is_not_written(bench, tmp_path):
    write(
        tmp_path / "m.onnx",
        """<ir_version: 4, opset_import: ["": 9]>
        g (float[2] x) => (float[2] y) { [r] r = RandomNormalLike (x) [s] s = Relu (r) [b] y = Add (s, x) }""",
    )
    done = bench("convert", "m.onnx", "--to", "13", "-o", "out.onnx", "--require-verified")
    assert done.returncode == 5
    assert "error[OB501]" in done.stderr
    assert not (tmp_path / "out.onnx").exists()
    assert bench("convert", "m.onnx", "--to", "13", "-o", "out.onnx").returncode == 0


def test_a_model_that_is_there_is_written_as_it_is(bench, tmp_path):
    write(tmp_path / "m.onnx", OLD)
    done = bench("convert", "m.onnx", "--to", "9", "-o", "out.onnx", "--json", "--require-verified")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["verification"]["state"] == "unchanged"
    assert onnx.load(tmp_path / "out.onnx") == onnx.load(tmp_path / "m.onnx")


def test_streams_and_places(bench, tmp_path):
    write(tmp_path / "m.onnx", OLD)
    data = (tmp_path / "m.onnx").read_bytes()
    piped = bench("convert", "-", "--to", "13", "-o", "-", "--no-verify", input=data, text=False)
    assert onnx.load_from_string(piped.stdout).opset_import[0].version == 13
    assert bench("convert", "m.onnx", "--to", "13", "-o", "m.onnx").returncode == 2
    assert bench("convert", "m.onnx", "--to", "13", "--in-place", "--no-verify").returncode == 0
    assert version(tmp_path / "m.onnx") == 13


def test_a_plan_and_a_refusal_in_it_are_told(bench, tmp_path):
    write(tmp_path / "m.onnx", STRINGS)
    done = bench("convert", "m.onnx", "--to", "13", "--explain", "join", "--json")
    assert done.returncode == 1
    said = json.loads(done.stdout)
    assert said["error"]["code"] == "OB107"
    assert [row["action"] for row in said["nodes"]] == ["refused"]
    done = bench("convert", "m.onnx", "--to", "13", "-n")
    assert done.returncode == 1
    assert "refused 'join' (StringConcat): " in done.stdout
    assert "error[OB107]" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["m.onnx"]
    assert bench("convert", "m.onnx", "--to", "13", "--explain", "joint").returncode == 3


@pytest.mark.parametrize(
    "arguments, says",
    [
        (["--to", "x"], "--to 'x' is no opset"),
        ([], "it is not said which opset is wanted"),
        (["--to", "13", "--at-least", "13"], "both say where to go"),
        (["--to", "13", "--others", "burn"], "--others is copy or skip"),
        (["--to", "13", "--no-verify", "--require-verified"], "contradict"),
        (["--to", "13", "--report", "r.pdf"], "ends with none of"),
        (["--to", "13", "--from", "9"], "one is named"),
    ],
)
def test_odd_requests_are_told(bench, tmp_path, arguments, says):
    write(tmp_path / "m.onnx", OLD)
    done = bench("convert", "m.onnx", "-o", "out.onnx", *arguments)
    assert (done.returncode, says in done.stderr) == (2, True), done.stderr
    assert "error[OB201]" in done.stderr


def test_no_model_at_all_is_told(bench):
    done = bench("convert", "--to", "13", "-o", "out.onnx")
    assert (done.returncode, "no model is named" in done.stderr) == (2, True)


@pytest.mark.parametrize(
    "text, found",
    [
        ("13", {"": 13}),
        ("ai.onnx=13,ai.onnx.ml=3", {"": 13, "ai.onnx.ml": 3}),
        ("13, ai.onnx.ml=3", {"": 13, "ai.onnx.ml": 3}),
    ],
)
def test_targets_are_read(text, found):
    assert opsets(text, "--to") == found


@pytest.mark.parametrize("text", ["", "0", "-1", "1.5", "=13", "a=", "13,", "13,ai.onnx=12", "a=1,a=1", "9999999"])
def test_what_is_no_target_is_told(text):
    with pytest.raises(UsageError) as caught:
        opsets(text, "--at-least")
    assert caught.value.code == "OB201"
    assert caught.value.hint.startswith("--at-least 13")
