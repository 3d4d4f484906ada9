"""ONNX Runtime: its options reach the session, values of all types come back, failures are told as they are."""

import subprocess
import sys
import sysconfig

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.parser import parse_model

from onnxbench.core.model import Model
from onnxbench.core.weights import slim
from onnxbench.errors import MachineError, UsageError
from onnxbench.runtimes import ort_session
from onnxbench.runtimes.base import Limits
from onnxbench.runtimes.find import find
from onnxbench.runtimes.onnxruntime import LEVELS
from onnxbench.runtimes.outcome import Outcome

HEADER = '<ir_version: 10, opset_import: ["": 21, "loc": 1]>'
X = np.array([1, -2], np.float32)
NEG = "g (float[2] x) => (float[2] y) { y = Neg(x) }"


def run(text, feeds, spec="onnxruntime:opt=disable", fetch=None, **options):
    model = parse_model(HEADER + text) if isinstance(text, str) else text
    return find(spec).run(Model(model), feeds, fetch, **options)


# --- options


def test_options_are_plain_data():
    runtime = find(
        "onnxruntime:opt=extended,ep=CUDA+CPUExecutionProvider,threads=2,mode=parallel,deterministic=1,"
        "disable=A+B,session.x.y=1,session.z=2"
    )
    assert runtime.options == {
        "opt": "extended",
        "ep": ["CUDAExecutionProvider", "CPUExecutionProvider"],
        "threads": 2,
        "mode": "parallel",
        "deterministic": True,
        "disable": ["A", "B"],
        "session": {"x.y": "1", "z": "2"},
    }


@pytest.mark.parametrize("text", ["opt=fast", "threads=two", "threads=-1", "mode=both", "deterministic=yes", "opt"])
def test_a_value_that_cannot_be_taken_is_said(text):
    with pytest.raises(UsageError, match=text.partition("=")[0]) as caught:
        find(f"onnxruntime:{text}")
    assert caught.value.code == "OB205"


def test_an_unknown_option_is_said_with_those_there_are():
    with pytest.raises(UsageError, match="'optimize'") as caught:
        find("onnxruntime:optimize=0")
    assert caught.value.code == "OB205"
    assert "opt, ep, threads" in caught.value.hint


def session_of(options):
    return ort_session.make_session(parse_model(HEADER + NEG).SerializeToString(), None, options).get_session_options()


def test_options_reach_the_session():
    settings = session_of(
        {
            "opt": "extended",
            "threads": 3,
            "mode": "parallel",
            "deterministic": True,
            "session": {"session.disable_prepacking": "1"},
        }
    )
    assert settings.graph_optimization_level == onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    assert settings.intra_op_num_threads == 3
    assert settings.execution_mode == onnxruntime.ExecutionMode.ORT_PARALLEL
    assert settings.use_deterministic_compute
    assert settings.get_session_config_entry("session.disable_prepacking") == "1"


@pytest.mark.parametrize("level", LEVELS)
def test_every_level_is_one_of_the_runtime(level):
    options = find(f"onnxruntime:opt={level}").options
    assert session_of(
        options
    ).graph_optimization_level.name == f"ORT_{'DISABLE' if level == 'disable' else 'ENABLE'}_" + (
        "ALL" if level in ("disable", "all") else level.upper()
    )


IDENTITY_DIV_MUL = """<ir_version: 8, opset_import: ["": 17]>
g (float[2] x) => (float[2] y) <float one_a = {1}, float one_b = {1}> {
    mid = Identity(x) ratio = Div(one_a, one_b) y = Mul(mid, ratio)
}"""


def test_a_disabled_optimizer_changes_the_outcome():
    """microsoft/onnxruntime#32413: EliminateIdentity and DivMulFusion leave a dangling input."""
    model = parse_model(IDENTITY_DIV_MUL)
    failing = run(model, {"x": X}, "onnxruntime")
    if failing.ok:
        pytest.skip("this release does not have the bug")
    assert (failing.kind, failing.phase) == ("error", "load")
    for cure in ("opt=disable", "disable=EliminateIdentity", "disable=Nothing+DivMulFusion"):
        assert run(model, {"x": X}, f"onnxruntime:{cure}").outputs["y"].tolist() == [1, -2]


