"""Verification: a wrong rule is caught, certificates can be run again, and plans tell what would be done."""

import dataclasses
import json

import numpy as np
import pytest
from onnx import parser

from onnxbench import Model
from onnxbench.converters import adapters, certify
from onnxbench.converters.believed import Ran, is_believed
from onnxbench.converters.nonfinite import without_lost_ends
from onnxbench.converters.options import ConvertOptions
from onnxbench.converters.plan import plan_model
from onnxbench.converters.recheck import recheck
from onnxbench.converters.report import Certificate
from onnxbench.converters.runtime_target import target_of
from onnxbench.converters.undefined import comes_to_undefined
from onnxbench.converters.verdict import verdict
from onnxbench.converters.written import read, written
from onnxbench.errors import ModelError
from onnxbench.runtimes.outcome import Outcome

from .judging import LIMITS, convert, model_of

SOFTMAX = "g (float[2,3,4] x) => (float[2,3,4] y) { y = Softmax <axis=1> (x) }"
HIDDEN = """g (float[2,3,4] x, bool c) => (float[2,3,4] y) {
  n = Not (c)
  a = And (c, n)
  y = If (a) <
    then_branch = then () => (float[2,3,4] p) { p = Softmax <axis = 1> (x) },
    else_branch = other () => (float[2,3,4] q) { q = Relu (x) }>
}"""


@pytest.fixture
def wrong_softmax(monkeypatch):
    """A rule that forgets that the meaning has changed."""
    adapters.registered()  # loads them
    monkeypatch.setitem(adapters._adapters, ("", "Softmax", 11, 13), lambda site: site.same())


@pytest.mark.parametrize("body", [SOFTMAX, HIDDEN], ids=["plain", "in a branch that is never taken"])
def test_a_wrong_rule_is_caught(wrong_softmax, body):
    result, report = convert(model_of(body, 11), 13)
    assert result is None
    assert report.state == "mismatch"
    assert report.exit_code == 5
    assert "Softmax" in report.reason


def test_a_right_rule_is_not():
    for body in (SOFTMAX, HIDDEN):
        _, report = convert(model_of(body, 11), 13)
        assert report.state in ("verified", "certified")
        assert [certificate.state for certificate in report.certificates] == ["same"]


def test_certificates_can_be_run_again(tmp_path):
    _, report = convert(model_of(SOFTMAX, 11), 13)
    path = tmp_path / "report.json"
    path.write_text(json.dumps(report.to_dict()))
    again = recheck(str(path), LIMITS)
    assert [row.state for row in again.rows] == ["same"]
    assert again.exit_code == 0
    (certificate,) = report.certificates
    forged = dataclasses.replace(certificate, new=certificate.old)
    assert forged.new != certificate.new
    report.certificates = [dataclasses.replace(certificate, new=certificate.new.replace("Softmax", "LogSoftmax"))]
    path.write_text(json.dumps(report.to_dict()))
    assert recheck(str(path), LIMITS).exit_code == 5


@pytest.mark.parametrize("text", ["", "{}x", "[]", '{"verification": {"certificates": [{"node": 1}]}}'])
def test_what_is_no_report_is_refused(tmp_path, text):
    path = tmp_path / "report.json"
    path.write_text(text)
    with pytest.raises(ModelError) as caught:
        recheck(str(path), LIMITS)
    assert caught.value.code == "OB302"


def test_small_models_can_be_written_and_read():
    model = model_of(SOFTMAX, 11)
    assert "Softmax" in written(model)
    assert read(written(model)).graph.node[0].op_type == "Softmax"
    model.graph.doc_string = "what text does not say"
    assert read(written(model)) == model


def test_equal_nodes_share_a_certificate():
    body = "g (float[2,3,4] x) => (float[2,3,4] y) { a = Softmax <axis=1> (x) b = Softmax <axis=1> (a) y = Softmax <axis=0> (b) }"
    _, report = convert(model_of(body, 11), 13)
    assert [bool(certificate.like) for certificate in report.certificates] == [False, True, False]
    assert report.certificates[1].like == report.certificates[0].node


def test_outputs_that_never_change_verify_nothing():
    body = "g (float[2,3] x) => (float[2,3] y) { z = Sub (x, x) y = Softmax <axis=0> (z) }"
    _, report = convert(model_of(body, 11), 13)
    assert report.state == "certified"
    assert "whatever the inputs" in report.reason


