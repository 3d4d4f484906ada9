"""What we say of a value's type is what a run shows, and more than the file or onnx says."""

import time
import warnings

import numpy as np
import onnx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from onnxbench import GraphView, Model
from onnxbench.core.shape_rules.registry import MICROSOFT
from onnxbench.core.shapes import propagate
from onnxbench.core.size_text import parse
from onnxbench.core.symbolic import evaluate, lone, symbol
from onnxbench.core.values import element_type
from onnxbench.errors import BenchError

HEADER = '<ir_version: 10, opset_import: ["": 18, "local": 1]>'


def model_of(text):
    return Model(onnx.parser.parse_model(HEADER + text))


def shapes_of(text, **fixed):
    return propagate(model_of(text), **fixed)


def printed(shapes, name):
    dims = shapes.dims(name)
    return None if dims is None else [dim if isinstance(dim, int | None) else str(dim) for dim in dims]


def main_view(model):
    return GraphView(model.proto, model.proto.graph)


@pytest.mark.parametrize(
    "body, dims",
    [
        ("y = Conv<pads = [1, 1, 1, 1], strides = [2, 2]>(x, w)", ["N", 8, "((H + 1)//2)", "((W + 1)//2)"]),
        ("y = ConvTranspose<strides = [2, 2]>(x, w)", ["N", 4, "2*H + 1", "2*W + 1"]),
        (
            'y = MaxPool<kernel_shape = [2, 2], auto_pad = "SAME_UPPER", strides = [2, 2]>(x)',
            ["N", 8, "((H + 1)//2)", "((W + 1)//2)"],
        ),
        ("y = MaxPool<kernel_shape = [3, 3], ceil_mode = 1, strides = [2, 2]>(x)", ["N", 8, "(H//2)", "(W//2)"]),
        ("y = Flatten(x)", ["N", "8*H*W"]),
        ("y, z = Split<axis = 2, num_outputs = 2>(x)", ["N", 8, "((H + 1)//2)", "W"]),
        ("y = Concat<axis = 2>(x, x, x)", ["N", 8, "3*H", "W"]),
        ("y = DepthToSpace<blocksize = 2>(x)", ["N", 2, "2*H", "2*W"]),
        ("s = Constant<value_floats = [1.0, 1.0, 0.5, 2.0]>() y = Resize(x, , s)", ["N", 8, "(H//2)", "2*W"]),
        ("k = Shape(x) y = Expand(one, k)", ["N", 8, "H", "W"]),
        ('y = Einsum<equation = "nchw,...hv->vc...">(x, x)', ["W", 8, "N", 8]),
    ],
)
def test_sizes_are_expressions_over_the_symbols_of_the_model(body, dims):
    text = f"g (float[N, 8, H, W] x) => (y) <float[8, 4, 3, 3] w, float one = {{1}}> {{ {body} }}"
    model = onnx.parser.parse_model(HEADER + text.replace("<float[8, 4, 3, 3] w, float one = {1}>", ""))
    weight = np.ones((8, 8, 3, 3) if "= Conv<" in body else (8, 4, 3, 3), np.float32)
    model.graph.initializer.append(numpy_helper.from_array(weight, "w"))
    model.graph.initializer.append(numpy_helper.from_array(np.float32(1), "one"))
    assert printed(propagate(Model(model)), "y") == dims


def test_a_shape_that_the_model_computes_is_followed_through():
    text = """g (float[batch, seq, 64] x) => (y) {
        s = Shape(x)  zero = Constant<value_ints = [0]>()  one = Constant<value_ints = [1]>()
        b = Gather(s, zero)  n = Gather(s, one)  heads = Constant<value_ints = [4, -1]>()
        shape = Concat<axis = 0>(b, n, heads)  y = Reshape(x, shape)  pair = Mul(b, n)  z = Concat<axis = 0>(pair, heads)
        flat = Reshape(x, z) }"""
    shapes = shapes_of(text)
    assert shapes.data("shape") == (symbol("batch"), symbol("seq"), 4, -1)
    assert printed(shapes, "y") == ["batch", "seq", 4, 16]
    assert printed(shapes, "flat") == ["batch*seq", 4, 16]
    assert shapes.element("shape") == TensorProto.INT64


