"""OpenVINO: its options reach the device, values of all types come back, failures are told as they are."""

import os
import subprocess
import sys
from importlib.util import find_spec

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from onnx.parser import parse_model

from onnxbench import isolate
from onnxbench.core.compare import differ_all
from onnxbench.core.model import Model, load
from onnxbench.core.weights import slim
from onnxbench.errors import MachineError, UsageError
from onnxbench.runtimes.find import find, survey
from onnxbench.runtimes.outcome import Outcome

needed = pytest.mark.skipif(find_spec("openvino") is None, reason="pip install 'onnxbench[openvino]'")
HEADER = '<ir_version: 10, opset_import: ["": 21, "loc": 1]>'
X = np.array([1, -2], np.float32)
NEG = "g (float[2] x) => (float[2] y) { y = Neg(x) }"


def parsed(text):
    return parse_model(HEADER + text) if isinstance(text, str) else text


def save(model, place):
    copy = onnx.ModelProto.FromString(model.SerializeToString())
    onnx.save(copy, place, save_as_external_data=True, location="m.data", size_threshold=0)


def run(text, feeds, spec="openvino", fetch=None, **options):
    return find(spec).run(Model(parsed(text)), feeds, fetch, **options)


def outputs(text, feeds, spec="openvino", fetch=None):
    result = run(text, feeds, spec, fetch)
    assert result.ok, result.message
    return {name: value.tolist() for name, value in result.outputs.items()}


# --- options


def test_options_are_plain_data():
    text = "openvino:device=AUTO:CPU+GPU,precision=bf16,threads=2,property.NUM_STREAMS=1,property.A.B=C"
    assert find(text).options == {
        "device": "AUTO:CPU,GPU",
        "precision": "bf16",
        "threads": 2,
        "property": {"NUM_STREAMS": "1", "A.B": "C"},
    }
    assert find("openvino").options == {"device": "CPU", "precision": "f32"}


@pytest.mark.parametrize("text", ["precision=f64", "threads=two", "device=", "threads"])
def test_a_value_that_cannot_be_taken_is_said(text):
    with pytest.raises(UsageError, match=text.partition("=")[0]) as caught:
        find(f"openvino:{text}")
    assert caught.value.code == "OB205"


@pytest.mark.parametrize("text", ["openvino:opt=all", "openvino:property.INFERENCE_PRECISION_HINT=bf16"])
def test_an_unknown_option_is_said_with_those_there_are(text):
    with pytest.raises(UsageError, match="has no option") as caught:
        find(text)
    assert (caught.value.code, caught.value.hint) == ("OB205", "options: device, precision, threads, property.KEY")


def test_it_takes_no_environment():
    with pytest.raises(UsageError, match="another environment"):
        find("openvino@venv")


def test_it_has_no_mode_without_optimizations():
    assert find("openvino").plain() is None


@needed
def test_properties_reach_the_device():
    assert run(NEG, {"x": X}, "openvino:threads=1,property.NUM_STREAMS=1").ok
    result = run(NEG, {"x": X}, "openvino:property.NOTHING=1")
    assert (result.kind, result.phase) == ("error", "load")
    assert "NOTHING" in result.message


@needed
def test_a_device_that_is_not_there_is_said_before_anything_runs():
    with pytest.raises(MachineError, match="cannot run here") as caught:
        find("openvino:device=NONSENSE").version()
    assert caught.value.code == "OB401"


@needed
def test_a_precision_that_the_machine_lacks_is_an_error_and_not_f32():
    for precision in ("f16", "bf16"):
        runtime = find(f"openvino:precision={precision}")
        result = run(NEG, {"x": X}, str(runtime))
        if result.ok:
            assert f"({precision})" in runtime.version()
            continue
        assert (result.error, result.phase) == ("LookupError", "load")
        with pytest.raises(MachineError, match=f"precision {precision} cannot be used"):
            runtime.version()


@needed
def test_the_precision_is_shown():
    assert find("openvino").version().endswith("(f32)")
    assert find("openvino:precision=undefined").version().endswith("(undefined)")


