import onnxruntime
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper
from onnx.parser import parse_model

from onnxbench.core.compare import differ_all
from onnxbench.core.dims import parse_dims, parse_ranges, parse_shapes, runs
from onnxbench.core.feed_files import check
from onnxbench.core.feeds import generate
from onnxbench.core.graph import GraphView
from onnxbench.errors import NameNotFound, UsageError

TYPES = [code for code in TensorProto.DataType.values() if code != TensorProto.UNDEFINED]


def view(text, opsets='"": 17'):
    model = parse_model(f"<ir_version: 8, opset_import: [{opsets}]> agraph {text}")
    return GraphView(model, model.graph)


def with_inputs(*infos):
    graph = helper.make_graph([], "g", list(infos), [])
    return GraphView(helper.make_model(graph), graph)


def runs_in_onnxruntime(graph, **how):
    session = onnxruntime.InferenceSession(graph.model.SerializeToString(), providers=["CPUExecutionProvider"])
    for seed in range(5):
        session.run(None, generate(graph, seed=seed, **how))


@settings(deadline=None)
@given(
    st.sampled_from(TYPES),
    st.lists(st.sampled_from([0, 1, 3, "n", "m", "n + m", None]), max_size=4),
    st.integers(0, 2**64),
)
def test_generated_tensors_fit_what_is_declared(code, dims, seed):
    graph = with_inputs(helper.make_tensor_value_info("x", code, dims))
    feeds = generate(graph, seed=seed)
    assert not differ_all(feeds, check(feeds, graph))
    assert [size for size, dim in zip(feeds["x"].shape, dims, strict=True) if dim == "n"] == [2] * dims.count("n")


@pytest.mark.parametrize("code", TYPES)
def test_seeds_and_names_decide_and_nothing_else(code):
    x, y = (helper.make_tensor_value_info(name, code, [64]) for name in "xy")
    alone, both, other = generate(with_inputs(x)), generate(with_inputs(y, x)), generate(with_inputs(x), seed=1)
    assert not differ_all(alone, {"x": both["x"]})
    assert differ_all(alone, other)
    assert differ_all({"x": both["x"]}, {"x": both["y"]})


def test_sequences_and_optionals():
    tensor = helper.make_tensor_type_proto(TensorProto.FLOAT16, ["n"])
    sequence = helper.make_sequence_type_proto(tensor)
    graph = with_inputs(
        helper.make_value_info("s", sequence), helper.make_value_info("o", helper.make_optional_type_proto(sequence))
    )
    feeds = generate(graph, dims={"n": 3})
    assert [[item.shape for item in value] for value in feeds.values()] == [[(3,), (3,)]] * 2
    assert not differ_all(feeds, check(feeds, graph))


def test_overridable_initializers_are_left_out():
    graph = view("(float[2] x, float[2] w = {1, 2}) => (float[2] y) { y = Add(x, w) }")
    assert list(generate(graph)) == ["x"]


def test_dims_by_symbol_by_shape_and_calculated():
    graph = with_inputs(
        helper.make_tensor_value_info("x", 1, ["b", "s"]),
        helper.make_tensor_value_info("mask", 1, ["b", "past + s"]),
        helper.make_tensor_value_info("z", 1, ["b", None]),
    )
    feeds = generate(graph, shapes={"x": (5, 7)}, dims={"past": (3, 9)})
    assert [value.shape for value in feeds.values()] == [(5, 7), (5, 10), (5, 1)]


def test_a_convolution_says_its_channels_and_gets_a_picture():
    graph = view("(float[n, c, h, w] x) => (float[n, 1, p, q] y) <float[1, 3, 1, 1] k = {1, 2, 3}> { y = Conv(x, k) }")
    assert generate(graph)["x"].shape == (2, 3, 32, 32)


@pytest.mark.parametrize(
    "how, error, code, text",
    [
        ({"shapes": {"idz": (1,)}}, NameNotFound, "OB303", "did you mean 'ids'?"),
        ({"dims": {"batsh": 1}}, NameNotFound, "OB303", "did you mean 'batch'?"),
        ({"ranges": {"IDS": (0, 1)}}, NameNotFound, "OB303", "did you mean 'ids'?"),
        ({"shapes": {"ids": (1, 2)}}, UsageError, "OB206", ""),
        ({"shapes": {"ids": (1, 3)}, "dims": {"batch": 2}}, UsageError, "OB206", "--dim batch="),
        ({"dims": {"batch": 10**12}}, UsageError, "OB206", "--shape ids="),
    ],
)
def test_refusals(how, error, code, text):
    with pytest.raises(error) as caught:
        generate(with_inputs(helper.make_tensor_value_info("ids", 7, ["batch", 3])), **how)
    assert caught.value.code == code
    assert text in caught.value.hint


def test_an_input_without_rank_wants_a_shape():
    graph = with_inputs(helper.make_tensor_value_info("a b", 1, None))
    with pytest.raises(UsageError, match="rank of input 'a b'") as caught:
        generate(graph)
    assert caught.value.hint.startswith("--shape 'a b'=")
    assert generate(graph, shapes={"a b": ()})["a b"].shape == ()