def test_given_sizes_make_numbers_of_everything():
    text = 'g (float[batch, seq] x, float["past + seq"] p) => (y, q) { y = Flatten<axis = 0>(x) q = Relu(p) }'
    shapes = shapes_of(text, dims={"batch": 3}, shapes={"x": [3, 5]})
    assert printed(shapes, "y") == [1, 15]
    assert printed(shapes_of(text, dims={"past": 2, "seq": 5}), "q") == [7]
    with pytest.raises(BenchError, match="btach"):
        shapes_of(text, dims={"btach": 3})


def test_what_data_decides_gets_a_readable_symbol_of_its_own():
    shapes = shapes_of("g (float[N] x) => (y, z) { y = NonZero(x) t = Transpose(y) z = Concat<axis = 0>(t, t) }")
    assert printed(shapes, "y") == [1, "y_d1"]
    assert printed(shapes, "z") == ["2*y_d1", 1]
    assert shapes.made_up == {"y_d1"}
    assert parse("2*y_d1") == shapes.dims("z")[0]


def test_the_models_name_for_a_size_beats_ours():
    shapes = shapes_of("g (float[N] x) => (int64[1, hits] y) { t = NonZero(x) y = Identity(t) }")
    assert printed(shapes, "t") == [1, "hits"]
    assert not shapes.made_up


def test_a_declared_name_for_a_computed_size_is_what_was_computed():
    shapes = shapes_of("g (float[N, 4] x) => (float[M] y) { s = Constant<value_ints = [-1]>() y = Reshape(x, s) }")
    assert printed(shapes, "y") == ["4*N"]
    assert not shapes.conflicts


def test_one_name_for_two_sizes_is_believed_for_neither():
    text = "g (float[N] x) => (float[A] y, float[A] z) { y = Concat<axis = 0>(x, x) z = Concat<axis = 0>(x, x, x) }"
    shapes = shapes_of(text)
    assert printed(shapes, "y") == ["2*N"]
    assert printed(shapes, "z") == ["3*N"]


def test_question_marks_are_no_names():
    shapes = shapes_of('g (float["?", "?"] x) => (y) { y = Transpose(x) }')
    assert printed(shapes, "y") == ["x_d1", "x_d0"]


def test_names_that_are_no_identifiers_stay_apart():
    model = onnx.parser.parse_model(HEADER + "g (float[A, B, C, D] x) => (y) { y = Flatten(x) }")
    names = ["a-b", "batch size", "'A'", "(A)"]
    for dim, name in zip(model.graph.input[0].type.tensor_type.shape.dim, names, strict=True):
        dim.dim_param = name
    shapes = propagate(Model(model))
    assert printed(shapes, "y") == ["'a-b'", "\"'A'\"*'batch size'*A"]
    assert [dim.dim_param for dim in shapes.type("x").tensor_type.shape.dim] == ["a-b", "batch size", "'A'", "A"]


def test_stale_declarations_are_conflicts_and_lose():
    model = onnx.parser.parse_model(HEADER + "g (float[batch, 4] x) => (float[batch, 4] y) { t = Relu(x) y = Relu(t) }")
    model.graph.value_info.append(helper.make_tensor_value_info("t", TensorProto.FLOAT, [1, 4]))
    shapes = propagate(Model(model))
    assert printed(shapes, "t") == ["batch", 4]
    (conflict,) = shapes.conflicts
    assert conflict.name == "t"
    assert conflict.declared.tensor_type.shape.dim[0].dim_value == 1
    assert conflict.computed.tensor_type.shape.dim[0].dim_param == "batch"


