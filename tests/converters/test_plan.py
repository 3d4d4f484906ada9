"""What a plan says before anything is done, and what a refusal offers."""

import pytest
from onnx import TensorProto, helper, parser

from onnxbench import Model
from onnxbench.converters import schemas
from onnxbench.converters.options import ConvertOptions
from onnxbench.converters.plan import plan_model
from onnxbench.converters.verdict import verdict
from onnxbench.core.graph import plain_domain
from onnxbench.errors import NameNotFound, UsageError

from .judging import convert, model_of

LONE = """<ir_version: 8, opset_import: ["": 20, "c": 1]>
g (float[2,3] x) => (float[2,3] y) { y = Relu (x) }
<domain: "c", opset_import: ["": 20]> lone (a) => (b) { b = Gelu (a) }"""
BODIES = """g (float[2,3,4] x, bool c) => (float[2,3,4] y) {
  first = Softmax <axis = 1> (x)
  y = If (c) <
    then_branch = then () => (float[2,3,4] p) { p = Softmax <axis = 1> (first) },
    else_branch = other () => (float[2,3,4] q) { q = Relu (first) }>
}"""
KINDS = """<ir_version: 8, opset_import: ["": 13, "c": 1]>
g (float[2,3,4] x, float[2,3] z) => (float[2,3,4] y, float[2,3] w) { y = c.soft (x)  w = c.soft (z) }
<domain: "c", opset_import: ["": 13]> soft (a) => (b) { b = Hardmax <axis = 1> (a) }"""


def plan(source, to, *about, **options):
    return plan_model(Model(source, label="m"), ConvertOptions(targets={"": to}, **options), about)


def test_a_refusal_in_a_function_that_nothing_calls_says_so():
    source = parser.parse_model(LONE)
    result, report = convert(source, 13)
    assert result is None
    stop = verdict(report)
    assert "in function lone, which nothing calls: Gelu 20 to 19" in stop.message
    assert "onnxbench extract m --to OUTPUTS" in stop.hint


def test_a_function_that_training_calls_is_called():
    source = parser.parse_model(LONE)
    info = source.training_info.add()
    info.algorithm.CopyFrom(parser.parse_graph("a (float[2,3] i) => (float[2,3] o) { o = c.lone (i) }"))
    _, report = convert(source, 13)
    assert [entry.where for entry in report.refusals] == ["function lone"]


@pytest.mark.parametrize(
    ("body", "opset", "to", "furthest"),
    [
        ("y = GridSample (x, x)", 17, 13, {"ai.onnx": 16}),
        ('a = Mish (x)  y = GridSample <mode = "bicubic", padding_mode = "reflection"> (a, x)', 19, 9, {"ai.onnx": 16}),
        ("y = Scatter (x, i, x)", 10, 8, {"ai.onnx": 9}),
    ],
)
def test_a_refusal_says_how_far_the_model_can_go(body, opset, to, furthest):
    source = model_of(f"g (float[2,2,2,2] x, int64[2,2,2,2] i) => (float[2,2,2,2] y) {{ {body} }}", opset)
    result, report = convert(source, to)
    assert result is None
    assert report.furthest == furthest
    reached = furthest["ai.onnx"]
    assert f"onnxbench convert m --to {reached}" in verdict(report).hint
    assert convert(source, reached, verify=False)[0] is not None
    assert convert(source, reached - 1, verify=False)[0] is None
    assert plan(source, to).furthest == furthest


def test_nothing_is_offered_where_the_model_cannot_move():
    source = model_of("g (float[2] x) => (float[2] y) { y = Nonsense (x) }", 13)
    result, report = convert(source, 11)
    assert (result, report.furthest) == (None, {})
    assert verdict(report).hint == "--dry-run says which opsets all of its nodes allow"