def test_a_provider_that_is_not_there_is_an_error_and_not_the_cpu():
    result = run(NEG, {"x": X}, "onnxruntime:ep=Nonsense+CPU")
    assert (result.kind, result.phase) == ("error", "load")
    assert "NonsenseExecutionProvider is not in this build" in result.message
    assert run(NEG, {"x": X}, "onnxruntime:ep=CPU").ok


def test_custom_operators_that_are_not_there_are_wrong_usage(tmp_path):
    with pytest.raises(UsageError, match=r"there is no file '.*nowhere.so'"):
        find(f"onnxruntime:custom_ops={tmp_path / 'nowhere.so'}")


def test_a_library_that_is_none_is_a_load_error(tmp_path):
    (tmp_path / "text.so").write_text("no library")
    result = run(NEG, {"x": X}, f"onnxruntime:custom_ops={tmp_path / 'text.so'}")
    assert (result.kind, result.phase) == ("error", "load")


@pytest.mark.parametrize(
    "text, plain",
    [
        ("onnxruntime", "onnxruntime:opt=disable"),
        ("onnxruntime:opt=all,threads=1,disable=A", "onnxruntime:threads=1,opt=disable"),
        ("onnxruntime:threads=1, opt=all, disable=A", "onnxruntime:threads=1,opt=disable"),
    ],
)
def test_the_plain_form_optimizes_nothing(text, plain):
    assert str(find(text).plain()) == plain
    assert find(plain).plain() is None


# --- values