W = "float[3, 2] w = {1, 2, 3, 4, 5, 6}"
GATHERS = {
    "directly": f"(int64[64] i) => (float[64, 2] y) <{W}> {{ y = Gather(w, i) }}",
    "on the axis": f"(int64[64] i) => (float[3, 64] y) <{W}> {{ y = Gather<axis = -1>(w, i) }}",
    "through casts of floats": f"""(float[64] f) => (float[64, 2] y) <{W}> {{
        z = Constant<value_ints = [0]>()  c = Cast<to = 7>(f)  u = Unsqueeze(c, z)  s = Squeeze(u, z)
        y = Gather(w, s) }}""",
    "with an offset": f"""(int64[64] i) => (float[64, 2] y) <{W}, int64 one = {{1}}> {{
        j = Add(i, one)  y = Gather(w, j) }}""",
    "into an input": "(float[n, 5] x, int64[64, 5] i) => (float[64, 5] y) { y = GatherElements(x, i) }",
    "many columns": "(float[9, 3, 4] x, int64[64, 2] i) => (float[64, 4] y) { y = GatherND(x, i) }",
    "scattering": "(float[3, 4] x, int64[2, 2] i, float[2] u) => (float[3, 4] y) { y = ScatterND(x, i, u) }",
    "in a branch": f"""(bool c, int64[64] i) => (float[64, 2] y) <{W}> {{
        y = If(c) <then_branch = t () => (float[64, 2] p) {{ p = Gather(w, i) }},
                   else_branch = e () => (float[64, 2] q) {{ q = Gather(w, i) }}> }}""",
}


@pytest.mark.parametrize("text", GATHERS.values(), ids=GATHERS)
def test_indices_stay_in_range(text):
    runs_in_onnxruntime(view(text), dims={"n": 64} if "[n," in text else {})


def test_indices_use_the_whole_range():
    drawn = generate(view(GATHERS["directly"]))["i"]
    assert set(drawn.tolist()) == {0, 1, 2}
    offset = generate(view(GATHERS["with an offset"]))["i"]
    assert (offset.min(), offset.max()) == (-1, 1)


SIZES = {
    "Reshape": "(float[2, 3] x, int64[3] s) => (float[a, b, c] y) { y = Reshape(x, s) }",
    "Expand": "(float[2, 3] x, int64[2] s) => (float[a, b] y) { y = Expand(x, s) }",
    "Tile": "(float[2, 3] x, int64[2] s) => (float[a, b] y) { y = Tile(x, s) }",
    "Slice": "(float[8, 9] x, int64[2] s, int64[2] e, int64[2] a) => (float[p, q] y) { y = Slice(x, s, e, a) }",
    "Split": "(float[8] x, int64[3] s) => (float[p] y, float[q] z, float[r] t) { y, z, t = Split(x, s) }",
    "ConstantOfShape": "(int64[3] s) => (float[a, b, c] y) { y = ConstantOfShape(s) }",
    "Range": "(int64 a, int64 b, int64 c) => (int64[n] y) { y = Range(a, b, c) }",
    "TopK": "(float[2, 3] x, int64[1] k) => (float[2, n] y, int64[2, n] i) { y, i = TopK(x, k) }",
    "Div": "(int32[64] x, int32[64] d) => (int32[64] y) { y = Div(x, d) }",
    "Mod": "(int32[64] x, int32[64] d) => (int32[64] y) { e = Identity(d)  y = Mod(x, e) }",
    "OneHot": "(int64[5] i, int64 d, float[2] v) => (float[5, n] y) { y = OneHot(i, d, v) }",
    "ReverseSequence": "(float[4, 3] x, int64[3] s) => (float[4, 3] y) { y = ReverseSequence(x, s) }",
    "ReduceSum": "(float[4, 3] x, int64[2] s) => (float[a, b] y) { y = ReduceSum(x, s) }",
    "Loop": """(int64 m, float[2] x) => (float[2] y) { c = Constant<value = bool {1}>()
        y = Loop(m, c, x) <body = b (int64 i, bool ci, float[2] xi) => (bool co, float[2] xo)
            { co = Identity(ci)  xo = Add(xi, xi) }> }""",
    "strings to numbers": "(string[5] s) => (float[5] y) { y = Cast<to = 1>(s) }",
}


@pytest.mark.parametrize(
    "node",
    [
        "y = Add(i)",
        "y = Equal(i)",
        "y = OneHot(i)",
        "y = Gather(i)",
        "y = Split(i, i)",
        "y = Slice(i)",
        "y = TopK(x, i)",
    ],
)
def test_nodes_that_lack_something_ask_nothing(node):
    assert generate(view(f"(int64[2] i, float[3] x) => (float[a] y) {{ {node} }}"))["i"].shape == (2,)


