"""A piece of a graph is a valid model of its own, and computes what the whole computes there."""

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper
from onnx.parser import parse_model

from onnxbench.core.graph import GraphView
from onnxbench.core.model import Model, load
from onnxbench.core.subgraph import carve, sinks, used_functions
from onnxbench.core.types import infer
from onnxbench.core.weights import slim
from onnxbench.errors import AnswerIsNo, ModelError

HEADER = '<ir_version: 10, opset_import: ["": 21, "loc": 1]>'
X = np.array([0.5, -2], np.float32)


def run(proto, feeds, names=None, folder=None):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    if folder is not None:
        options.add_session_config_entry("session.model_external_initializers_file_folder_path", str(folder))
    session = onnxruntime.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
    names = names or [value.name for value in session.get_outputs()]
    return dict(zip(names, session.run(names, feeds), strict=True))


def all_values(view, feeds):
    """Every value of the main graph, from a run with all of them exposed."""
    exposed = onnx.ModelProto()
    exposed.CopyFrom(view.model)
    del exposed.graph.output[:]
    exposed.graph.output.extend(onnx.ValueInfoProto(name=name) for name in view.producer)
    return {**feeds, **run(exposed, feeds)}


def cut(text, chosen, known=None, *, header=HEADER, **options):
    """The piece of the nodes that make the named values."""
    model = Model(parse_model(header + text) if isinstance(text, str) else text)
    view = GraphView(model.proto, model.proto.graph)
    piece = carve(model, view, [view.producer[name] for name in chosen], known or {}, **options)
    return piece, piece.model.proto.graph


def names(values):
    return [value.name for value in values]


CHAIN = """
g (float[N] x, float[N] o) => (float[N] y) <float[1] w = {3}, float[1] o = {4}, float[N] b, float[N] c> {
    k = Neg(w)
    a = Add(x, w)
    b = Mul(a, k)
    c = Add(b, o)
    y = Abs(c)
}"""


def test_a_piece_has_what_it_needs_and_no_more():
    piece, graph = cut(CHAIN, ["b", "c"], {"a": X, "k": np.array([-3], np.float32)})
    assert [node.op_type for node in graph.node] == ["Mul", "Add"]
    assert names(graph.input) == ["o", "a"]
    assert names(graph.initializer) == ["o", "k"] or names(graph.initializer) == ["k", "o"]
    assert names(graph.output) == ["c"]
    assert piece.origin == (2, 3)
    assert list(piece.feeds) == ["a"]
    assert piece.missing == ()
    onnx.checker.check_model(piece.model.proto, full_check=True)
    assert run(piece.model.proto, piece.feeds)["c"].tolist() == (X * -3 + 4).tolist()


def test_an_unknown_cut_edge_is_an_input_that_is_missing():
    piece, graph = cut(CHAIN, ["b"])
    assert set(names(graph.input)) == {"a", "k"}
    assert piece.missing == ("a", "k")
    assert piece.feeds == {}


def test_an_overridable_initializer_stays_one():
    piece, graph = cut(CHAIN, ["c"], {"b": X, "o": np.array([7], np.float32)})
    assert names(graph.initializer) == ["o"]
    assert "o" in names(graph.input)
    assert run(piece.model.proto, piece.feeds)["c"].tolist() == (X + 7).tolist()
    piece, _ = cut(CHAIN, ["c"], {"b": X})
    assert run(piece.model.proto, piece.feeds)["c"].tolist() == (X + 4).tolist()


def test_types_that_the_file_declares_stay_symbolic():
    _, graph = cut(CHAIN, ["c", "y"], {"b": X})
    declared = {value.name: value for value in (*graph.input, *graph.output, *graph.value_info)}
    assert all(declared[n].type.tensor_type.shape.dim[0].dim_param == "N" for n in ("b", "c", "y"))


def test_a_type_told_by_a_value_is_static_unless_told_otherwise():
    for static, dim in ((True, 2), (False, 0)):
        _, graph = cut(CHAIN, ["b"], {"a": X}, static=static)
        assert graph.input[0].type.tensor_type.shape.dim[0].dim_value == dim


def test_an_empty_selection_is_refused():
    with pytest.raises(AnswerIsNo) as caught:
        cut(CHAIN, [])
    assert caught.value.code == "OB102"