def test_nodes_are_asked_about_by_selections_wherever_they_stand():
    source = model_of(BODIES, 13)
    assert [row.output for row in plan(source, 11).asked] == ["first", "p", "q", "y"]
    assert [row.output for row in plan(source, 11, "op=Softmax").asked] == ["first", "p"]
    assert [row.output for row in plan(source, 11, "q", "f*").asked] == ["first", "q"]
    assert [row.output for row in plan(source, 11, "Relu that makes 'q'").asked] == ["q"]
    asked = plan(source, 11, "q").to_dict()
    assert [(row["output"], row["op"], row["domain"], row["index"]) for row in asked["nodes"]] == [
        ("q", "Relu", "ai.onnx", 0)
    ]
    assert (asked["lowest"], asked["highest"]) == (1, 28)
    for text, kind in (("p and", UsageError), ("fist", NameNotFound), ("x", NameNotFound)):
        with pytest.raises(kind):
            plan(source, 11, text)


def test_a_plan_tells_the_ir_version_and_what_conversion_does_to_functions():
    source = parser.parse_model(KINDS)
    result, report = convert(source, 11)
    told = plan(source, 11)
    assert result is not None
    assert [row.action for row in told.rows if row.op == "Hardmax"] == ["rewritten", "unchanged"]
    assert told.notes == report.notes
    assert len(told.notes) == 2
    assert (told.ir_before, told.ir_after) == (report.ir_before, report.ir_after)


@pytest.mark.parametrize(
    ("node", "opset", "reason"),
    [
        ('y = ScatterND <reduction = "add"> (x, i, x)', 16, "ScatterND-13 has no reduction (add)"),
        ('y = ScatterElements <reduction = "mul"> (x, i, x)', 16, "ScatterElements-13 has no reduction (mul)"),
    ],
)
def test_texts_of_attributes_are_told_as_texts(node, opset, reason):
    told = plan(model_of(f"g (float[2,2] x, int64[2,2] i) => (float[2,2] y) {{ {node} }}", opset), 13)
    assert [row.reason for row in told.rows] == [reason]


def test_what_is_not_known_can_be_told():
    body = "t = mine.Foo (x)  y = Hardmax <axis = 0> (t)"
    source = model_of(f"g (float[2,3] x) => (float[2,3] y) {{ {body} }}", 13, more=', "mine": 1')
    result, report = convert(source, 11)
    assert (result, report.refusals[0].reason) == (None, "the rank of t is not known")
    assert "value_info" in verdict(report).hint
    source.graph.value_info.append(helper.make_tensor_value_info("t", TensorProto.FLOAT, [2, 3]))
    assert convert(source, 11, verify=False)[0] is not None


def test_an_experiment_goes_as_far_as_its_successors():
    source = model_of("g (float[2] x) => (float[2] y) { y = Affine <alpha = 2.0, beta = 1.0> (x) }", 6)
    (row,) = plan(source, 13).rows
    assert (row.action, row.lowest, row.highest) == ("rewritten", 6, schemas.newest(""))


TWO = """<ir_version: 8, opset_import: ["": 20, "ai.onnx.ml": 5]>
g (float[2,2,2,2] x, float[2,2,2,2] i) => (float[2,2,2,2] y) {{ {} }}"""


@pytest.mark.parametrize(
    ("body", "furthest"),
    [
        # One domain stays where it is, and the other one can be taken all the way.
        ("t = Relu (x)  y = ai.onnx.ml.TreeEnsemble <n_targets = 1> (t)", {"ai.onnx": 13}),
        # Nothing of ai.onnx.ml is there to be in the way.
        ("y = GridSample (x, i)", {"ai.onnx": 16, "ai.onnx.ml": 1}),
        ("t = GridSample (x, i)  y = ai.onnx.ml.TreeEnsemble <n_targets = 1> (t)", {"ai.onnx": 16}),
    ],
)
def test_of_each_domain_it_is_said_how_far_it_can_go(body, furthest):
    source, targets = parser.parse_model(TWO.format(body)), {"": 13, "ai.onnx.ml": 1}
    result, report = convert(source, targets)
    assert result is None
    assert report.furthest == furthest
    assert plan_model(Model(source, label="m"), ConvertOptions(targets=targets)).furthest == furthest
    nearer = {plain_domain(name): to for name, to in furthest.items()}
    assert convert(source, nearer, verify=False)[0] is not None
