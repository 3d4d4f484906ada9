"""The documents of a bundle, as `onnxbench reduce` writes them."""

import json
import subprocess
import sys

import onnx
import pytest
from onnx import parser

from .conftest import write

SUSPECT = "misbehaving:ops=Softsign"


@pytest.fixture
def traced(tmp_path):
    """A model as PyTorch's exporter leaves it."""
    lines = " ".join(f"[n{i}] t{i + 1} = {'Softsign' if i == 70 else 'Neg'} (t{i})" for i in range(100))
    proto = parser.parse_model(
        f'<ir_version: 10, opset_import: ["": 17]> g (float[2] t0) => (float[2] t100) {{ {lines} }}'
    )
    for i, node in enumerate(proto.graph.node):
        scopes = f"['', 'encoder', 'encoder.layer{i // 10}', 'n{i}']"
        node.metadata_props.add(key="pkg.torch.onnx.name_scopes", value=scopes)
        node.metadata_props.add(key="pkg.torch.onnx.stack_trace", value=f'File "/home/me/net.py", line {i}, in forward')
    onnx.save(proto, tmp_path / "traced.onnx")
    return tmp_path / "traced.onnx"


def test_a_bundle_tells_where_it_comes_from_and_what_passes(bench, traced, tmp_path):
    done = bench("reduce", traced, "-r", SUSPECT, "--bundle", "b", "--json")
    said = json.loads(done.stdout)
    assert (done.returncode, json.loads((tmp_path / "b" / "report.json").read_text())) == (0, said)
    assert [(c["name"], c["scope"], c["line"]) for c in said["culprits"]] == [("n70", "encoder/layer7", "net.py:70")]
    assert [entry["node"] for entry in said["along"] if entry["isolated"]] == ["n70"]
    assert (said["curve"][0]["nodes"], said["curve"][-1]["nodes"]) == (100, 1)
    assert said["passing"]["differs"]
    assert onnx.load(tmp_path / "b" / "passing.onnx").graph.node[0].op_type != "Softsign"
    report, page = ((tmp_path / "b" / name).read_text() for name in ("REPORT.md", "report.html"))
    for text in (report, page):
        assert "net.py:70" in text
        assert "encoder/layer7" in text
        assert "passing.onnx" in text
    assert page.count("<svg") == 3
    assert "10 nodes" in page  # scopes far from the culprit are drawn as one


def test_a_bundle_with_all_of_them_is_replaced_with_force(bench, traced, tmp_path):
    for _ in range(2):
        assert bench("reduce", traced, "-r", SUSPECT, "--bundle", "b", "--force").returncode == 0
    assert (tmp_path / "b" / "passing.onnx").exists()


def test_an_anonymous_bundle_draws_nothing_of_the_original(bench, traced, tmp_path):
    assert bench("reduce", traced, "-r", SUSPECT, "--bundle", "b", "--anonymize").returncode == 0
    held = b"".join(path.read_bytes() for path in (tmp_path / "b").rglob("*") if path.is_file())
    assert not [
        word for word in (b"net.py", b"encoder", b"layer", b"n70", b"traced") if word in held.replace(b"player", b"")
    ]
    assert not (tmp_path / "b" / "passing.onnx").exists()


def test_what_passes_is_no_failure_of_the_runtime(bench, relu_clip, tmp_path):
    import onnxruntime

    if bench("reduce", relu_clip, "--bundle", "b").returncode != 0:
        pytest.skip("this onnxruntime does not have the failure")
    onnxruntime.InferenceSession(tmp_path / "b" / "passing.onnx", providers=["CPUExecutionProvider"])
    script = (tmp_path / "b" / "REPORT.md").read_text().partition("```python\n")[2].partition("\n```")[0]
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, "FuseReluClip" in done.stderr) == (1, True)


def test_each_candidate_is_a_line_with_v(bench, tmp_path):
    text = (
        '<ir_version: 8, opset_import: ["": 17]> g (float[N, 4] x) => (float[N, 4] y) { h = Cos (x) y = Softsign (h) }'
    )
    done = bench("reduce", write(tmp_path / "m.onnx", text), "-r", SUSPECT, "-v")
    assert "nodes left after" in done.stderr
    assert "shrinking, dims: " in done.stderr
    quiet = bench("reduce", tmp_path / "m.onnx", "-r", SUSPECT, "-q")
    assert quiet.stderr == ""