@pytest.mark.parametrize(
    "kind, value",
    [
        ("bfloat16", np.array([1.5, -2, 3], ml_dtypes.bfloat16)),
        ("float8e4m3fn", np.array([1.5, -2, 3], ml_dtypes.float8_e4m3fn)),
        ("float8e5m2", np.array([1.5, -2, 3], ml_dtypes.float8_e5m2)),
        ("float16", np.array([1.5, -2, 3], np.float16)),
        ("string", np.array(["a", "", "ö"], object)),
        ("bool", np.array([True, False, True])),
        ("uint64", np.array([0, 1, 2**64 - 1], np.uint64)),
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


@pytest.mark.parametrize("signed", [True, False])
@pytest.mark.parametrize("count", [0, 1, 3, 4])
def test_int4_goes_in_and_comes_out(signed, count):
    dtype, kind = (ml_dtypes.int4, "int4") if signed else (ml_dtypes.uint4, "uint4")
    value = np.array([1, -2, 7, -8] if signed else [1, 2, 7, 15], dtype)[:count]
    result = run(
        f"g ({kind}[{count}] x) => ({kind}[{count}] y) <float s = {{1}}> "
        f"{{ f = DequantizeLinear(x, s) y = QuantizeLinear<output_dtype = {22 if signed else 21}>(f, s) }}",
        {"x": value},
    )
    assert result.ok, result.message
    assert result.outputs["y"].dtype == dtype
    assert result.outputs["y"].tolist() == value.tolist()


def test_sequences_and_optionals_go_in_and_come_out():
    text = """g (seq(float[N]) s, optional(float[N]) o, optional(float[N]) e)
        => (seq(float[N]) t, bool has, bool lacks, optional(float[N]) p) {
        t = Identity(s) has = OptionalHasElement(o) lacks = OptionalHasElement(e) p = Identity(e)
    }"""
    result = run(text, {"s": [X, np.ones(3, np.float32)], "o": X, "e": None})
    assert result.ok, result.message
    assert [v.tolist() for v in result.outputs["t"]] == [[1, -2], [1, 1, 1]]
    assert (bool(result.outputs["has"]), bool(result.outputs["lacks"])) == (True, False)
    assert result.outputs["p"] is None


BF16 = np.array([1, -2], ml_dtypes.bfloat16)


def test_types_that_numpy_lacks_may_be_fed_with_anything():
    text = """g (bfloat16[2] x, string[2] s, seq(float[N]) q, optional(float[N]) o)
        => (float[2] y, string[2] t, seq(float[N]) u, bool b) {
        y = Cast<to = 1>(x) t = Identity(s) u = Identity(q) b = OptionalHasElement(o)
    }"""
    feeds = {"x": BF16, "s": np.array(["a", "b"], object), "q": [X], "o": None}
    result = run(text, feeds)
    assert result.ok, result.message
    assert result.outputs["y"].tolist() == [1, -2]
    assert result.outputs["t"].tolist() == ["a", "b"]
    assert result.outputs["u"][0].tolist() == [1, -2]


def test_types_that_numpy_lacks_may_come_with_sequences_and_strings():
    text = """g (bfloat16[2] x, float[2] f) => (bfloat16[2] y, seq(float[2]) q, string[2] s, float[2] z) {
        y = Identity(x) q = SequenceConstruct(f, f) s = Cast<to = 8>(f) z = Neg(f)
    }"""
    result = run(text, {"x": BF16, "f": X})
    assert result.ok, result.message
    assert list(result.outputs) == ["y", "q", "s", "z"]
    assert result.outputs["y"].dtype == ml_dtypes.bfloat16
    assert [v.tolist() for v in result.outputs["q"]] == [[1, -2], [1, -2]]
    assert result.outputs["s"].tolist() == ["1", "-2"]


def test_what_its_interface_cannot_do_is_said():
    text = "g (bfloat16[2] x, string[2] s) => (bfloat16[2] y, string[2] t) { y = Identity(x) t = Identity(s) }"
    result = run(text, {"x": BF16, "s": np.array(["a", "b"], object)})
    assert (result.kind, result.error) == ("error", "TypeError")
    assert "takes no strings" in result.message


def test_mapped_feeds_of_a_narrow_type(tmp_path):
    value = np.arange(4000).astype(ml_dtypes.bfloat16)
    value.tofile(tmp_path / "values")
    mapped = np.memmap(tmp_path / "values", np.uint16, "r").view(ml_dtypes.bfloat16)[100:]
    result = run("g (bfloat16[N] x) => (bfloat16[N] y) { y = Identity(x) }", {"x": mapped})
    assert result.outputs["y"].tolist() == value[100:].tolist()


def test_only_wanted_outputs_come_and_unknown_feeds_are_left_out():
    text = "g (float[2] x) => (float[2] a, float[2] b) { a = Neg(x) b = Abs(x) }"
    assert list(run(text, {"x": X, "other": X}, fetch=["b"]).outputs) == ["b"]


def test_overridable_initializers_can_be_fed():
    text = "g (float[2] x, float[2] o) => (float[2] y) <float[2] o = {3, 4}> { y = Add(x, o) }"
    assert run(text, {"x": X}).outputs["y"].tolist() == [4, 2]
    assert run(text, {"x": X, "o": X}).outputs["y"].tolist() == [2, -4]


def test_spilled_outputs_are_mapped(tmp_path):
    large = np.arange(100_000, dtype=np.float32)
    result = run("g (float[N] x) => (float[N] y) { y = Neg(x) }", {"x": large}, spill=tmp_path / "spilled")
    assert isinstance(result.outputs["y"], np.memmap)
    assert np.array_equal(result.outputs["y"], -large)


@pytest.mark.parametrize("level", ["disable", "all"])
def test_weights_that_lie_elsewhere_are_found(level):
    text = """g (float[N] x, bool c) => (float[N] y) {
        k = Constant<value = float[1] {0}>() a = Add(x, k) b = Add(a, w)
        y = If(c) <then_branch = t () => (float[N] p) { p = Add(b, inner) },
                   else_branch = e () => (float[N] q) { q = Neg(b) }>
    }"""
    weight = np.arange(2000, dtype=np.float32)
    model = parse_model(HEADER + text)
    model.graph.node[0].attribute[0].t.CopyFrom(numpy_helper.from_array(weight, "k"))
    model.graph.initializer.append(numpy_helper.from_array(weight, "w"))
    model.graph.node[3].attribute[0].g.initializer.append(numpy_helper.from_array(weight, "inner"))
    lean = slim(Model(model))
    assert len(lean.proto.SerializeToString()) < 2000
    result = find(f"onnxruntime:opt={level}").run(lean, {"x": weight, "c": np.array(True)})
    assert result.ok, result.message
    assert result.outputs["y"].tolist() == (4 * weight).tolist()


# --- failures


def test_a_missing_file_of_weights_is_an_error(tmp_path):
    model = parse_model(HEADER + "g (float[2] x) => (float[2] y) { y = Add(x, w) }")
    tensor = TensorProto(name="w", data_type=1, dims=[2], data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value="nowhere.bin")
    model.graph.initializer.append(tensor)
    result = find("onnxruntime").run(Model(model, tmp_path), {"x": X})
    assert (result.kind, result.phase) == ("error", "load")


def test_a_hang_and_a_cap_are_outcomes():
    loop = """g (float[2] x) => (float[2] y) <int64 n = {9000000000000}, bool go = {1}> {
        y = Loop(n, go, x) <body = b (int64 i, bool k, float[2] v) => (bool k2, float[2] v2) {
            k2 = Identity(k) v2 = Neg(v) }>
    }"""
    assert run(loop, {"x": X}, limits=Limits(timeout=1)).kind == "timeout"
    big = """g (float[1] x) => (float y) <int64[1] n = {400000000}> {
        a = Expand(x, n) b = Neg(a) y = ReduceSum<keepdims = 0>(b)
    }"""
    assert run(big, {"x": X[:1]}, limits=Limits(memory=700 << 20)).kind == "memory"


def named(text, *node_names):
    model = parse_model(HEADER + text)
    for node, name in zip(model.graph.node, node_names, strict=False):
        node.name = name
    return model


@pytest.mark.parametrize("name", ["culprit", "/layer1/Reshape (copy)", "a.b:c"])
@pytest.mark.parametrize(
    "text, feeds, kind, phase",
    [
        ("g (float[N] x) => (float[M] y) <int64[1] s = {7}> { y = Reshape(x, s) }", {"x": X}, "error", "run"),
        ("g (int8[2] x) => (int8[2] y) { y = Sin(x) }", {"x": X.astype(np.int8)}, "error", "load"),
        ("g (int4[2] x) => (int4[2] y) { y = Identity(x) }", {"x": X.astype(ml_dtypes.int4)}, "unsupported", "load"),
        ("g (float[2] x) => (float[2] y) { y = Nonsense(x) }", {"x": X}, "error", "load"),
        ("g (float[2] x) => (float[2] y) { y = Add(x) }", {"x": X}, "error", "load"),
        ("g (float[2] x, float[3] z) => (float[2] y) { y = Add(x, z) }", {"x": X, "z": X}, "error", "load"),
        (
            "g (float[N] x, float[M] z) => (float[L] y) { y = Add(x, z) }",
            {"x": X, "z": np.ones(3, np.float32)},
            "error",
            "run",
        ),
    ],
)
def test_the_node_in_a_message_is_found(text, feeds, kind, phase, name):
    result = run(named(text, name), feeds)
    assert (result.kind, result.phase) == (kind, phase), result.message
    assert result.node == name, result.message


def test_a_message_without_a_node_names_none():
    runtime = find("onnxruntime")
    assert runtime.explain(Outcome("error", message="no such thing")).node == ""
    assert runtime.explain(Outcome("crash", signal="SIGSEGV")).node == ""


# --- scripts and other environments


def test_the_script_computes_the_same(tmp_path):
    place = tmp_path / "m.onnx"
    onnx.save(parse_model(IDENTITY_DIV_MUL), place)
    for spec in (
        "onnxruntime:opt=disable,threads=1",
        "onnxruntime:disable=EliminateIdentity,session.session.disable_prepacking=1",
    ):
        names = {"phase": lambda name: None}
        exec(find(spec).script(), names)
        assert names["run"](str(place), {"x": X})["y"].tolist() == [1, -2]
        assert onnxruntime.__version__ in names["version"]()


@pytest.fixture(scope="session")
def venv(tmp_path_factory):
    """Another environment, which borrows the packages of this one but not onnxbench."""
    folder = tmp_path_factory.mktemp("environments") / "other"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True, stdin=subprocess.DEVNULL)
    (site,) = folder.glob("lib/python*/site-packages")
    (site / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return folder


@pytest.fixture(scope="session")
def empty_venv(tmp_path_factory):
    folder = tmp_path_factory.mktemp("environments") / "empty"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True, stdin=subprocess.DEVNULL)
    return folder


def test_another_environment_runs_the_model(venv):
    runtime = find(f"onnxruntime@{venv}:opt=disable")
    assert runtime.interpreter.foreign
    assert runtime.version() == onnxruntime.__version__
    result = run("g (bfloat16[2] x) => (bfloat16[2] y) { y = Identity(x) }", {"x": BF16}, str(runtime))
    assert result.outputs["y"].tolist() == [1, -2]
    assert str(runtime.plain() or runtime).startswith(f"onnxruntime@{venv}")


def test_an_environment_without_it_says_how_to_get_it(empty_venv):
    with pytest.raises(MachineError) as caught:
        find(f"onnxruntime@{empty_venv}").version()
    assert caught.value.code == "OB401"
    assert f"{empty_venv}/bin/pip install onnxruntime" in caught.value.hint
    result = run(NEG, {"x": X}, f"onnxruntime@{empty_venv}")
    assert result.kind == "error"


def test_an_environment_that_is_not_there_is_said(tmp_path):
    with pytest.raises(MachineError, match="no Python in") as caught:
        find(f"onnxruntime@{tmp_path}")
    assert caught.value.code == "OB401"


def test_an_interpreter_may_be_named_itself(venv):
    assert find(f"onnxruntime@{venv / 'bin' / 'python'}").version() == onnxruntime.__version__


def test_element_types_are_those_of_onnx():
    for word in ("bfloat16", "float8_e4m3fn", "int4"):
        dtype = np.dtype(getattr(ml_dtypes, word))
        assert helper.np_dtype_to_tensor_dtype(dtype) in (*ort_session.packing.CARRIERS, *ort_session.packing.BITS)


@pytest.mark.parametrize("code", [16, 17, 20, 21, 22])
def test_the_script_takes_and_gives_types_that_numpy_lacks(tmp_path, code):
    kind = {16: "bfloat16", 17: "float8e4m3fn", 20: "float8e5m2fnuz", 21: "uint4", 22: "int4"}[code]
    onnx.save(
        parse_model(
            f"""<ir_version: 10, opset_import: ["": 21]>
            g ({kind}[3] a, float[3] x) => (float[3] b, {kind}[3] y) {{ b = Cast <to = 1> (a) y = Cast <to = {code}> (x) }}"""
        ),
        tmp_path / "m.onnx",
    )
    x = np.array([1, 2, 3], np.float32)
    held = {"phase": lambda name: None}
    exec(find("onnxruntime").script(), held)
    found = held["run"](str(tmp_path / "m.onnx"), {"a": x.astype(onnx.helper.tensor_dtype_to_np_dtype(code)), "x": x})
    assert found["b"].tolist() == [1, 2, 3]
    assert found["y"].astype(np.float32).tolist() == [1, 2, 3]
    assert found["y"].dtype == onnx.helper.tensor_dtype_to_np_dtype(code)
