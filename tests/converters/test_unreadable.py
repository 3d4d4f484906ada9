"""Nodes that break the rules of their operator are refused, and faults of our own are not blamed on them."""

import numpy as np
import pytest
from onnx import parser

from onnxbench import Model
from onnxbench.converters import engine
from onnxbench.converters.engine import Engine
from onnxbench.converters.names import Names
from onnxbench.converters.options import ConvertOptions
from onnxbench.converters.places import Places
from onnxbench.converters.plan import plan_model
from onnxbench.converters.run import convert_model
from onnxbench.converters.site import Open
from onnxbench.converters.storage import Storage
from onnxbench.converters.walk import Path

from .judging import convert, model_of

NODES = {
    'Softmax <axis = "q"> (x)': (13, 9),
    "Hardmax <axis = [1]> (x)": (13, 9),
    "Unsqueeze ()": (13, 9),
    'Clip <min = "a"> (x)': (9, 13),
    'TopK <k = "a"> (x)': (9, 13),
    'Cast <to = "no type"> (x)': (5, 6),
    "ReverseSequence (x)": (12, 9),
}


@pytest.mark.parametrize("node", NODES)
def test_what_cannot_be_read_is_refused(node):
    opset, to = NODES[node]
    source = model_of(f"g (float[2,3] x) => (float[2,3] y) {{ y = {node} }}", opset)
    result, report = convert(source, to)
    assert result is None
    assert report.refusals
    told = plan_model(Model(source, label="m"), ConvertOptions(targets={"": to}))
    assert [row.action for row in told.rows] == ["refused"]


def test_a_fault_of_ours_is_not_blamed_on_the_node(monkeypatch):
    monkeypatch.setattr("onnxbench.converters.walk._MOST_STEPS", 1)
    source = model_of("g (float[2,3] x) => (float[2,3] y) { y = Softmax <axis = 0> (x) }", 13)
    result, report = convert(source, 9)
    assert result is None
    assert report.refusals[0].reason == "a fault of onnxbench, not of the model: Softmax goes in circles"


CALLS = """<ir_version: 8, opset_import: ["": 11, "l": 1]>
g (float[2] x) => (float[2] y) { y = l.f <r = 1.0> (x) }
<domain: "l", opset_import: ["": 11]> f <r> (x) => (y) { y = LeakyRelu <alpha: float = @r> (x) }"""


def test_nothing_stays_of_a_walk_that_did_not_know_an_attribute(monkeypatch):
    """The node is walked again as its calls bind it: what the first walk stored and noted is not of that."""
    source = Model(parser.parse_model(CALLS), label="m")
    options = ConvertOptions(targets={"": 13})
    places = Places(source, options)
    function = source.proto.functions[0]

    class Opened(engine.Walk):
        def taken(self, node, start):
            if node.attribute[0].ref_attr_name:
                self.storage.store(np.float32([7]), "left")
                self.path.adapted = self.path.by_body = True
                raise Open("r is an attribute of the function")
            return [node]

    monkeypatch.setattr(engine, "Walk", Opened)
    made = Engine(source, source.proto, options)
    storage, path = Storage(True, Names(set)), Path("LeakyRelu", [])
    (node,) = made.walk(function.node[0], 11, 13, places.function(function), storage, 0, path)
    assert node.attribute[0].f == 1.0
    assert storage.tensors == {}
    assert (path.adapted, path.by_body) == (False, False)


def test_functions_of_one_name_are_told_apart_by_their_domain():
    """Only the function that is refused gets copies for its calls."""
    text = """<ir_version: 8, opset_import: ["": 13, "a": 1, "b": 1]>
    g (float[2,3,4] x, float[2,3] z) => (float[2,3,4] y, float[2,3] w, float[2,3,4] v, float[2,3] u)
    { y = a.soft (x)  w = a.soft (z)  v = b.soft (x)  u = b.soft (z) }
    <domain: "a", opset_import: ["": 13]> soft (i) => (o) { o = Hardmax <axis = 1> (i) }
    <domain: "b", opset_import: ["": 13]> soft (i) => (o) { o = Relu (i) }"""
    result, _ = convert_model(
        Model(parser.parse_model(text), label="m"), ConvertOptions(targets={"": 11}, verify=False)
    )
    assert result is not None
    assert [(f.domain, f.name) for f in result.proto.functions] == [("a", "soft"), ("b", "soft"), ("a", "soft_2")]
