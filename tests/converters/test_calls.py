"""Functions whose calls do not give the same: attributes that are left out, and what one function hands on to another."""

import pytest
from onnx import parser

from .judging import assert_same, convert, drawn

X = {"x": drawn(1, 3, 1)}


def calling(main: str, *functions: str, opset: int = 11):
    head = f'<ir_version: 10, opset_import: ["": {opset}, "l": 1]>'
    bodies = [f'<domain: "l", opset_import: ["": {opset}, "l": 1]> {body}' for body in functions]
    return parser.parse_model("\n".join([head, main, *bodies]))


TWO = "g (float[1,3,1] x) => (float[A,B,C] y, float[D,E,F] z) { y = l.f (x) z = l.f <r=%s> (x) }"
LEFT_OUT = {
    "Clip": (TWO % "0.2", "f <r> (x) => (y) { y = Clip <max: float = @r> (x) }"),
    "ReduceSum": (TWO % "[0, 1]", "f <r> (x) => (y) { y = ReduceSum <axes: ints = @r> (x) }"),
    "Squeeze": (
        TWO.replace("A,B,C", "A").replace("D,E,F", "D,E") % "[0]",
        "f <r> (x) => (y) { y = Squeeze <axes: ints = @r> (x) }",
    ),
}


@pytest.mark.parametrize("name", LEFT_OUT)
@pytest.mark.parametrize("to", [13, 21])
def test_an_attribute_that_one_call_leaves_out(name, to):
    source = calling(*LEFT_OUT[name], opset=10)
    result, report = convert(source, to)
    assert report.state == "verified"
    assert_same(source, result, X)


def test_an_attribute_that_every_call_gives_stays_a_reference():
    main = "g (float[1,3,1] x) => (float[A,B,C] y, float[D,E,F] z) { y = l.f <r=[1]> (x) z = l.f <r=[0]> (x) }"
    source = calling(main, LEFT_OUT["ReduceSum"][1])
    result, _ = convert(source, 13)
    assert_same(source, result, X)
    assert len(result.functions) == 1


def test_what_is_handed_from_function_to_function():
    main = "g (float[1,3,1] x) => (float[1,3,1] y, float[1,3,1] z) { y = l.f <b=1> (x) z = l.f <b=0> (x) }"
    outer, inner = (
        "f <b> (x) => (y) { y = l.h <a: int = @b> (x) }",
        "h <a> (x) => (y) { y = Softmax <axis: int = @a> (x) }",
    )
    source = calling(main, outer, inner)
    result, report = convert(source, 13)
    assert report.state == "verified"
    assert_same(source, result, X)


@pytest.mark.parametrize(("op", "opset", "to"), [("Softmax", 11, 13), ("Gelu", 17, 20)])
def test_a_function_with_the_name_of_an_operator_is_refused(op, opset, to):
    text = f"g (float[2] x) => (float[2] y) {{ y = {op} (x) }}"
    function = f'<domain: "", opset_import: ["": {opset}]> {op} (x) => (y) {{ y = Relu (x) }}'
    source = parser.parse_model(f'<ir_version: 10, opset_import: ["": {opset}]>\n{text}\n{function}')
    result, report = convert(source, to)
    assert result is None
    assert "name of an operator" in report.refusals[0].reason