@pytest.mark.parametrize(
    "left, right, dim",
    [("N", "1", "N"), ("N", "5", 5), ("N", "N", "N"), ("N", "M", "y_d0"), ("1", "1", 1)],
)
def test_broadcasting_claims_no_more_than_is_certain(left, right, dim):
    shapes = shapes_of(f"g (float[{left}] a, float[{right}] b) => (y) {{ y = Add(a, b) }}")
    assert printed(shapes, "y") == [dim]


@pytest.mark.parametrize(("cap", "dim"), [(0, 0), (1, "N"), (2, "N"), (128, "N")])
@pytest.mark.parametrize("swapped", [False, True])
def test_a_table_that_is_cut_to_a_length_takes_that_length_beside_it(cap, dim, swapped):
    """As a causal mask is: where the table is too short the run fails, unless it is stretched from 1."""
    left, right = ("c", "x") if swapped else ("x", "c")
    shapes = shapes_of(f"""g (float[N] x, float[{cap}] table) => (y) {{
        zero = Constant<value_ints = [0]>() n = Shape(x) c = Slice(table, zero, n) y = Add({left}, {right}) }}""")
    assert printed(shapes, "y") == [dim]
    for n in range(5):  # what NumPy makes of it is what is claimed
        try:
            made = len(np.zeros(n) + np.zeros(cap)[:n])
        except ValueError:
            continue
        assert made == (n if dim == "N" else dim)


def test_nothing_follows_from_parts_that_may_be_empty():
    text = """g (float[N] x) => (y) { z = NonZero(x)  t = Cast<to = 7>(x)  zero = Constant<value_ints = [0]>()
        u = Unsqueeze(t, zero)  y = Concat<axis = 0>(z, u) }"""
    shapes = shapes_of(text)

    assert printed(shapes, "z") == [1, "z_d1"]
    assert printed(shapes, "y") == [2, "N"]


def test_branches_keep_what_both_say():
    text = """g (bool c, float[N, 3] x) => (y) { y = If(c) <
        then_branch = t () => (a) { a = Relu(x) },
        else_branch = e () => (b) { one = Constant<value_ints = [1]>() three = Constant<value_ints = [3]>()
            s = Concat<axis = 0>(one, three) r = ReduceSum<keepdims = 1>(x) b = Expand(r, s) } > }"""
    model = model_of(text)
    shapes = propagate(model)
    assert printed(shapes, "y") == ["y_d0", 3]
    view = main_view(model)
    branches = dict(view.bodies(view.producer["y"]))
    assert printed(shapes.of(branches["then_branch"]), "a") == ["N", 3]
    assert printed(shapes.of(branches["else_branch"]), "b") == [1, 3]
    assert printed(shapes.of(branches["else_branch"]), "x") == ["N", 3]


def test_sibling_bodies_with_the_same_names_are_told_apart():
    text = """g (bool c, float[N] x) => (y) { y = If(c) <
        then_branch = t () => (a) { a = Relu(x) },
        else_branch = e () => (a) { a = Concat<axis = 0>(x, x) } > }"""
    model = model_of(text)
    shapes = propagate(model)
    view = main_view(model)
    branches = dict(view.bodies(view.producer["y"]))
    assert printed(shapes, "a") == [None]
    assert printed(shapes.of(branches["then_branch"]), "a") == ["N"]
    assert printed(shapes.of(branches["else_branch"]), "a") == ["2*N"]


LOOP = """g (int64 m, float[N, 2] x) => (last, grown, all) {{
    count = Constant<value_int = {count}>()  yes = Constant<value = bool {{1}}>()
    last, grown, all = Loop({trips}, yes, x, x) <body = b (int64 i, bool c, float[] p, float[] q) => (d, r, s, u) {{
        d = Identity(c)  r = Relu(p)  s = Concat<axis = 0>(q, p)  u = Identity(p) }} > }}"""