def test_what_no_runtime_knows_is_not_verified():
    body = "g (float[2,3] x) => (float[2,3] y) { a = mine.Odd (x) y = Relu (a) }"
    _, report = convert(model_of(body, 11, more=', "mine": 1'), 13)
    assert report.state in ("unverified", "certified")
    assert report.runs == 0
    assert report.reason


def test_a_plan_says_what_becomes_of_each_node():
    body = "g (float[2,3,4] x) => (float[2,3,4] y) { a = Softmax <axis=1> (x) b = Relu (a) y = Nonsense (b) }"
    plan = plan_model(Model(model_of(body, 13), label="m"), ConvertOptions(targets={"": 9}))
    assert [row.action for row in plan.rows] == ["rewritten", "unchanged", "refused"]
    softmax = plan.rows[0]
    assert softmax.steps == ("Softmax 13 to 11",)
    assert softmax.result == ("Transpose", "Softmax", "Transpose")
    assert (softmax.lowest, softmax.highest) == (1, 28)
    assert plan.exit_code == 1


def test_the_range_of_a_node_ends_where_its_operator_begins():
    body = "g (float[2,3] x) => (bool[2,3] y) { y = IsInf (x) }"
    plan = plan_model(Model(model_of(body, 13), label="m"), ConvertOptions(targets={"": 11}))
    lowest = plan.rows[0].lowest
    result, _ = convert(model_of(body, 13), lowest, verify=False)
    assert result is not None
    if lowest > 1:
        assert convert(model_of(body, 13), lowest - 1, verify=False)[0] is None


def test_a_runtime_says_what_it_loads():
    found = target_of("onnxruntime")
    assert found.opsets[""] >= 21
    result, _ = convert(model_of(SOFTMAX, 11), found.opsets[""], ir_most=found.ir)
    assert result.ir_version <= found.ir


def test_a_function_of_another_opset_is_named_where_it_makes_the_difference():
    source = parser.parse_model("""<ir_version: 8, opset_import: ["": 13, "c": 1]>
    g (float[2,3,4] x) => (float[2,3,4] y) { y = c.soft (x) }
    <domain: "c", opset_import: ["": 11]> soft (a) => (b) { b = Softmax <axis = 1> (a) }""")
    result, report = convert(source, 17)
    assert (result, report.state) == (None, "mismatch")
    assert "function 'soft' is of opset 11 in a model of opset 13, and Softmax is not the same in both" in report.reason
    assert "--against reference" in verdict(report).hint


def test_the_sentence_of_inference_is_kept(monkeypatch):
    adapters.registered()
    monkeypatch.setitem(adapters._adapters, ("", "Softmax", 11, 13), lambda site: site.same(axis=7))
    _, report = convert(model_of(SOFTMAX, 11), 13)
    assert report.reason.startswith("shape inference refuses the result: ")
    assert "axis" in report.reason


@pytest.mark.parametrize(
    ("report", "says"),
    [
        ({"schema": "onnxbench.fold/1"}, "is of schema 'onnxbench.fold/1'"),
        ({"verification": {}}, "is no report of a conversion"),
        ({"schema": "onnxbench.conversions/1"}, "is damaged"),
    ],
)
def test_a_report_of_something_else_is_told(tmp_path, report, says):
    path = tmp_path / "report.json"
    path.write_text(json.dumps(report))
    with pytest.raises(ModelError, match=says):
        recheck(str(path), LIMITS)


def test_a_report_without_certificates_says_why(tmp_path):
    path = tmp_path / "report.json"
    for source, options, says in (
        (model_of(SOFTMAX, 11), {"verify": False}, "holds no certificates: verification is off"),
        (model_of("g (float[2] x) => (float[2] y) { y = Nonsense (x) }", 11), {}, "the model was refused"),
    ):
        _, report = convert(source, 13, **options)
        path.write_text(json.dumps(report.to_dict()))
        with pytest.raises(ModelError, match=says):
            recheck(str(path), LIMITS)
    _, report = convert(model_of("g (float[2] x) => (float[2] y) { y = Relu (x) }", 11), 13)
    path.write_text(json.dumps(report.to_dict()))
    assert recheck(str(path), LIMITS).rows == []