@pytest.mark.parametrize("op", ["Reshape", "Expand", "Tile"])
def test_nodes_that_give_nothing_ask_nothing(op):
    graph = view(f"(float[2] x, int64[1] i) => (float[a] y) {{ y = {op}(x, i) }}")
    del graph.model.graph.node[0].output[:]
    assert generate(GraphView(graph.model, graph.model.graph))["i"].shape == (1,)


def test_regions_lie_in_the_picture():
    graph = view(
        """(float[1, 1, 8, 9] x, float[3, 4] r, int64[3] b) => (float[3, 1, 2, 2] y)
        { y = RoiAlign <output_height = 2, output_width = 2> (x, r, b) }"""
    )
    x1, y1, x2, y2 = generate(graph)["r"].T
    assert ((x1 >= 0) & (x1 < x2) & (x2 < 9) & (y1 >= 0) & (y1 < y2) & (y2 < 8)).all()
    runs_in_onnxruntime(graph)


def test_frequencies_are_in_order():
    graph = view(
        """(int64 n, int64 w, int64 s, float low, float high) => (float[a, b] y)
        { y = MelWeightMatrix(n, w, s, low, high) }"""
    )
    feeds = generate(graph)
    assert 0 <= feeds["low"] < feeds["high"] <= feeds["s"] / 2
    runs_in_onnxruntime(graph)


@pytest.mark.parametrize("text", SIZES.values(), ids=SIZES)
def test_sizes_axes_counts_and_divisors_are_plausible(text):
    runs_in_onnxruntime(view(text))


@pytest.mark.parametrize(
    "text",
    [
        "(float[1, 1, 4, 4] x, int64[4] s) => (float[1, 1, 7, 3] y) { y = Resize(x, , , s) }",
        "(float[1, 3] x, int64[2] s) => (float[2, 3] y) { y = Expand(x, s) }",
        "(float[1, 1, 4, 4] x, int64[2] s) => (float[1, 1, 7, 3] y) { y = Resize <axes = [2, 3]> (x, , , s) }",
    ],
)
def test_sizes_are_those_that_the_result_declares(text):
    """Where nothing is resized, runtimes hand on what they got, whatever else the node says."""
    graph = view(text, '"": 18')
    declared = tuple(dim.dim_value for dim in graph.model.graph.output[0].type.tensor_type.shape.dim)
    assert tuple(generate(graph)["s"]) == declared[-len(generate(graph)["s"]) :]
    runs_in_onnxruntime(graph)


def test_a_range_of_the_user_counts_before_the_graph():
    graph = view("(int64[64] i, float[64] f) => (int64[64] y) { y = Cast<to = 7>(f) }")
    feeds = generate(graph, ranges={"i": (100, 102), "f": (-1, -0.5)})
    assert set(feeds["i"].tolist()) == {100, 101}
    assert -1 <= feeds["f"].min() <= feeds["f"].max() < -0.5


def test_texts_are_split_from_the_right():
    assert parse_shapes(["a=b:0=1x3", "s="]) == {"a=b:0": (1, 3), "s": ()}
    assert parse_dims(["batch=1", "seq=1,7,64"]) == {"batch": (1,), "seq": (1, 7, 64)}
    assert parse_ranges(["ids:0=0:32000", "x=-1:.5"]) == {"ids:0": (0, 32000), "x": (-1, 0.5)}
    assert runs(parse_dims(["b=1", "s=7,8"])) == [{"b": 1, "s": 7}, {"b": 1, "s": 8}]


@pytest.mark.parametrize(
    "parse, texts",
    [
        *[(parse_shapes, [text]) for text in ("x", "=1", "x=1x", "x=-1", "x=1,2", "x=1.5")],
        *[(parse_dims, [text]) for text in ("x=", "x=1,", "x=-1", "x=n")],
        *[(parse_ranges, [text]) for text in ("x=1", "x=2:1", "x=1:1", "x=nan:1", "x=0:inf", "x=a:b")],
        (parse_shapes, ["x=1", "x=2"]),
    ],
)
def test_wrong_texts_are_usage_errors_with_a_hint(parse, texts):
    with pytest.raises(UsageError) as caught:
        parse(texts)
    assert caught.value.code == "OB201"
    assert caught.value.hint


FUNCTION = """
<ir_version: 10, opset_import: ["": 17, "local": 1]>
agraph (int64[64] i) => (float[64, 2] y) <float[3, 2] w = {1, 2, 3, 4, 5, 6}> { y = local.look_up(w, i) }
<domain: "local", opset_import: ["": 17]> look_up (table, at) => (found) { j = Identity(at)  found = Gather(table, j) }
"""


def test_indices_are_followed_into_functions():
    model = parse_model(FUNCTION)
    runs_in_onnxruntime(GraphView(model, model.graph))


def test_a_single_number_is_what_it_is_compared_with_and_many_are_not():
    text = "(int64[1] rate, int64[N] ids) => (bool[1] a, bool[N] b) <int64 k = {16000}> { a = Equal(k, rate) b = Equal(ids, k) }"
    made = generate(view(text), dims={"N": 8})
    assert made["rate"].tolist() == [16000]
    assert len(set(made["ids"].tolist())) > 1