def test_a_value_that_no_graph_makes_is_refused_by_name():
    with pytest.raises(AnswerIsNo, match="'nowhere'") as caught:
        cut("g (float[2] x) => (float[2] y) { y = Add(x, nowhere) }", ["y"])
    assert caught.value.code == "OB102"


# --- constants and cuts


def test_a_large_constant_becomes_an_input():
    text = "g (float[N] x) => (float[N] y) <float w = {2}, int64[1] n = {300000}> { k = Expand(w, n) y = Add(x, k) }"
    large = np.full(300_000, 2, np.float32)
    piece, graph = cut(text, ["y"], {"x": large, "k": large})
    assert "k" in names(graph.input)
    assert piece.feeds["k"] is large
    _, graph = cut(text, ["y"], {"x": large, "k": large}, cuts={"k": "constant"})
    assert names(graph.initializer) == ["k"]


def test_cuts_overrule():
    known = {"a": X, "k": np.array([-3], np.float32)}
    piece, graph = cut(CHAIN, ["b"], known, cuts={"a": "constant", "k": "input"})
    assert (names(graph.initializer), names(graph.input)) == (["a"], ["k"])
    assert list(piece.feeds) == ["k"]
    assert run(piece.model.proto, piece.feeds)["b"].tolist() == (X * -3).tolist()


def test_an_initializer_may_be_cut_to_an_input_that_is_fed_with_it():
    piece, graph = cut(CHAIN, ["a"], {"x": X, "a": X}, cuts={"w": "input"})
    assert set(names(graph.input)) == {"x", "w"}
    assert list(graph.initializer) == []
    assert piece.missing == ()
    onnx.checker.check_model(piece.model.proto, full_check=True)
    assert run(piece.model.proto, piece.feeds)["a"].tolist() == (X + 3).tolist()


@pytest.mark.parametrize("known", [{}, {"o": np.array([7], np.float32)}])
def test_an_overridable_initializer_may_be_cut_to_a_constant(known):
    piece, graph = cut(CHAIN, ["c"], {"b": X, **known}, cuts={"o": "constant"})
    assert names(graph.input) == ["b"]
    assert run(piece.model.proto, piece.feeds)["c"].tolist() == (X + (7 if known else 4)).tolist()


def test_before_ir_4_every_initializer_is_an_input_too():
    header = '<ir_version: 3, opset_import: ["": 8]>'
    text = """g (float[2] x, float[2] w) => (float[2] y) <float[2] w = {1, 2}> {
        k = Neg(w) a = Add(x, k) y = Add(a, w)
    }"""
    piece, graph = cut(text, ["a", "y"], {"x": X, "k": np.array([-1, -2], np.float32)}, header=header)
    assert set(names(graph.input)) == {"x", "k", "w"}
    assert set(names(graph.initializer)) == {"k", "w"}
    onnx.checker.check_model(piece.model.proto, full_check=True)
    assert run(piece.model.proto, piece.feeds)["y"].tolist() == X.tolist()


def test_before_ir_4_an_initializer_of_a_body_becomes_an_input_too():
    model = Model(
        parse_model("""<ir_version: 3, opset_import: ["": 8]>
    g (float[2] x, bool c) => (float[2] y) {
        y = If(c) <then_branch = t () => (float[2] p) <float[2] w = {1, 2}> { p = Add(x, w) },
                   else_branch = e () => (float[2] q) { q = Neg(x) }>
    }""")
    )
    view = GraphView(model.proto, model.proto.graph)
    body = view.bodies(view.nodes[0])[0][1]
    piece = carve(model, body, body.nodes, {"x": X})
    onnx.checker.check_model(piece.model.proto, full_check=True)
    assert run(piece.model.proto, piece.feeds)["p"].tolist() == np.add(X, [1, 2]).tolist()