def test_a_loop_keeps_what_its_body_keeps():
    model = model_of(LOOP.format(count=4, trips="count").replace("float[] p", "p").replace("float[] q", "q"))
    shapes = propagate(model)
    assert printed(shapes, "last") == ["N", 2]
    assert printed(shapes, "grown") == ["grown_d0", 2]
    assert printed(shapes, "all") == [4, "N", 2]
    view = main_view(model)
    assert shapes.rounds(view, view.producer["all"]) == 4


def test_a_loop_of_unknown_length_has_no_number_of_rounds():
    model = model_of(LOOP.format(count=4, trips="m").replace("float[] p", "p").replace("float[] q", "q"))
    shapes = propagate(model)
    view = main_view(model)
    assert shapes.rounds(view, view.producer["all"]) is None
    assert printed(shapes, "all") == ["all_d0", "N", 2]


def test_a_scan_runs_once_for_each_slice():
    text = """g (float[T, N] x, float[N] h) => (last, all) {
        last, all = Scan<num_scan_inputs = 1, body = b (float[N] s, float[N] e) => (t, o) {
            t = Add(s, e) o = Concat<axis = 0>(t, e) }>(h, x) }"""
    model = model_of(text)
    shapes = propagate(model)
    view = main_view(model)
    assert printed(shapes, "all") == ["T", "2*N"]
    assert str(shapes.rounds(view, view.producer["all"])) == "T"


def test_each_call_of_a_function_has_its_own_sizes():
    text = """g (float[N, 3] x, float[5] z) => (y, w) { y = local.twice(x) w = local.twice(z) }
        <domain: "local", opset_import: ["": 18]> twice (a) => (b) { t = Relu(a) b = Concat<axis = 0>(t, t) }"""
    model = model_of(text)
    shapes = propagate(model)
    assert printed(shapes, "y") == ["2*N", 3]
    assert printed(shapes, "w") == [10]
    view = main_view(model)
    assert printed(shapes.of(view.call(view.producer["w"])), "t") == [5]


def test_a_body_in_a_function_sees_the_function_and_not_its_caller():
    text = """g (bool c, float[N] x, float[9] t) => (y) { y = local.pick(c, x) }
        <domain: "local", opset_import: ["": 18]> pick (k, a) => (b) { t = Relu(a)
            b = If(k) <then_branch = p () => (u) { u = Relu(t) }, else_branch = q () => (v) { v = Neg(t) }> }"""
    model = model_of(text)
    shapes = propagate(model)
    view = main_view(model)
    inside = view.call(view.producer["y"])
    branch = dict(inside.bodies(inside.producer["b"]))["then_branch"]
    assert printed(shapes, "y") == ["N"]
    assert printed(shapes.of(branch), "t") == ["N"]
    assert printed(shapes.of(branch), "x") is None


def test_sequences_remember_their_members():
    text = """g (float[N] x, float[M] z) => (y, c) { s = SequenceConstruct(x, z)  one = Constant<value_int = 1>()
        y = SequenceAt(s, one)  c = ConcatFromSequence<axis = 0>(s) }"""
    shapes = shapes_of(text)
    assert printed(shapes, "y") == ["M"]
    assert printed(shapes, "c") == ["M + N"]
    assert shapes.type("s").sequence_type.elem_type.tensor_type.elem_type == TensorProto.FLOAT


def test_models_that_hang_onnx_do_not_hang_us():
    started = time.monotonic()
    shapes = shapes_of(
        'g (float[N, A, B] x) => (y) { y = Einsum<equation = "...ij,...jk->...ik">(x, x) t = MadeUp(y) }', timeout=10
    )
    assert time.monotonic() - started < 15
    assert printed(shapes, "y") == ["N", "A", "B"]


def test_results_can_be_looked_up_by_equal_sizes_in_this_process():
    dims = shapes_of("g (float[N] x) => (y) { y = Concat<axis = 0>(x, x) }").dims("y")
    assert {symbol("N") * 2: "found"}[dims[0]] == "found"


