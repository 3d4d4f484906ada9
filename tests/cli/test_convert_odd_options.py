"""Options of convert that ask for what there is not."""

import json

import pytest

from .conftest import write
from .test_convert import OLD, STRINGS

ODD = {
    "opset": (["--to", "999"], "opsets 1 to"),
    "IR version": (["--to", "13", "--ir", "99"], "IR versions up to"),
    "operator": (["--to", "13", "--expand", "Nope"], "is called 'Nope'"),
}


@pytest.mark.parametrize("what", ODD)
@pytest.mark.parametrize("many", [False, True])
def test_what_onnx_does_not_know_is_said_once_before_anything_is_done(bench, tmp_path, what, many):
    (tmp_path / "zoo").mkdir()
    write(tmp_path / "zoo" / "a.onnx", OLD)
    write(tmp_path / "zoo" / "b.onnx", OLD)
    options, message = ODD[what]
    done = bench("convert", "zoo" if many else "zoo/a.onnx", *options, "-o", "out")
    assert done.returncode == 2
    assert done.stderr.count("error[OB201]") == 1
    assert message in done.stderr
    assert not (tmp_path / "out").exists()


def test_ir_3_is_reached_with_constants_as_nodes(bench, tmp_path):
    text = '<ir_version: 8, opset_import: ["": 10]> g (float[2] x) => (float[2] y) { y = Clip <min = 0.0> (x) }'
    write(tmp_path / "m.onnx", text)
    done = bench("convert", "m.onnx", "--to", "13", "--ir", "3", "-o", "out.onnx", "--json")
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert (said["ir_after"], said["verification"]["state"]) == (3, "verified")


def test_certificates_are_text_that_can_be_read(bench, tmp_path):
    text = (
        '<ir_version: 8, opset_import: ["": 11]> g (float[2,3] x) => (float[2,3] y) { [a] y = Softmax <axis = 0> (x) }'
    )
    write(tmp_path / "m.onnx", text)
    said = json.loads(bench("convert", "m.onnx", "--to", "13", "-o", "out.onnx", "--json").stdout)
    assert "Flatten" in said["verification"]["certificates"][0]["new"]


def test_a_refused_model_has_no_opset_none(bench, tmp_path):
    write(tmp_path / "m.onnx", STRINGS)
    done = bench("convert", "m.onnx", "--to", "13", "-o", "out.onnx")
    assert done.returncode == 1
    assert "none" not in done.stdout.splitlines()[0]