def test_sparse_initializers_come_along():
    model = parse_model(HEADER + "g (float[3] x) => (float[3] y) { y = Add(x, s) }")
    sparse = model.graph.sparse_initializer.add(dims=[3])
    sparse.values.CopyFrom(numpy_helper.from_array(np.array([5], np.float32), "s"))
    sparse.indices.CopyFrom(numpy_helper.from_array(np.array([1], np.int64), "i"))
    piece, graph = cut(model, ["y"], {"x": np.ones(3, np.float32)})
    assert len(graph.sparse_initializer) == 1
    assert run(piece.model.proto, piece.feeds)["y"].tolist() == [1, 6, 1]


@pytest.mark.parametrize(
    "value",
    [
        np.array(["a", "ö"], object),
        np.array([1, -2], ml_dtypes.bfloat16),
        np.array([1, -2], ml_dtypes.float8_e4m3fn),
        np.array([1, -2, 7], ml_dtypes.int4),
        np.array(3.0, np.float32),
        np.zeros((0, 2), np.float32),
    ],
    ids=str,
)
@pytest.mark.parametrize("how", ["input", "constant"])
def test_values_of_any_type_cross_the_border(value, how):
    model = parse_model(HEADER + "g (float[2] x) => (float[2] y) { k = Abs(x) y = Identity(k) }")
    model.graph.output[0].ClearField("type")
    piece, graph = cut(model, ["y"], {"k": value}, cuts={"k": how})
    if how == "input":
        assert piece.feeds["k"] is value
        code, dims = graph.input[0].type.tensor_type.elem_type, graph.input[0].type.tensor_type.shape.dim
        assert [d.dim_value for d in dims] == list(value.shape)
    else:
        back = numpy_helper.to_array(graph.initializer[0])
        code = graph.initializer[0].data_type
        assert back.tolist() == value.tolist()
    assert code == (TensorProto.STRING if value.dtype == object else helper.np_dtype_to_tensor_dtype(value.dtype))


def test_sequences_cross_the_border():
    text = "g (float[N] x) => (float[M] y) { s = SequenceConstruct(x, x) y = ConcatFromSequence<axis = 0>(s) }"
    piece, graph = cut(text, ["y"], {"s": [X, np.ones(3, np.float32)]})
    assert graph.input[0].type.sequence_type.elem_type.tensor_type.elem_type == TensorProto.FLOAT
    onnx.checker.check_model(piece.model.proto, full_check=True)
    assert run(piece.model.proto, piece.feeds)["y"].tolist() == [*X.tolist(), 1, 1, 1]


# --- nodes


def test_empty_optional_inputs_stay_empty():
    piece, graph = cut(
        "g (float[2] x) => (float[2] y) <float m = {0}> { a = Neg(x) y = Clip(a, , m) }", ["y"], {"a": X}
    )
    assert list(graph.node[0].input) == ["a", "", "m"]
    assert names(graph.input) == ["a"]
    assert run(piece.model.proto, piece.feeds)["y"].tolist() == [0, -2]


def test_outputs_that_nobody_reads_are_not_exposed():
    text = """g (float[4] x) => (float[2] y) {
        a, b = Split<num_outputs = 2>(x) c, d = Split<num_outputs = 2>(a) y = Add(b, b)
    }"""
    _, graph = cut(text, ["a"], {"x": np.ones(4, np.float32)})
    assert names(graph.output) == ["a", "b"]
    _, graph = cut(text, ["c"], {"a": X})
    assert names(graph.output) == ["c"]
    _, graph = cut(text, ["a"], {"x": np.ones(4, np.float32)}, outputs=["b"])
    assert names(graph.output) == ["b"]


def test_sinks_are_what_leaves_and_is_not_read_inside():
    model = parse_model(
        HEADER
        + """
    g (float[2] x) => (float[2] y, float[2] a) { a = Neg(x) b = Abs(a) dead = Sin(a) y = Add(a, b) }"""
    )
    view = GraphView(model, model.graph)
    a, b, dead, y = view.nodes
    assert sinks(view, [a]) == ["a"]
    assert sinks(view, [a, b]) == ["b"]
    assert sinks(view, [a, dead]) == ["dead"]
    assert sinks(view, [a, b, dead, y]) == ["dead", "y"]
    assert sinks(view, [dead]) == ["dead"]


