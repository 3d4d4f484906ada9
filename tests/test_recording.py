"""Every value of a run is recorded, whatever single nodes do."""

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from onnx.parser import parse_model

from onnxbench import recording
from onnxbench.core.graph import GraphView
from onnxbench.core.model import Model
from onnxbench.core.types import infer
from onnxbench.core.weights import slim
from onnxbench.recording import record
from onnxbench.runtimes.base import Limits
from onnxbench.runtimes.find import find

HEADER = '<ir_version: 10, opset_import: ["": 21, "loc": 1]>'
X = np.array([0.5, -2], np.float32)

FAULTY = """
import os, time
import onnx, onnxruntime

def run(model, feeds):
    proto = onnx.ModelProto.FromString(model)
    operators = {node.op_type for node in proto.graph.node}
    if "Sin" in operators:
        os.abort()
    if "Cos" in operators:
        raise ValueError("no cosine today")
    if "Tan" in operators:
        time.sleep(600)
    names = [value.name for value in proto.graph.output]
    return dict(zip(names, onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"]).run(names, feeds)))
"""


@pytest.fixture
def plain():
    return find("onnxruntime:opt=disable")


@pytest.fixture
def faulty(tmp_path):
    """A runtime that dies of Sin, raises at Cos and hangs at Tan."""
    (tmp_path / "faulty_runtime.py").write_text(FAULTY)
    return find(f"python:{tmp_path / 'faulty_runtime.py'}:run")


@pytest.fixture
def recorded(tmp_path):
    """Record a model's main graph, given as text; what is known are its inputs."""

    def make(text, runtimes, known, **options):
        model = Model(parse_model(HEADER + text) if isinstance(text, str) else text)
        view = GraphView(model.proto, model.proto.graph)
        options = {"types": infer(model), "workspace": tmp_path, **options}
        return record(runtimes, model, view, known, **options)

    return make


def exposed(plain, text, known):
    """The values of a run with every output exposed."""
    model = parse_model(HEADER + text)
    names = [name for node in model.graph.node for name in node.output if name]
    del model.graph.output[:]
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
    outcome = plain.run(Model(model), known)
    assert outcome.ok, outcome.message
    return outcome.outputs


STEPS = ["Exp", "Abs", "Sigmoid", "Neg", "Tanh", "Softsign"]
LONG = "g (float[2] v0) => (float[2] v700) {{ {} }}".format(
    " ".join(f"v{i + 1} = {STEPS[i % 6]}(v{i})" for i in range(700))
)


def test_values_are_those_of_a_run_with_everything_exposed(recorded, plain):
    done = []
    result = recorded(LONG, [plain], {"v0": X}, progress=lambda n, total: done.append((n, total)))
    want = exposed(plain, LONG, {"v0": X})
    assert set(result.values) == {"v0", *want}
    assert all(result.values[name].tobytes() == want[name].tobytes() for name in want)
    assert result.missing == {}
    assert done == [(256, 700), (512, 700), (700, 700)]


@pytest.mark.parametrize("operator", ["Sin", "Cos"])
def test_only_a_node_that_fails_and_its_dependents_are_missing(recorded, faulty, operator):
    text = f"""g (float[2] x) => (float[2] y, float[2] z) {{
        a = Neg(x) b = {operator}(a) c = Abs(b) d = Exp(a) e = Sqrt(d) z = Neg(e) y = Add(c, d)
    }}"""
    result = recorded(text, [faulty], {"x": X})
    assert set(result.values) == {"x", "a", "d", "e", "z"}
    assert set(result.missing) == {1, 2, 6}
    assert ("SIGABRT" if operator == "Sin" else "no cosine today") in result.missing[1]
    assert "'b'" in result.missing[2]
    assert np.allclose(result.values["z"], -np.sqrt(np.exp(-X)))


def test_a_node_that_hangs_is_found_with_a_short_patience(recorded, faulty):
    text = "g (float[2] x) => (float[2] y) { a = Neg(x) b = Exp(a) c = Tan(b) d = Abs(b) y = Add(c, d) }"
    result = recorded(text, [faulty], {"x": X}, hangs=True, limits=Limits(timeout=15))
    assert set(result.values) == {"x", "a", "b", "d"}
    assert set(result.missing) == {2, 4}
    assert "does not answer" in result.missing[2]


def test_the_next_runtime_helps_out_and_nothing_is_missing(recorded, faulty, plain):
    text = "g (float[2] x) => (float[2] y) { a = Neg(x) b = Cos(a) c = Sin(b) y = Abs(c) }"
    result = recorded(text, [faulty, plain], {"x": X})
    assert np.allclose(result.values["y"], np.abs(np.sin(np.cos(-X))))
    assert result.missing == {}


def test_where_every_runtime_fails_the_reason_is_told(recorded, faulty):
    text = "g (float[2] x) => (float[2] y) { y = Cos(x) }"
    result = recorded(text, [faulty, faulty], {"x": X})
    assert "no cosine today" in result.missing[0]


