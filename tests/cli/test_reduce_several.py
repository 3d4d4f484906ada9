"""`reduce` of several models: one bundle for each distinct failure, a table, and going on."""

import json
import sys

import pytest

from .conftest import HEALTHY, RELU_CLIP, write


@pytest.fixture
def zoo(tmp_path):
    folder = tmp_path / "zoo"
    folder.mkdir()
    write(folder / "a.onnx", RELU_CLIP)
    write(folder / "b.onnx", RELU_CLIP.replace("Sin", "Cos").replace("[relu] r", "[other] r"))
    write(folder / "c.onnx", HEALTHY)
    return folder


def test_each_distinct_failure_is_reduced_once(bench, zoo, tmp_path):
    done = bench("reduce", zoo, "--bundle", "out", "--json", "--jobs", "2", "--passes", "")
    said = json.loads(done.stdout)
    assert (done.returncode, said["schema"]) == (0, "onnxbench.reduce/1")
    assert [(row["model"].rsplit("/", 1)[-1], row["failure"]) for row in said["models"]] == [
        ("a.onnx", 1),
        ("b.onnx", 1),
        ("c.onnx", 0),
    ]
    (failure,) = said["failures"]
    assert (failure["operators"], failure["known"]) == (["Relu", "Clip"], ["microsoft/onnxruntime#11836"])
    assert len(failure["models"]) == 2
    assert [path.name for path in (tmp_path / "out").iterdir() if path.is_dir()] == ["a.repro"]


def test_a_table_for_people_and_broken_files_among_them(bench, zoo):
    (zoo / "d.onnx").write_bytes(b"no model at all")
    done = bench("reduce", zoo, "--bundle", "out", "--passes", "")
    assert done.returncode == 3
    lines = done.stdout.splitlines()
    assert any("c.onnx: does not fail" in line for line in lines)
    assert any("d.onnx: OB302" in line for line in lines)
    assert any("failure 1:" in line and "Relu, Clip" in line for line in lines)


def test_no_model_fails(bench, healthy, tmp_path):
    write(tmp_path / "other.onnx", HEALTHY)
    assert bench("reduce", healthy, "other.onnx", "--bundle", "out").returncode == 1


def test_what_is_done_is_not_done_again(bench, zoo, tmp_path):
    (tmp_path / "check.py").write_text(
        "import onnx, sys\nopen('asked', 'a').write('.')\n"
        "sys.exit('Relu' in [node.op_type for node in onnx.load(sys.argv[1]).graph.node])\n"
    )
    command = ["reduce", zoo, "--check", f"{sys.executable} check.py", "--bundle", "out", "--json", "--passes", ""]
    first = json.loads(bench(*command).stdout)
    before = (tmp_path / "asked").read_text()
    again = json.loads(bench(*command, "--resume").stdout)
    assert (tmp_path / "asked").read_text() == before
    assert again["failures"] == first["failures"]


@pytest.mark.parametrize("option", [["-o", "x.onnx"], ["--prove"], ["--within", "op=Relu"]])
def test_options_for_one_model_are_refused(bench, zoo, option):
    done = bench("reduce", zoo, *option)
    assert (done.returncode, "OB201" in done.stderr) == (2, True)


def test_checks_run_side_by_side(bench, tmp_path):
    """The same result, and some candidates that would not have been asked."""
    chain = " ".join(f"[n{i}] t{i + 1} = {'Relu' if i in (5, 17) else 'Sin'} (t{i})" for i in range(24))
    path = write(
        tmp_path / "m.onnx", f'<ir_version: 8, opset_import: ["": 17]> g (float[2] t0) => (float[2] t24) {{ {chain} }}'
    )
    (tmp_path / "check.py").write_text(
        "import onnx, sys, time, os\nopen(f'begun-{os.getpid()}-{time.time()}', 'w').close()\n"
        "sys.exit([node.op_type for node in onnx.load(sys.argv[1]).graph.node].count('Relu') == 2)\n"
    )
    command = ["reduce", path, "--check", f"{sys.executable} check.py", "--json", "--passes", ""]
    one = json.loads(bench(*command, "--bundle", "one").stdout)
    two = json.loads(bench(*command, "--bundle", "two", "--jobs", "2").stdout)
    assert one["culprits"] == two["culprits"]
    assert [culprit["name"] for culprit in two["culprits"]] == ["n5", "n17"]
    assert two["checks"] >= one["checks"]
