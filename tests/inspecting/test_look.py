"""Nodes and values are found wherever they live, and symbols that we made up are explained."""

import pytest
from onnx import parser

from onnxbench import GraphView, Model
from onnxbench.core.shapes import propagate
from onnxbench.errors import NameNotFound
from onnxbench.inspecting.inspect import inspect
from onnxbench.inspecting.look import look_at_node_named, look_at_value, look_for

BODIES = """<ir_version: 10, opset_import: ["": 17]>
g (float[2] x, int64 n, bool c) => (float[2] y, float[2] z) {
  [neg] a = Neg (x)
  [if] y = If (c) <
    then_branch = t () => (float[2] o) { [inner] o = If (c) <
      then_branch = tt () => (float[2] p) { [deep] p = Abs (a) }, else_branch = te () => (float[2] p) { p = Neg (a) }> },
    else_branch = e () => (float[2] o) { [neg] o = Neg (x) }>
  [loop] z = Loop (n, c, x) <body = b (int64 i, bool ci, float[2] v) => (bool co, float[2] u) {
      co = Identity (ci)  [step] u = Relu (v) }> }"""

FUNCTIONS = """<ir_version: 10, opset_import: ["": 17, "l": 1]>
g (float[2] x, float[3, 4] w) => (float[2] y, float[3, 4] z) { [call] y = l.F (x) [again] z = l.F (w) }
<domain: "l", opset_import: ["": 17, "l": 1]> F (p) => (r) { [inF] t = Neg (p) [callG] r = l.G (t) }
<domain: "l", opset_import: ["": 17]> G (p) => (q) { [inG] q = Abs (p) }
<domain: "l", opset_import: ["": 17]> U (p) => (q) { [inU] q = Sin (p) }
<domain: "l", opset_import: ["": 17, "l": 1]> R (p) => (q) { [inR] q = l.R (p) }"""


def parts(text):
    proto = parser.parse_model(text)
    return GraphView(proto, proto.graph), propagate(Model(proto))


@pytest.mark.parametrize(
    "text, name, found",
    [
        (BODIES, "deep", [("Abs", "then_branch of 'inner' (If), in then_branch of 'if' (If)", "float[2]")]),
        (BODIES, "neg", [("Neg", "", "float[2]"), ("Neg", "else_branch of 'if' (If)", "float[2]")]),
        (BODIES, "step", [("Relu", "body of 'loop' (Loop)", "float[2]")]),
        (BODIES, "co", [("Identity", "body of 'loop' (Loop)", "bool[]")]),
        (FUNCTIONS, "inF", [("Neg", "function 'l::F', as 'call' (F) calls it", "float[2]")]),
        (
            FUNCTIONS,
            "inG",
            [
                (
                    "Abs",
                    "function 'l::G', as 'callG' (G) calls it, in function 'l::F', as 'call' (F) calls it",
                    "float[2]",
                )
            ],
        ),
        (FUNCTIONS, "inU", [("Sin", "function 'l::U', which nothing calls", "unknown")]),
        (FUNCTIONS, "inR", [("R", "function 'l::R', which nothing calls", "unknown")]),
    ],
)
def test_a_node_is_found_where_it_lives(text, name, found):
    look = look_at_node_named(*parts(text), name)
    assert [(node.operator, node.where, node.outputs[0].type) for node in look.nodes] == found


@pytest.mark.parametrize(
    "text, selection, nodes, values",
    [
        (BODIES, "op=Relu", ["step"], []),
        (BODIES, "op=Neg", ["neg", "neg", ""], []),
        (BODIES, "deep", ["deep"], []),
        (BODIES, "value=u", [], ["u"]),
        (FUNCTIONS, "op=Abs or op=Sin", ["inG", "inU"], []),
    ],
)
def test_a_selection_finds_what_lives_in_bodies_and_functions(text, selection, nodes, values):
    look = look_for(*parts(text), selection)
    assert [node.name for node in look.nodes] == nodes
    assert [value.name for value in look.values] == values


def test_a_selection_of_nothing_anywhere_is_an_error():
    with pytest.raises(NameNotFound, match="'op=Conv'"):
        look_for(*parts(BODIES), "op=Conv")


def test_a_value_is_found_where_it_lives():
    (value,) = look_at_value(*parts(BODIES), "v").values
    assert (value.where, value.kind, value.consumers) == ("body of 'loop' (Loop)", "input", ["'step' (Relu)"])
    assert len(look_at_value(*parts(BODIES), "p").values) == 2
    (value,) = look_at_value(*parts(FUNCTIONS), "t").values
    assert value.where == "function 'l::F', as 'call' (F) calls it"


def test_the_nearest_names_of_bodies_are_hints():
    with pytest.raises(NameNotFound, match="no node named 'depe'") as caught:
        look_at_node_named(*parts(BODIES), "depe")
    assert "'deep'" in caught.value.hint


def test_ten_functions_that_call_each_other_ten_times_are_ten_places():
    calls = " ".join(f"t{i + 1} = l.F@ (t{i})" for i in range(10))
    functions = [
        f'<domain: "l", opset_import: ["": 17, "l": 1]> F{k} (t0) => (t10) {{ {calls.replace("@", str(k + 1))} }}'
        for k in range(9)
    ]
    last = '<domain: "l", opset_import: ["": 17]> F9 (t0) => (t10) { [end] t10 = Abs (t0) }'
    text = '<ir_version: 10, opset_import: ["": 17, "l": 1]> g (float[2] x) => (float[2] y) { y = l.F0 (x) }'
    proto = parser.parse_model("\n".join([text, *functions, last]))
    from onnxbench.core.shapes import Shapes

    assert len(look_at_node_named(GraphView(proto, proto.graph), Shapes(), "end").nodes) == 1


def test_symbols_that_we_made_up_are_explained():
    text = """<ir_version: 8, opset_import: ["": 17]> g (float[N, ?, M] x) => (float[A, B] y)
    { i = NonZero (x) y = Cast <to = 1> (i) }"""
    report = inspect(Model(parser.parse_model(text)))
    (symbol,) = report.made_up
    assert (symbol.symbol, symbol.value, symbol.axis, symbol.run) == ("x_d1", "x", 1, False)
    report = inspect(Model(parser.parse_model(text.replace("float[A, B] y", "float[3, ?] y"))))
    assert [(s.symbol, s.value, s.axis, s.run) for s in report.made_up] == [
        ("i_d1", "i", 1, True),
        ("x_d1", "x", 1, False),
    ]
    look = look_at_value(*parts(text.replace("float[A, B] y", "float[3, ?] y")), "y")
    assert [symbol.symbol for symbol in look.made_up] == ["i_d1"]


def test_what_the_file_names_is_not_explained():
    text = '<ir_version: 8, opset_import: ["": 17]> g (float[N, "2*M"] x) => (float[N, "2*M"] y) { y = Relu (x) }'
    assert inspect(Model(parser.parse_model(text))).made_up == []