def test_large_values_lie_in_files_and_are_right(recorded, plain, tmp_path):
    large = np.arange(300_000, dtype=np.float32)
    text = "g (float[N] x) => (float y) { a = Neg(x) b = Abs(a) c = Sub(b, a) y = ReduceMax<keepdims = 0>(c) }"
    result = recorded(text, [plain], {"x": large})
    assert isinstance(result.values["c"], np.memmap)
    assert np.array_equal(result.values["b"], large)
    assert np.array_equal(result.values["c"], 2 * large)
    assert result.values["y"] == 2 * large[-1]
    assert list(tmp_path.glob("values-*"))


def test_large_values_feed_later_nodes_from_their_files(recorded, plain, monkeypatch):
    monkeypatch.setattr(recording, "CHUNK", 1)
    large = np.arange(300_000, dtype=np.float32)
    text = "g (float[N] x) => (float[M] y) { a, b = Split<num_outputs = 2>(x) c = Add(a, b) y = Neg(c) }"
    result = recorded(text, [plain], {"x": large})
    assert np.array_equal(result.values["y"], -(large[:150_000] + large[150_000:]))


def test_sequences_strings_and_optionals_are_recorded(recorded, plain):
    text = """g (float[N] x, string[2] s) => (float[M] y) {
        q = SequenceConstruct(x, x) t = StringConcat(s, s) o = Optional(x) e = Optional<type = float[2]>()
        h = OptionalHasElement(o) y = ConcatFromSequence<axis = 0>(q)
    }"""
    result = recorded(text, [plain], {"x": X, "s": np.array(["a", "b"], object)})
    assert [v.tolist() for v in result.values["q"]] == [X.tolist(), X.tolist()]
    assert result.values["t"].tolist() == ["aa", "bb"]
    assert result.values["h"].tolist() is True
    assert result.values["y"].tolist() == [*X.tolist(), *X.tolist()]


def test_initializers_need_not_be_known_and_overridden_ones_count(recorded, plain):
    text = """g (float[2] x, float[2] o) => (float[2] y) <float[2] w = {1, 2}, float[2] o = {3, 4}> {
        a = Add(x, w) y = Mul(a, o)
    }"""
    assert recorded(text, [plain], {"x": X}).values["y"].tolist() == (np.add(X, [1, 2]) * [3, 4]).tolist()
    known = {"x": X, "o": np.array([10, 20], np.float32)}
    assert recorded(text, [plain], known).values["y"].tolist() == (np.add(X, [1, 2]) * [10, 20]).tolist()


def test_an_unknown_input_is_named(recorded, plain):
    result = recorded("g (float[2] x, float[2] z) => (float[2] y) { a = Neg(x) y = Add(a, z) }", [plain], {"x": X})
    assert set(result.values) == {"x", "a"}
    assert "'z'" in result.missing[1]


def test_weights_that_lie_elsewhere_are_found(plain, tmp_path):
    model = parse_model(HEADER + "g (float[N] x) => (float[N] y) { a = Neg(x) y = Add(a, w) }")
    weight = np.arange(2000, dtype=np.float32)
    model.graph.initializer.append(numpy_helper.from_array(weight, "w"))
    lean = slim(Model(model))
    result = record([plain], lean, GraphView(lean.proto, lean.proto.graph), {"x": weight}, workspace=tmp_path)
    assert result.missing == {}
    assert not result.values["y"].any()


def test_a_python_function_gets_weights_that_lie_elsewhere(faulty, tmp_path):
    model = parse_model(HEADER + "g (float[N] x) => (float[N] y) { a = Neg(x) y = Add(a, w) }")
    weight = np.arange(2000, dtype=np.float32)
    model.graph.initializer.append(numpy_helper.from_array(weight, "w"))
    lean = slim(Model(model))
    result = record([faulty], lean, GraphView(lean.proto, lean.proto.graph), {"x": weight}, workspace=tmp_path)
    assert result.missing == {}
    assert not result.values["y"].any()


def test_bodies_and_functions_are_recorded(plain, tmp_path):
    model = Model(
        parse_model(
            HEADER
            + """
    g (float[2] x, bool c) => (float[2] y) <float[2] w = {1, 2}> {
        a = loc.Scale<by = 3.0>(x)
        y = If(c) <then_branch = t () => (float[2] p) { q = Add(a, w) p = Neg(q) },
                   else_branch = e () => (float[2] s) { s = Identity(a) }>
    }
    <domain: "loc", opset_import: ["": 13]>
    Scale <by: float = 2.0> (u) => (v) { k = Constant<value_float: float = @by>() v = Mul(u, k) }
    """
        )
    )
    view = GraphView(model.proto, model.proto.graph)
    types = infer(model)
    function = view.call(view.nodes[0])
    inside = record([plain], model, function, {"u": X}, workspace=tmp_path, types=types)
    assert inside.values["v"].tolist() == (3 * X).tolist()
    body = view.bodies(view.nodes[1])[0][1]
    inside = record([plain], model, body, {"a": 3 * X}, workspace=tmp_path, types=types)
    assert inside.values["p"].tolist() == (-(3 * X + [1, 2])).tolist()
    assert inside.missing == {}


def test_a_graph_s_name_is_no_obstacle(recorded, plain):
    model = parse_model(HEADER + "g (float[N] x) => (float[N] y) { a = Neg(x) y = Neg(a) }")
    model.graph.name = "../a\0b\n" + "\u00e4" * 50
    large = np.arange(100_000, dtype=np.float32)
    assert np.array_equal(recorded(model, [plain], {"x": large}).values["y"], large)