def test_a_symbol_that_onnx_takes_for_nothing_is_kept():
    text = "g (float[B, S, 8] q) => (y) { y = Attention<q_num_heads = 2, kv_num_heads = 2>(q, q, q) }"
    model = onnx.parser.parse_model(HEADER.replace('"": 18', '"": 23') + text)
    assert printed(propagate(Model(model)), "y") == ["B", "S", 8]


# against real runs -----------------------------------------------------------------------------------------------------

STEPS = [
    ("Relu", 1, {}),
    ("Transpose", 1, {}),
    ("Add", 2, {}),
    ("Mul", 2, {}),
    ("Sub", 2, {}),
    ("MatMul", 2, {}),
    ("Concat", 2, {"axis": 0}),
    ("Concat", 2, {"axis": -1}),
    ("Flatten", 1, {}),
    ("Flatten", 1, {"axis": 0}),
    ("Softmax", 1, {}),
    ("ReduceSum", 1, {}),
    ("ReduceMax", 1, {"keepdims": 0}),
    ("ArgMax", 1, {"axis": 0}),
    ("Shape", 1, {}),
    ("Shape", 1, {"start": 1}),
    ("Shape", 1, {"end": -1}),
    ("Size", 1, {}),
    ("NonZero", 1, {}),
    ("Expand by shape", 2, {}),
    ("Reshape to", 1, [-1]),
    ("Reshape to", 1, [0, -1]),
    ("Reshape to", 1, [1, -1, 1]),
    ("Slice", 1, ([1], [5], [0], [2])),
    ("Slice", 1, ([-2], [2**62], [0], [1])),
    ("Slice", 1, ([0], [-1], [-1], [1])),
    ("Slice", 1, ([-1], [-(2**62)], [0], [-1])),
    ("Tile", 1, [2]),
    ("Unsqueeze", 1, [0]),
    ("Unsqueeze", 1, [-1]),
    ("Squeeze", 1, None),
    ("Pad", 1, None),
    ("TopK", 1, [2]),
    ("Split", 1, {"num_outputs": 2, "axis": 0}),
    ("Gather", 1, [0, 1, -1]),
    ("Cast", 1, {"to": TensorProto.FLOAT}),
    ("Range", 1, None),
    ("ConstantOfShape", 1, None),
    ("Where", 2, None),
    ("AveragePool", 1, {"kernel_shape": [2], "strides": [2], "ceil_mode": 1, "pads": [1, 0]}),
    ("MaxPool", 1, {"kernel_shape": [3], "strides": [2], "auto_pad": "SAME_LOWER"}),
    ("Resize", 1, [0.5, 2.0]),
]
SYMBOLS = ["N", "M"]
graphs = st.lists(
    st.tuples(st.sampled_from(range(len(STEPS))), st.integers(0, 99), st.integers(0, 99)), min_size=3, max_size=12
)
sizes = st.fixed_dictionaries({name: st.integers(1, 6) for name in SYMBOLS})
dims_of_inputs = st.lists(
    st.lists(st.sampled_from([*SYMBOLS, 1, 2, 3]), min_size=1, max_size=3), min_size=2, max_size=3
)