def test_an_unsorted_file_gives_a_sorted_piece():
    text = "g (float[2] x) => (float[2] y) { y = Neg(b) b = Abs(a) a = Sin(x) }"
    piece, graph = cut(text, ["y", "b", "a"], {"x": X})
    assert [node.op_type for node in graph.node] == ["Sin", "Abs", "Neg"]
    assert piece.origin == (2, 1, 0)
    onnx.checker.check_model(piece.model.proto, full_check=True)


def test_inputs_keep_their_order():
    text = "g (float[2] p, float[2] q, float[2] r) => (float[2] y) { a = Neg(p) b = Add(r, q) y = Add(b, p) }"
    _, graph = cut(text, ["b", "y"], {})
    assert names(graph.input) == ["p", "q", "r"]


def test_names_that_are_not_utf8_are_refused_at_load(tmp_path):
    data = parse_model(HEADER + "g (float[2] x) => (float[2] yyyy) { yyyy = Neg(x) }").SerializeToString()
    (tmp_path / "m.onnx").write_bytes(data.replace(b"yyyy", b"y\xff\xfey"))
    with pytest.raises(ModelError):
        load(tmp_path / "m.onnx")


# --- what comes along


def test_the_header_metadata_and_annotations_come_along():
    model = parse_model(
        '<ir_version: 9, opset_import: ["": 19, "com.microsoft": 1], producer_name: "p", producer_version: "1",'
        ' domain: "d", model_version: 7, doc_string: "doc", metadata_props: ["k": "v"]>'
        "graph_name (float[2] x) => (float[2] y) <float[2] a> { a = Neg(x) b = Abs(a) y = Sin(b) }"
    )
    model.graph.doc_string = "graph doc"
    model.graph.metadata_props.add(key="g", value="1")
    model.graph.node[0].metadata_props.add(key="stack", value="model.py:12")
    model.graph.node[0].doc_string = "node doc"
    for name in ("a", "y"):
        model.graph.quantization_annotation.add(tensor_name=name)
    piece, graph = cut(model, ["a", "b"], {"x": X})
    made = piece.model.proto
    assert (made.ir_version, made.producer_name, made.producer_version) == (9, "p", "1")
    assert (made.domain, made.model_version, made.doc_string) == ("d", 7, "doc")
    assert made.metadata_props == model.metadata_props
    assert made.opset_import == model.opset_import
    assert (graph.name, graph.doc_string, graph.metadata_props[0].key) == ("graph_name", "graph doc", "g")
    assert graph.node[0] == model.graph.node[0]
    assert [a.tensor_name for a in graph.quantization_annotation] == ["a"]
    assert names(graph.value_info) == ["a"]


def test_the_source_is_not_changed():
    model = parse_model(HEADER + CHAIN)
    before = model.SerializeToString()
    cut(model, ["b", "c"], {"a": X}, cuts={"w": "input"})
    assert model.SerializeToString() == before


def test_weights_that_lie_elsewhere_stay_there():
    model = parse_model(HEADER + "g (float[N] x) => (float[N] y) { a = Neg(x) y = Add(a, w) }")
    weight = np.arange(2000, dtype=np.float32)
    model.graph.initializer.append(numpy_helper.from_array(weight, "w"))
    lean = slim(Model(model))
    view = GraphView(lean.proto, lean.proto.graph)
    piece = carve(lean, view, [view.nodes[1]], {"a": weight})
    assert piece.model.proto.graph.initializer[0].data_location == TensorProto.EXTERNAL
    assert len(piece.model.proto.SerializeToString()) < 1000
    assert run(piece.model.proto, piece.feeds, folder=piece.model.folder)["y"].tolist() == (2 * weight).tolist()
    as_input = carve(lean, view, [view.nodes[1]], {"a": weight}, cuts={"w": "input"})
    assert as_input.feeds["w"].tolist() == weight.tolist()


# --- bodies and functions


NESTED = """
g (float[2] x, bool c) => (float[2] y) <float[2] w = {1, 2}> {
    a = Neg(x)
    v = Abs(w)
    y = If(c) <then_branch = t () => (float[2] p) <float[2] k = {5, 6}> { q = Add(a, v) r = Mul(q, k) p = Add(r, w) },
               else_branch = e () => (float[2] s) { s = Neg(a) }>
}"""


