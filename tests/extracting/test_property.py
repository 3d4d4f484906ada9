"""Whatever is cut out of a random graph computes what the whole computes there."""

import numpy as np
import onnx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from onnxbench.core.graph import GraphView
from onnxbench.core.model import Model
from onnxbench.errors import AnswerIsNo
from onnxbench.extracting.extract import extract_model
from onnxbench.extracting.request import ExtractRequest

from .graphs import FEEDS, instead, models, recorded, run

SLOW = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)


def check_piece(model, piece, known):
    onnx.checker.check_model(piece, full_check=True)
    got = run(piece, known)
    for name, value in got.items():
        want = np.broadcast_to(known[name], value.shape)
        np.testing.assert_array_equal(value, want, err_msg=name)
    assert {f.name for f in piece.functions} <= {"Pair", "Deep"}
    names = {value.name for value in piece.graph.input}
    if any(tensor.name == "o" for tensor in piece.graph.initializer):
        assert "o" in names  # overridable, as it was


def feeds_of(c):
    return {**FEEDS, "c": np.array(c)}


@SLOW
@given(models(), st.booleans(), st.data())
def test_between_values(drawn, c, data):
    model, _ = drawn
    known = recorded(model, feeds_of(c))
    made = [name for node in model.graph.node for name in node.output]
    to = data.draw(st.lists(st.sampled_from(made), min_size=1, max_size=3, unique=True))
    starts = data.draw(st.lists(st.sampled_from([*made, "x", "w", "o"]), max_size=3, unique=True))
    request = ExtractRequest(to=to, from_=starts, auto_inputs=True)
    if set(to) <= set(starts):
        with pytest.raises(AnswerIsNo):
            extract_model(Model(model), request)
        return
    result = extract_model(Model(model), request)
    piece = result.model.proto
    assert [value.name for value in piece.graph.output] == to
    check_piece(model, piece, known)
    stored = {tensor.name for tensor in piece.graph.initializer}
    fed = {value.name for value in piece.graph.input} - stored
    assert fed <= {*starts, "x", "z", "c"}


@SLOW
@given(models(), st.booleans(), st.data())
def test_a_block_of_nodes(drawn, c, data):
    model, _ = drawn
    known = recorded(model, feeds_of(c))
    names = [node.name for node in model.graph.node]
    chosen = data.draw(st.lists(st.sampled_from(names), min_size=1, max_size=5, unique=True))
    piece = extract_model(Model(model), ExtractRequest(nodes=chosen)).model.proto
    check_piece(model, piece, known)
    assert set(chosen) <= {node.name for node in piece.graph.node}


@SLOW
@given(models(), st.booleans())
def test_weights_become_inputs(drawn, c):
    model, _ = drawn
    known = recorded(model, feeds_of(c))
    piece = extract_model(Model(model), ExtractRequest(to=["y"], weights_as_inputs=True)).model.proto
    assert not piece.graph.initializer
    check_piece(model, piece, known)


@SLOW
@given(models(), st.data())
def test_what_a_body_computes(drawn, data):
    model, inner = drawn
    if not inner:
        return
    name, output = data.draw(st.sampled_from(inner))
    feeds = feeds_of(True)
    request = ExtractRequest(to=[name], with_data=True)
    result = extract_model(Model(model), request, lambda _: feeds)
    assert result.data is not None
    onnx.checker.check_model(result.model.proto, full_check=True)
    want = run(instead(model, name, output), feeds)[output]
    got = run(result.model.proto, result.data.inputs)[name]
    np.testing.assert_array_equal(np.broadcast_to(got, want.shape), want)
    np.testing.assert_array_equal(result.data.outputs[name], got)
    view = GraphView(result.model.proto, result.model.proto.graph)
    assert list(view.outputs) == [name]