class Building:
    """A graph that grows by one step at a time, kept only if ONNX Runtime runs it."""

    def __init__(self, inputs, env):
        self.inputs = inputs
        self.values = {}
        self.nodes, self.initializers, self.count = [], [], 0
        rng = np.random.default_rng(1)
        for i, dims in enumerate(inputs):
            shape = [env.get(dim, dim) for dim in dims]
            self.values[f"x{i}"] = rng.standard_normal(shape).astype(np.float32)
        self.feeds = dict(self.values)

    def constant(self, array):
        name = f"c{len(self.initializers)}"
        self.initializers.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def add(self, step, first, second):
        operator, arity, extra = STEPS[step]
        names = list(self.values)
        a, b = names[first % len(names)], names[second % len(names)]
        out = f"v{self.count}"
        self.count += 1
        nodes = self.made(operator, extra, a, b if arity == 2 else None, out)
        trial = self.model([*self.nodes, *nodes], nodes)
        try:
            found = run(trial, self.feeds)
        except Exception:  # what the runtime refuses is no model
            return
        self.nodes += nodes
        self.values.update(found)

    def made(self, operator, extra, a, b, out):
        node = helper.make_node
        i64 = np.int64
        match operator:
            case "Expand by shape":
                return [node("Shape", [b], [out + "s"]), node("Expand", [a, out + "s"], [out])]
            case "Reshape to":
                return [node("Reshape", [a, self.constant(np.array(extra, i64))], [out])]
            case "Slice":
                return [node("Slice", [a, *(self.constant(np.array(part, i64)) for part in extra)], [out])]
            case "Tile":
                rank = self.values[a].ndim
                return [node("Tile", [a, self.constant(np.array(extra * rank, i64))], [out])]
            case "Unsqueeze" | "TopK" | "Gather":
                outputs = [out, out + "i"] if operator == "TopK" else [out]
                return [node(operator, [a, self.constant(np.array(extra, i64))], outputs)]
            case "Squeeze":
                return [node("Squeeze", [a, self.constant(np.array([0], i64))], [out])]
            case "Pad":
                rank = self.values[a].ndim
                return [node("Pad", [a, self.constant(np.array([1] * rank + [2] * rank, i64))], [out])]
            case "Split":
                return [node("Split", [a], [out, out + "b"], **extra)]
            case "Range":
                zero, one = self.constant(i64(0)), self.constant(i64(3))
                return [node("Size", [a], [out + "n"]), node("Range", [zero, out + "n", one], [out])]
            case "ConstantOfShape":
                return [node("Shape", [a], [out + "s"]), node("ConstantOfShape", [out + "s"], [out])]
            case "Where":
                return [node("Equal", [a, b], [out + "c"]), node("Where", [out + "c", a, b], [out])]
            case "AveragePool" | "MaxPool":
                return [node(operator, [a], [out], **extra)]
            case "Resize":
                rank = self.values[a].ndim
                return [node("Resize", [a, "", self.constant(np.array([*extra, 1.0][:rank], np.float32))], [out])]
        return [node(operator, [a] if b is None else [a, b], [out], **extra)]

    def model(self, nodes, last):
        info = helper.make_tensor_value_info
        inputs = [info(f"x{i}", TensorProto.FLOAT, dims) for i, dims in enumerate(self.inputs)]
        outputs = [onnx.ValueInfoProto(name=name) for node in last for name in node.output]
        graph = helper.make_graph(nodes, "g", inputs, outputs, self.initializers)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


def run(model, feeds):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, feeds), strict=True))


def contradictions(shapes, values, env):
    """What we say of values and a run refutes; a symbol of ours is worth what it is first."""
    found, worth = [], dict(env)
    for name, value in values.items():
        element, dims = shapes.element(name), shapes.dims(name)
        if element is not None and element != element_type(value.dtype):
            found.append((name, element, value.dtype))
        if dims is None:
            continue
        if len(dims) != value.ndim:
            found.append((name, list(map(str, dims)), value.shape))
            continue
        for dim, size in zip(dims, value.shape, strict=True):
            if lone(dim) and lone(dim) not in worth:
                worth[lone(dim)] = size
            claimed = evaluate(dim, worth)
            if isinstance(claimed, int) and claimed != size:
                found.append((name, str(dim), claimed, value.shape))
        data = shapes.data(name)
        for element_, real in zip(data or (), value.reshape(-1), strict=False):
            claimed = None if element_ is None else evaluate(element_, worth)
            if isinstance(claimed, int) and claimed != int(real):
                found.append((name, "data", str(element_), value))
    return found