def test_a_node_with_bodies_brings_what_they_capture():
    piece, graph = cut(NESTED, ["y"], {"a": X, "c": np.array(True), "v": np.array([1, 2], np.float32)})
    assert set(names(graph.input)) == {"c", "a"}
    assert set(names(graph.initializer)) == {"v", "w"}
    onnx.checker.check_model(piece.model.proto, full_check=True)
    assert run(piece.model.proto, piece.feeds)["y"].tolist() == (np.add(X, [1, 2]) * [5, 6] + [1, 2]).tolist()


def test_a_piece_of_a_body():
    model = Model(parse_model(HEADER + NESTED))
    view = GraphView(model.proto, model.proto.graph)
    body = view.bodies(view.nodes[2])[0][1]
    known = {"a": X, "v": np.array([1, 2], np.float32)}
    piece = carve(model, body, body.nodes, known, types=infer(model))
    graph = piece.model.proto.graph
    assert names(graph.input) == ["a"]
    assert set(names(graph.initializer)) == {"v", "k", "w"}
    onnx.checker.check_model(piece.model.proto, full_check=True)
    assert run(piece.model.proto, piece.feeds)["p"].tolist() == (np.add(X, [1, 2]) * [5, 6] + [1, 2]).tolist()


def test_a_piece_of_a_loop_body():
    model = Model(
        parse_model(
            HEADER
            + """
    g (int64 n, bool go, float[2] x, float[2] w) => (float[2] y) {
        y = Loop(n, go, x) <body = b (int64 i, bool k, float[2] v) => (bool k2, float[2] v2) {
            k2 = Identity(k) f = Cast<to = 1>(i) g = Mul(f, w) v2 = Add(v, g) }>
    }"""
        )
    )
    view = GraphView(model.proto, model.proto.graph)
    body = view.bodies(view.nodes[0])[0][1]
    known = {"i": np.array(3), "v": X, "w": np.ones(2, np.float32), "k": np.array(True)}
    piece = carve(model, body, body.nodes[1:], known)
    assert names(piece.model.proto.graph.input) == ["i", "v", "w"]
    onnx.checker.check_model(piece.model.proto, full_check=True)
    assert run(piece.model.proto, piece.feeds)["v2"].tolist() == (X + 3).tolist()


FUNCTIONS = """
g (float[N] x) => (float[N] y) <float[N] z> { a = Neg(x) b = loc.Scale<by = 3.0>(a) z = loc.Plain(b) y = Identity(z) }
<domain: "loc", opset_import: ["": 13, "loc": 1]>
Scale <by: float = 2.0> (x) => (y) {
    k = Constant<value_float: float = @by>() a = Cast<to = 7>(x) z = loc.Half(a) f = Cast<to = 1>(z) y = Mul(f, k)
}
<domain: "loc", opset_import: ["": 21]>
Half (x) => (y) { two = Constant<value = int64 {2}>() y = Div(x, two) }
<domain: "loc", opset_import: ["": 21]>
Plain (x) => (y) { y = Abs(x) }
<domain: "loc", opset_import: ["": 21]>
Unused (x) => (y) { y = Abs(x) }
"""


def test_only_the_functions_that_are_called_come_along():
    known = {"a": np.array([5, -9], np.float32), "b": np.array([6, -12], np.float32)}
    piece, _ = cut(FUNCTIONS, ["b"], known)
    assert [f.name for f in piece.model.proto.functions] == ["Scale", "Half"]
    assert run(piece.model.proto, piece.feeds)["b"].tolist() == [6, -12]
    piece, _ = cut(FUNCTIONS, ["a"], {"x": X})
    assert list(piece.model.proto.functions) == []


def test_functions_that_bodies_call_come_along():
    text = FUNCTIONS.replace(
        "y = Identity(z)",
        """y = Loop(, , z) <body = l (int64 i, bool k, float[N] v) => (bool k2, float[N] v2)
        { k2 = Identity(k) v2 = loc.Scale(v) }>""",
    )
    model = parse_model(HEADER + text)
    view = GraphView(model, model.graph)
    assert [f.name for f in used_functions(view, model.graph)] == ["Scale", "Half", "Plain"]
    piece, _ = cut(text, ["y"])
    assert [f.name for f in piece.model.proto.functions] == ["Scale", "Half"]


