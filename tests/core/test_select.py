from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx.parser import parse_model

from onnxbench.core.graph import GraphView
from onnxbench.core.select import select
from onnxbench.errors import NameNotFound, UsageError


def graph():
    model = parse_model("""
    <ir_version: 8, opset_import: ["": 17, "com.microsoft": 1]>
    agraph (float[2] x, bool c) => (float[2] y) <float16[2] h, float[2] w = {1, 2}> {
        a = Relu(x)
        h = Cast<to = 10>(a)
        b = Cast<to = 1>(h)
        d = com.microsoft.FusedGelu(b)
        y = If(c) <then_branch = t () => (float[2] p) { p = Neg(d) },
                   else_branch = e () => (float[2] q) { q = Add(d, w) }>
    }""")
    names = ["/layer1/Relu", "/layer1/Cast", "/layer10/Cast", "Gelu and [more], here", ""]
    for node, name in zip(model.graph.node, names, strict=True):
        node.name = name
    model.graph.node[3].metadata_props.add(key="pkg.torch.onnx.name_scopes", value="['', 'layer3', 'layer3.act']")
    return GraphView(model, model.graph)


@pytest.mark.parametrize(
    "text, nodes, values",
    [
        ("/layer1/Relu", [0], []),
        ("a", [], ["a"]),
        ("Gelu and [more], here", [3], []),
        ("'Gelu and [more], here' or a", [3], ["a"]),
        ("op=Cast", [1, 2], []),
        ("op=C*", [1, 2], []),
        ("op=FusedGelu", [3], []),
        ("op=com.microsoft::FusedGelu", [3], []),
        ("op=ai.onnx::*", [0, 1, 2, 4], []),
        ("scope=/layer1", [0, 1], []),
        ("scope=layer3", [3], []),
        ("scope=layer3.act", [3], []),
        ("dtype=float16", [1], ["h"]),
        ("dtype=float and value=w", [], ["w"]),
        ("value=a", [], ["a"]),
        ("node=/layer1/Cast", [1], []),
        ("op=Cast and not scope=/layer1", [2], []),
        ("not op=Cast", [0, 3, 4], []),
        ("/layer1/* and op=Cast", [1], []),
        ("op=Relu, a", [0], ["a"]),
        ("not (op=Relu or op=Cast) and op=*", [3, 4], []),
        ("op=Relu or op=Cast and scope=layer10", [0, 2], []),
        ("?", [], ["x", "c", "w", "a", "h", "b", "d", "y"]),
    ],
)
def test_what_a_text_selects(text, nodes, values):
    selection = select(graph(), text)
    assert ([node.index for node in selection.nodes], selection.values) == (nodes, values)


def test_node_set_adds_producers():
    view = graph()
    assert [node.index for node in select(view, "a, op=FusedGelu, w").node_set(view)] == [0, 3]


@pytest.mark.parametrize(
    "text, place", [("op=Cast and", 12), ("(a", 3), ("a b", 3), ("", 1), ("a or 'b", 6), ("a )", 3)]
)
def test_a_text_that_cannot_be_read_says_where(text, place):
    with pytest.raises(UsageError, match=f"at character {place}:") as caught:
        select(graph(), text)
    assert caught.value.code == "OB204"


@pytest.mark.parametrize(
    "text, hint",
    [
        ("/layer1/Rleu", "/layer1/Relu"),
        ("node=/LAYER1/relu", "/layer1/Relu"),
        ("op=Casst", "op=Cast"),
        ("'/layer1/*'", "/layer1/"),
    ],
)
def test_an_absent_name_suggests_the_nearest(text, hint):
    with pytest.raises(NameNotFound) as caught:
        select(graph(), text)
    assert (caught.value.code, hint in caught.value.hint) == ("OB303", True)


def test_an_unknown_dtype_is_a_mistake_in_the_text():
    with pytest.raises(UsageError, match="flaot16") as caught:
        select(graph(), "dtype=flaot16")
    assert "float16" in caught.value.hint


def test_a_value_inside_a_body_is_named_as_such():
    with pytest.raises(NameNotFound, match="lives inside the then_branch of If that makes 'y'"):
        select(graph(), "p")


@given(st.text(alphabet="ab ()',\"=*not andorop\\", max_size=30))
def test_any_text_selects_or_is_refused_politely(text):
    with suppress(UsageError, NameNotFound):
        selection = select(graph(), text)
        assert selection.nodes or selection.values


def test_endless_parentheses_are_refused():
    with pytest.raises(UsageError, match="too many levels"):
        select(graph(), "(" * 5000 + "a" + ")" * 5000)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ('op="Gelu"', "'op=FusedGelu'"),
        ("op=com.microsoft::Gelu and a", "'op=FusedGelu'"),
        ("op=Conv", "its operators are 'Cast', 'FusedGelu', 'If', 'Relu'"),
    ],
)
def test_an_operator_that_is_not_there_gets_a_hint(text, hint):
    with pytest.raises(NameNotFound) as caught:
        select(graph(), text)
    assert hint in caught.value.hint