@needed
def test_numbers_are_those_of_f32():
    """In bf16 the worst of these elements would be off by a thousandth of the largest, a hundred times the tolerance."""
    draw = np.random.default_rng(0)
    a, b = (draw.normal(size=shape).astype(np.float32) for shape in ((64, 512), (512, 64)))
    found = run("g (float[64, 512] a, float[512, 64] b) => (float[64, 64] y) { y = MatMul(a, b) }", {"a": a, "b": b})
    right = a.astype(np.float64) @ b.astype(np.float64)
    narrow = (a.astype(ml_dtypes.bfloat16).astype(np.float64)) @ (b.astype(ml_dtypes.bfloat16).astype(np.float64))
    assert np.abs(found.outputs["y"] - right).max() < 1e-5 * np.abs(right).max()
    assert np.abs(narrow - right).max() > 1e-3 * np.abs(right).max()


# --- telemetry


@needed
def test_nothing_is_told_to_anybody_nor_left_at_home(tmp_path):
    (tmp_path / "m.py").write_text(
        "import sys\nfrom onnxbench import find\n"
        "print(find('openvino').version())\n"
        "exec(find('openvino').script(), {'phase': print})\n"
        "import threading\nassert threading.active_count() == 1, threading.enumerate()\n"
        "assert sys.modules['openvino_telemetry'] is None\n"
    )
    (tmp_path / "home").mkdir()
    home = {**os.environ, "HOME": str(tmp_path / "home")} | {"CI": "", "GITHUB_ACTIONS": ""}
    subprocess.run([sys.executable, str(tmp_path / "m.py")], env=home, check=True)
    assert list((tmp_path / "home").iterdir()) == []


# --- values


@needed
@pytest.mark.parametrize(
    "kind, value",
    [
        ("bfloat16", np.array([1.5, -2, 3], ml_dtypes.bfloat16)),
        ("float8e4m3fn", np.array([1.5, -2, 3], ml_dtypes.float8_e4m3fn)),
        ("float8e5m2", np.array([1.5, -2, 3], ml_dtypes.float8_e5m2)),
        ("float16", np.array([1.5, -2, 3], np.float16)),
        ("double", np.array([1.5, -2, 3], np.float64)),
        ("int4", np.array([1, -2, 7], ml_dtypes.int4)),
        ("uint4", np.array([1, 2, 15], ml_dtypes.uint4)),
        ("bool", np.array([True, False, True])),
        ("uint64", np.array([0, 1, 2**31], np.uint64)),
    ],
)
def test_values_of_every_type_go_in_and_come_out(kind, value):
    for array in (value, value[:0], value[:1].reshape(())):
        dims = "" if array.ndim == 0 else f"[{array.size}]"
        result = run(f"g ({kind}{dims} x) => ({kind}{dims} y) {{ y = Identity(x) }}", {"x": array})
        assert result.ok, result.message
        assert result.outputs["y"].dtype == array.dtype
        assert result.outputs["y"].shape == array.shape
        assert result.outputs["y"].tolist() == array.tolist()


@needed
def test_strings_go_in_and_come_out():
    text = "g (string[2] x, string[1] z) => (string[3] y) { y = Concat <axis = 0> (x, z) }"
    assert outputs(text, {"x": np.array(["a", "ö"], object), "z": np.array([""], object)}) == {"y": ["a", "ö", ""]}


@needed
@pytest.mark.parametrize(
    "text, value, words",
    [
        ("float8e4m3fnuz[1]", np.array([1], ml_dtypes.float8_e4m3fnuz), "Unsupported data type FLOAT8E4M3FNUZ"),
        ("complex64[1]", np.array([1], np.complex64), "Unsupported data type COMPLEX64"),
        ("seq(float[2])", [X], ""),
    ],
)
def test_types_that_it_lacks_are_errors(text, value, words):
    result = run(f"g ({text} x) => ({text} y) {{ y = Identity(x) }}", {"x": value})
    assert result.kind == "error"
    assert words in result.message