def test_a_piece_of_a_function_has_its_opset_and_the_call_s_attributes():
    model = Model(parse_model(HEADER + FUNCTIONS))
    view = GraphView(model.proto, model.proto.graph)
    inner = view.call(view.nodes[1])
    by_output = inner.producer
    piece = carve(model, inner, [by_output["k"], by_output["y"]], {"f": X}, types=infer(model))
    proto = piece.model.proto
    assert {e.domain: e.version for e in proto.opset_import} == {"": 13, "loc": 1}
    assert run(proto, piece.feeds)["y"].tolist() == (3 * X).tolist()


def test_types_of_the_main_graph_say_nothing_of_a_function():
    """`z` and `a` are floats outside and integers in the function."""
    model = Model(parse_model(HEADER + FUNCTIONS))
    view = GraphView(model.proto, model.proto.graph)
    inner = view.call(view.nodes[1])
    piece = carve(model, inner, [inner.producer["z"]], {"a": np.array([8, 5])}, types=infer(model))
    graph = piece.model.proto.graph
    assert graph.input[0].type.tensor_type.elem_type == TensorProto.INT64
    assert run(piece.model.proto, piece.feeds)["z"].tolist() == [4, 2]


# --- properties


UNARY = ["Neg", "Abs", "Sin", "Tanh", "Relu", "Identity"]
BINARY = ["Add", "Sub", "Mul", "Max"]


@st.composite
def cuttings(draw):
    """A random graph of elementwise operators, and some of its nodes."""
    count = draw(st.integers(1, 12))
    made, lines = ["x", "w", "o"], []
    for i in range(count):
        operator = draw(st.sampled_from(UNARY + BINARY))
        arity = 1 if operator in UNARY else 2
        lines.append(f"v{i} = {operator}({', '.join(draw(st.sampled_from(made)) for _ in range(arity))})")
        made.append(f"v{i}")
    outputs = draw(st.lists(st.sampled_from(made[3:]), min_size=1, unique=True))
    ir = draw(st.sampled_from([3, 8, 10]))
    inputs = "float[N] x, float[2] o" + (", float[2] w" if ir < 4 else "")
    lines = draw(st.permutations(lines)) if draw(st.booleans()) else lines
    text = (
        f'<ir_version: {ir}, opset_import: ["": {8 if ir < 4 else 13}]> g ({inputs}) =>'
        f" ({', '.join(f'float[N] {n}' for n in outputs)}) <float[2] w = {{0.5, 3}}, float[2] o = {{-1, 1.5}}>"
        f" {{ {' '.join(lines)} }}"
    )
    chosen = draw(st.sets(st.integers(0, count - 1), min_size=1))
    cuts = draw(st.dictionaries(st.sampled_from(made), st.sampled_from(["input", "constant"]), max_size=3))
    return text, chosen, cuts, draw(st.booleans()), draw(st.booleans())


@settings(max_examples=150, deadline=None)
@given(cuttings())
def test_a_piece_computes_what_the_whole_computes_there(drawn):
    text, chosen, cuts, static, override = drawn
    model = parse_model(text)
    sorted_model = onnx.ModelProto()
    sorted_model.CopyFrom(model)
    view = GraphView(model, model.graph)
    del sorted_model.graph.node[:]
    sorted_model.graph.node.extend(node.proto for node in view.order)
    feeds = {"x": X}
    if override and model.ir_version >= 4:
        feeds["o"] = np.array([4, 5], np.float32)
    known = all_values(GraphView(sorted_model, sorted_model.graph), feeds)
    nodes = [view.nodes[i] for i in chosen]
    piece = carve(Model(model), view, nodes, known, cuts=cuts, static=static)
    onnx.checker.check_model(piece.model.proto, full_check=True)
    assert piece.missing == ()
    assert set(piece.origin) == chosen
    for name, value in run(piece.model.proto, piece.feeds).items():
        assert value.tobytes() == known[name].tobytes()
    everything = [name for node in nodes for name in node.outputs]
    exposed = carve(Model(model), view, nodes, known, cuts=cuts, outputs=everything)
    for name, value in run(exposed.model.proto, exposed.feeds).items():
        assert value.tobytes() == known[name].tobytes()