OLD_FORMS = [
    (7, "", "Slice", ["f23"], {"starts": [1], "ends": [-1], "axes": [1]}),
    (7, "", "Squeeze", ["f213"], {"axes": [1]}),
    (7, "", "Unsqueeze", ["f23"], {"axes": [0, 2]}),
    (7, "", "Pad", ["f23"], {"pads": [0, 1, 2, 3]}),
    (7, "", "Upsample", ["f1122"], {"scales": [1.0, 1.0, 2.0, 1.5]}),
    (9, "", "Upsample", ["f1122", np.array([1, 1, 2, 1.5], np.float32)], {}),
    (9, "", "TopK", ["f23"], {"k": 2}),
    (7, "", "Split", ["f23"], {"axis": 1, "split": [1, 2]}),
    (7, "", "Split", ["f43"], {"axis": 0}),
    (7, "", "Clip", ["f23"], {"min": 0.0}),
    (7, "", "Dropout", ["f23"], {}),
    (10, "", "Resize", ["f1122", np.array([1, 1, 0.5, 2], np.float32)], {}),
    (7, "", "ReduceSum", ["f23"], {"axes": [1], "keepdims": 0}),
    (7, "", "BatchNormalization", ["f23", *[np.ones(3, np.float32)] * 4], {}),
    (
        7,
        "",
        "LSTM",
        ["f423", np.ones((2, 20, 3), np.float32), np.ones((2, 20, 5), np.float32)],
        {"hidden_size": 5, "direction": "bidirectional"},
    ),
    (14, "", "GRU", ["f423", np.ones((1, 15, 3), np.float32), np.ones((1, 15, 5), np.float32)], {"hidden_size": 5}),
    (13, MICROSOFT, "Gelu", ["f23"], {}),
    (13, MICROSOFT, "FastGelu", ["f23"], {}),
    (13, MICROSOFT, "BiasGelu", ["f23", np.ones(3, np.float32)], {}),
    (13, MICROSOFT, "FusedMatMul", ["f23", "f23"], {"transB": 1}),
    (13, MICROSOFT, "FusedConv", ["f1333", np.ones((2, 3, 2, 2), np.float32)], {"activation": "Relu"}),
    (13, MICROSOFT, "SkipLayerNormalization", ["f234", "f234", np.ones(4, np.float32)], {}),
    (13, "", "LayerNormalization", ["f234", np.ones(4, np.float32)], {}),
    (13, MICROSOFT, "Attention", ["f248", np.ones((8, 24), np.float32), np.ones(24, np.float32)], {"num_heads": 2}),
    (13, MICROSOFT, "MultiHeadAttention", ["f248", "f238", "f238"], {"num_heads": 2}),
    (13, MICROSOFT, "DynamicQuantizeMatMul", ["f23", np.ones((3, 4), np.uint8), np.float32(1), np.uint8(0)], {}),
    (
        13,
        MICROSOFT,
        "QLinearAdd",
        ["u23", np.float32(1), np.uint8(0), "u13", np.float32(1), np.uint8(0), np.float32(1), np.uint8(0)],
        {},
    ),
    (13, MICROSOFT, "QLinearSigmoid", ["u23", np.float32(1), np.uint8(0), np.float32(1), np.uint8(0)], {}),
    (13, MICROSOFT, "QLinearGlobalAveragePool", ["u1333", np.float32(1), np.uint8(0), np.float32(1), np.uint8(0)], {}),
    (
        13,
        MICROSOFT,
        "QLinearConcat",
        [np.float32(1), np.uint8(0), "u23", np.float32(1), np.uint8(0), "u13", np.float32(1), np.uint8(0)],
        {"axis": 0},
    ),
    (
        13,
        MICROSOFT,
        "QGemm",
        ["u23", np.float32(1), np.uint8(0), np.ones((3, 4), np.uint8), np.float32(1), np.uint8(0)],
        {},
    ),
]