@needed
def test_a_value_of_another_type_is_refused_and_not_cast():
    result = run(NEG, {"x": X.astype(np.float64)})
    assert (result.kind, result.phase) == ("error", "run")


@needed
def test_an_input_without_a_value_is_an_error():
    result = run("g (float[2] x, float[2] z) => (float[2] y) { y = Add(x, z) }", {"x": X})
    assert (result.kind, result.message) == ("error", "no value for the input z")


@needed
def test_arrays_in_any_order_of_memory():
    value = np.arange(6, dtype=np.float32).reshape(2, 3)
    text = "g (float[3, 2] x) => (float[3, 2] y) { y = Neg(x) }"
    assert outputs(text, {"x": value.T}) == {"y": (-value.T).tolist()}
    assert outputs(text, {"x": value.T.copy()[::-1]}) == {"y": (-value.T[::-1]).tolist()}


@needed
@pytest.mark.parametrize(
    "dims, value",
    [("N", X), ("?", X), ("N", X[:0]), ("0", X[:0]), ("N, 3", np.zeros((0, 3), np.float32)), ("", np.float32(2))],
)
def test_sizes_may_be_unknown_unnamed_or_nothing(dims, value):
    kind = f"float[{dims}]" if dims else "float"
    result = run(f"g ({kind} x) => ({kind} y) {{ y = Neg(x) }}", {"x": np.asarray(value)})
    assert np.array_equal(result.outputs["y"], -value)
    assert result.outputs["y"].shape == np.shape(value)


@needed
def test_outputs_are_told_apart_where_names_and_values_are_equal():
    text = """g (float[N] x, float[M] unread) => (float[N] x, float[N] y, float[N] z, float[N] x2, float[2] o)
        <float[2] o = {3, 4}> { y = Neg(x) z = Identity(y) x2 = Neg(z) }"""
    right = {"x": [1, -2], "y": [-1, 2], "z": [-1, 2], "x2": [1, -2], "o": [3, 4]}
    assert outputs(text, {"x": X, "unread": X, "other": X}) == right
    assert list(outputs(text, {"x": X}, fetch=["z", "x"])) == ["z", "x"]


@needed
def test_overridable_initializers_can_be_fed():
    text = "g (float[2] x, float[2] o) => (float[2] y) <float[2] o = {3, 4}> { y = Add(x, o) }"
    assert outputs(text, {"x": X}) == {"y": [4, 2]}
    assert outputs(text, {"x": X, "o": X}) == {"y": [2, -4]}


@needed
def test_spilled_outputs_are_mapped(tmp_path):
    large = np.arange(100_000, dtype=np.float32)
    mapped = np.memmap(tmp_path / "large", np.float32, "w+", shape=large.shape)
    mapped[:] = large
    result = run("g (float[N] x) => (float[N] y) { y = Neg(x) }", {"x": mapped}, spill=tmp_path / "spilled")
    assert isinstance(result.outputs["y"], np.memmap)
    assert np.array_equal(result.outputs["y"], -large)


@needed
def test_weights_that_lie_elsewhere_are_found(tmp_path):
    weight = np.arange(2000, dtype=np.float32)
    model = parsed("g (float[N] x) => (float[N] y) { a = Add(x, w) y = Add(a, v) }")
    model.graph.initializer.extend(numpy_helper.from_array(weight, name) for name in "wv")
    save(model, tmp_path / "m.onnx")
    for lean in (slim(Model(model)), load(tmp_path / "m.onnx"), slim(load(tmp_path / "m.onnx"))):
        assert len(lean.proto.SerializeToString()) < 2000
        result = find("openvino").run(lean, {"x": weight})
        assert result.ok, result.message
        assert result.outputs["y"].tolist() == (3 * weight).tolist()


@needed
def test_only_the_taken_branch_counts():
    text = """g (float[N] x, bool c) => (float[N] y) {
        a = Add(x, x)
        y = If(c) <then_branch = t () => (float[N] p) { p = Neg(a) }, else_branch = e () => (float[N] q) { q = Abs(a) }>
    }"""
    assert outputs(text, {"x": X, "c": np.array(True)}) == {"y": [-2, 4]}
    assert outputs(text, {"x": X, "c": np.array(False)}) == {"y": [2, 4]}