@pytest.mark.parametrize(("scale", "state"), [("0.0", "untold"), ("2.0", "differs")])
def test_scales_of_zero_tell_nothing(scale, state):
    head = f"g (float[4] x) => (uint8[4] y) <float s = {{{scale}}}, uint8 z = {{7}}>"
    old = model_of(f"{head} {{ y = QuantizeLinear (x, s, z) }}", 13)
    new = model_of(f"{head} {{ a = Abs (x)  b = Clip (a, , s)  y = Cast <to = 2> (b) }}", 13)
    assert certify.compare(old, new, LIMITS, by_body=False).state == state


def test_infinity_may_end_in_nan_but_not_in_a_number(monkeypatch):
    made = "float[2,3,4,5] y, float[2,3,4,1] m, float[2,3,4,1] i"
    text = f"g (float[2,3,4,5] x, float[5] w, float[5] b) => ({made}) {{ y, m, i = LayerNormalization (x, w, b) }}"
    result, report = convert(model_of(text, 17), 13)
    assert (result is not None, report.state) == (True, "verified")
    adapters.registered()
    monkeypatch.setitem(adapters._adapters, ("", "Softmax", 11, 13), lambda site: site.put("Clip", [site.input(0)]))
    assert convert(model_of(SOFTMAX, 11), 13)[1].state == "mismatch"


def test_only_nan_against_infinity_is_levelled():
    values = (
        np.float32([np.nan, np.inf, -np.inf, 1, np.inf, np.nan]),
        np.float32([np.inf, np.nan, np.inf, np.inf, np.inf, np.nan]),
    )
    one, other = (Ran(Outcome("ok", outputs={"y": value}), True) for value in values)
    first, second = (ran.outcome.outputs["y"] for ran in without_lost_ends(one, other))
    np.testing.assert_array_equal(first, np.float32([0, 0, -np.inf, 1, np.inf, np.nan]))
    np.testing.assert_array_equal(second, np.float32([0, 0, np.inf, np.inf, np.inf, np.nan]))


def test_nan_against_infinity_counts_where_no_infinity_went_in():
    head = "g (float[4] x) => (float[4] y)"
    old = model_of(f"{head} {{ z = Sub (x, x)  y = Div (z, z) }}", 13)
    new = model_of(f"{head} {{ z = Sub (x, x)  e = Exp (z)  y = Div (e, z) }}", 13)
    assert certify.compare(old, new, LIMITS, by_body=False).state == "differs"


def test_casts_that_name_their_type_are_no_whole_numbers():
    """Before opset 6 `to` is a text."""
    form = model_of('g (float[2] x) => (int32[2] y) { y = Cast <to = "INT32"> (x) }', 5)
    assert not comes_to_undefined(form, {"x": np.float32([np.inf, 1])}, LIMITS)
    form = model_of("g (float[2] x) => (int32[2] y) { y = Cast <to = 6> (x) }", 6)
    assert comes_to_undefined(form, {"x": np.float32([np.inf, 1])}, LIMITS)


def test_what_a_certificate_says_of_empty_inputs_comes_after_what_it_said_before(monkeypatch):
    said = iter(["where its inputs hold NaN, it may differ", ""])
    states = iter(["same", "differs"])

    def compared(old, new, limits, *, by_body):
        return Certificate("", "", "", next(states), 1, next(said), "", "")

    monkeypatch.setattr(certify, "compare", compared)
    source = model_of("g (float[N,4] x) => (float[N,4] y) { y = Gelu (x) }", 20)
    _, report = convert(source, 13)
    assert report.certificates[0].reason == f"where its inputs hold NaN, it may differ; {certify.EMPTY}"


def test_the_reference_evaluator_is_not_believed_about_regions_before_opset_16():
    """It samples RoiAlign-10 as RoiAlign-16 does by default, half an element away."""
    source = model_of(
        """g (float[1,1,10,10] x, float[3,4] r, int64[3] b) => (float[3,1,5,5] y) {
          y = RoiAlign <coordinate_transformation_mode = "output_half_pixel", output_height = 5, output_width = 5> (x, r, b)
        }""",
        22,
        ir=10,
    )
    result, report = convert(source, 13)
    assert (report.state, report.reason) == ("verified", "")
    assert not is_believed(Model(result))
    assert is_believed(Model(source))