@pytest.mark.parametrize(
    "opset, domain, operator, inputs, attributes",
    OLD_FORMS,
    ids=lambda case: case if isinstance(case, str | int) else "",
)
def test_old_forms_and_contributed_operators_have_the_sizes_that_we_say(opset, domain, operator, inputs, attributes):
    names, feeds, infos, initializers, env = [], {}, [], [], {}
    for place, given_ in enumerate(inputs):
        name = f"x{place}"
        names.append(name)
        if not isinstance(given_, str):
            initializers.append(numpy_helper.from_array(np.asarray(given_), name))
            continue
        shape = [int(digit) for digit in given_[1:]]
        feeds[name] = np.ones(shape, np.float32 if given_[0] == "f" else np.uint8)
        env |= {f"s{place}_{axis}": size for axis, size in enumerate(shape)}
        symbols = [f"s{place}_{axis}" for axis in range(len(shape))]
        infos.append(helper.make_tensor_value_info(name, element_type(feeds[name].dtype), symbols))
    count = {"TopK": 2, "Split": 2, "LSTM": 3, "GRU": 2}.get(operator, 1)
    outputs = [f"y{place}" for place in range(count)]
    node = helper.make_node(operator, names, outputs, domain=domain, **attributes)
    graph = helper.make_graph([node], "g", infos, [onnx.ValueInfoProto(name=name) for name in outputs], initializers)
    imports = [
        helper.make_opsetid("", max(opset, 17) if operator == "LayerNormalization" else opset),
        helper.make_opsetid(MICROSOFT, 1),
    ]
    model = helper.make_model(graph, opset_imports=imports, ir_version=7)
    values = run(model, feeds)
    shapes = propagate(Model(model))
    assert not contradictions(shapes, values, env)
    assert all(shapes.element(name) is not None for name in outputs)
    assert not shapes.made_up or operator in ("Resize", "QLinearAdd")


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(dims_of_inputs, sizes, sizes, graphs)
def test_random_graphs_have_the_sizes_that_we_say(inputs, env, other, steps):
    building = Building(inputs, env)
    for step in steps:
        building.add(*step)
    if not building.nodes:
        return
    model = building.model(building.nodes, building.nodes)
    shapes = propagate(Model(model))
    assert not contradictions(shapes, building.values, env)
    feeds = {
        name: np.ones([other.get(d, d) for d in dims], np.float32)
        for name, dims in zip(building.feeds, inputs, strict=True)
    }
    try:
        values = run(model, feeds)
    except Exception:  # not every size will do
        return
    assert not contradictions(shapes, values, other)
    fixed = propagate(Model(model), dims={name: size for name, size in env.items() if any(name in d for d in inputs)})
    assert not contradictions(fixed, building.values, env)


def test_every_node_test_of_onnx_agrees():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from onnx.backend.test.case.node import collect_testcases

        cases = collect_testcases()
    assert len(cases) > 1000
    wrong = []
    for case in cases:
        inputs, outputs = case.data_sets[0]
        for model, env in ((bare(case.model), {}), with_symbols(case.model, inputs)):
            shapes = propagate(Model(model))
            values = {
                info.name: np.asarray(value)
                for info, value in zip(model.graph.output, outputs, strict=False)
                if isinstance(value, np.ndarray | np.generic)
            }
            wrong += [(case.name, *line) for line in contradictions(shapes, values, env)]
    assert not wrong


def bare(source):
    """The model with types of its inputs only."""
    model = onnx.ModelProto()
    model.CopyFrom(source)
    del model.graph.value_info[:]
    for output in model.graph.output:
        output.ClearField("type")
    return model


def with_symbols(source, values):
    """The model with a symbol for each dim of an input, and what those are worth."""
    model, env = bare(source), {}
    for place, (info, value) in enumerate(zip(model.graph.input, values, strict=False)):
        if info.type.HasField("tensor_type") and hasattr(value, "shape"):
            for axis, dim in enumerate(info.type.tensor_type.shape.dim):
                dim.Clear()
                dim.dim_param = f"i{place}_{axis}"
                env[dim.dim_param] = value.shape[axis]
    return model, env