# --- failures


@needed
@pytest.mark.parametrize(
    "text, kind, phase, node",
    [
        ("g (float[2] x) => (float[2] y) { [there] y = loc.Nothing(x) }", "unsupported", "load", ""),
        ("g (float[2] x) => (string[2] y) { [there] y = Cast <to = 8> (x) }", "unsupported", "load", "y"),
        ("g (float[2] x, float[3] z) => (float[2] y) { [there] y = Add(x, z) }", "error", "load", "there"),
        ("g (float[N] x) => (float[M] y) <int64[1] s = {7}> { [there] y = Reshape(x, s) }", "error", "run", "y"),
        ("g (float[3] x) => (float[3] y) { [there] y = Neg(x) }", "error", "run", ""),
    ],
)
def test_a_failure_has_its_kind_phase_and_node(text, kind, phase, node):
    result = run(text, {"x": X, "z": np.ones(3, np.float32)})
    assert (result.kind, result.phase, result.node) == (kind, phase, node), result.message
    assert result.error == "RuntimeError"


def test_what_is_no_error_is_left_alone():
    crash = Outcome("crash", signal="SIGABRT")
    assert find("openvino").explain(crash) is crash


@needed
def test_a_crash_is_an_outcome_and_not_the_end():
    """It hands strings from an input to an output, and frees them twice."""
    text = "g (string[2] x) => (string[2] y) { y = Identity(x) }"
    result = run(text, {"x": np.array(["a" * 50, "b" * 60], object)})
    assert result.kind in ("crash", "ok")
    assert outputs(NEG, {"x": X}) == {"y": [-1, 2]}


def test_where_it_is_missing_the_pip_line_is_given(monkeypatch):
    missing = isolate.Error("ModuleNotFoundError", "No module named 'openvino'")
    monkeypatch.setattr(isolate, "call", lambda *arguments, **more: missing)
    (row,) = [row for row in survey() if row.name == "openvino"]
    assert (row.version, row.hint) == ("", "pip install 'onnxbench[openvino]'")


@needed
def test_it_is_listed_with_its_version():
    (row,) = [row for row in survey() if row.name == "openvino"]
    assert row.version[:2] == "20"
    assert row.missing == ""


# --- scripts


@needed
def test_the_script_computes_the_same(tmp_path):
    """In a process of its own: it turns telemetry off for the whole of it, and goes to the folder of the model."""
    text = """g (bfloat16[3] a, int4[3] i, float[N] x, float[2] o, float[M] unread)
        => (float[3] b, bfloat16[3] c, int4[3] j, float[N] x, float[N] y, float[N] z) <float[2] o = {3, 4}> {
        b = Cast <to = 1> (a) c = Neg(a) j = Identity(i) m = Neg(x) n = Neg(m) y = Add(n, o) z = Add(n, w)
    }"""
    model = parsed(text)
    model.graph.initializer.append(numpy_helper.from_array(np.ones(2, np.float32), "w"))
    save(model, tmp_path / "m.onnx")
    feeds = {
        "a": np.array([1, -2, 3], ml_dtypes.bfloat16),
        "i": np.array([1, -2, 7], ml_dtypes.int4),
        "x": X,
        "unread": X,
        "o": X,
    }
    result = isolate.call(perform, (find("openvino:threads=1").script(), str(tmp_path / "m.onnx"), feeds))
    assert isinstance(result, isolate.Ok), result
    version, found = result.value
    assert version.startswith("openvino 20")
    assert version.endswith("(CPU, f32)")
    assert list(found) == [value.name for value in model.graph.output]
    assert not differ_all(find("openvino").run(load(tmp_path / "m.onnx"), feeds).outputs, found)
    assert found["y"].tolist() == [2, -4]
    assert helper.np_dtype_to_tensor_dtype(found["j"].dtype) == 22


def perform(script, model, feeds):
    held = {"phase": lambda name: None}
    exec(script, held)
    return held["version"](), held["run"](model, feeds)
