"""The fixtures are valid, and do what their README says."""

from importlib.metadata import version
from pathlib import Path

import onnx
import pytest

from onnxbench import GraphView, Request, find, generate, load, reduce

FIXTURES = Path(__file__).parents[1] / "fixtures"
EXPECTED = {
    "demo": ["Identity", "Div", "Mul"],
    "relu_clip_double": ["Relu", "Clip"],
    "if_captures": ["Relu", "Clip"],
    "local_function": ["Relu", "Clip"],
    "functions_dims": [],
}


@pytest.mark.parametrize("path", sorted(FIXTURES.glob("*.onnxtxt")), ids=lambda path: path.stem)
def test_every_fixture_is_valid_and_described(path):
    onnx.checker.check_model(load(path).proto, full_check=True)
    assert path.stem in EXPECTED
    assert f"`{path.name}`" in (FIXTURES / "README.md").read_text()


@pytest.mark.skipif(version("onnxruntime") != "1.32.0", reason="faults come and go with releases of ONNX Runtime")
@pytest.mark.parametrize("name", EXPECTED)
def test_it_reduces_to_what_is_expected(name):
    model = load(FIXTURES / f"{name}.onnxtxt")
    feeds = generate(GraphView(model.proto, model.proto.graph))
    trusted = [find("onnxruntime:opt=disable"), find("reference")]
    report = reduce(Request(model, feeds, find("onnxruntime"), trusted))
    assert [culprit.operator for culprit in report.culprits] == EXPECTED[name]
    assert report.status == ("minimal" if EXPECTED[name] else "not-reproduced")


def test_the_demo_is_what_its_script_writes(capsys):
    import runpy

    runpy.run_path(str(FIXTURES / "make_demo.py"), run_name="__main__")
    assert capsys.readouterr().out == (FIXTURES / "demo.onnxtxt").read_text()
