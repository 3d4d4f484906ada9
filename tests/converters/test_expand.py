"""Function bodies of the specification in models that have names of their own."""

import json

import numpy as np
import onnx
import pytest
from onnx import checker
from onnx.reference import ReferenceEvaluator

from onnxbench.converters.certify import OPEN
from onnxbench.converters.recheck import recheck

from .judging import LIMITS, assert_same, convert, drawn, model_of, ops, run

NAN = "where its inputs hold NaN, it may differ"

TWICE = """g (float[{n},2,3] r1) => (float[{n},4,5,2] N_then, float[{n},4,5,2] g3) <int64[4] s = {{{n},3,4,5}}>
{{ N_then = AffineGrid (r1, s)  g3 = AffineGrid (r1, s) }}"""


@pytest.mark.parametrize("batch", [1, 2])
def test_branches_of_a_body_share_no_name_with_the_model(batch):
    source = model_of(TWICE.format(n=batch), 20)
    result, report = convert(source, 19)
    assert report.state == "verified"
    assert_same(source, result, {"r1": drawn(batch, 2, 3)})


def test_a_body_that_gives_a_name_twice_is_not_taken():
    body = "b (float[3] i) => (float[3] cond) { cond = Add (i, z) }"
    source = model_of(
        f"g (seq(float[3]) s, float[3] z) => (seq(float[3]) y) {{ y = SequenceMap <body = {body}> (s) }}", 17
    )
    result, report = convert(source, 16)
    assert (result, report.state) == (None, "refused")


def test_a_scalar_is_a_reshape_to_no_dims():
    source = model_of("g (float[1,1] x) => (float y) <int64[0] s = {}> { y = Reshape (x, s) }", 5)
    result, _ = convert(source, 4, verify=False)
    shape = result.graph.node[0].attribute[0]
    assert (shape.name, shape.type, list(shape.ints)) == ("shape", shape.INTS, [])
    assert np.prod(shape.ints) == 1


DYNAMIC = "g (float[2,3] x) => (uint8[2,3] y, float s, uint8 z, float[2,3] r) {{ {nodes} }}"
QUANTIZED = "y, s, z = DynamicQuantizeLinear (x)  r = DequantizeLinear (y, s, z)"


@pytest.mark.parametrize(("opset", "to", "expand"), [(11, 11, True), (11, 10, False), (13, 9, False), (18, 21, True)])
def test_a_dynamic_scale_is_a_scalar_also_of_zeros_alone(opset, to, expand):
    source = model_of(DYNAMIC.format(nodes=QUANTIZED), opset)
    result, report = convert(source, to, expand=frozenset(["DynamicQuantizeLinear"] if expand else []))
    assert report.state == "verified"
    assert "DynamicQuantizeLinear" not in ops(result)
    assert_same(
        source, result, *({"x": x} for x in (drawn(2, 3), np.zeros((2, 3), np.float32), -np.ones_like(drawn(2, 3))))
    )


def test_the_rank_of_a_made_value_is_that_of_the_source_where_the_body_does_not_tell():
    nodes = "q = Reshape (x, n)  y, s, z = DynamicQuantizeLinear (q)  r = DequantizeLinear (y, s, z)"
    text = f"g (float[2,3] x, int64[2] n) => (uint8[N,M] y, float s, uint8 z, float[N,M] r) {{ {nodes} }}"
    source = model_of(text, 13)
    result, report = convert(source, 9)
    assert report.state == "verified"
    assert_same(source, result, {"x": drawn(2, 3), "n": np.array([3, 2])})


def test_what_a_body_leaves_open_is_noted_and_holds_when_it_is_run_again(tmp_path):
    _, report = convert(model_of(DYNAMIC.format(nodes=QUANTIZED), 11), 10)
    path = tmp_path / "report.json"
    path.write_text(json.dumps(report.to_dict()))
    assert [row.reason for row in report.certificates] == ["; ".join([OPEN, NAN])]
    assert [row.state for row in recheck(str(path), LIMITS).rows] == ["same"]


def test_an_operator_to_expand_that_is_not_there_is_told():
    source = model_of(DYNAMIC.format(nodes=QUANTIZED), 13)
    _, report = convert(source, 13, expand=frozenset(["Gelu", "DynamicQuantizeLinear"]), verify=False)
    assert report.notes == ["--expand Gelu changed nothing: no node has that operator"]


ATTENTION = """g (float[1,2,8] q, float[1,2,8] k, float[1,2,8] v) => (float[A,B,C] y, float[D,E,F,G] s) {
  y, s = LinearAttention <q_num_heads = 2, kv_num_heads = 2, update_rule = "linear"> (q, k, v)
}"""


@pytest.mark.skipif(onnx.defs.onnx_opset_version() < 27, reason="LinearAttention came with opset 27")
@pytest.mark.parametrize("opset", [17, 13, 11, 9])
def test_what_stands_in_the_bodies_of_a_body_goes_all_the_way(opset):
    source = model_of(ATTENTION, 27, ir=10)
    result, report = convert(source, opset)
    assert report.state in ("verified", "certified")
    checker.check_model(result, full_check=True)
    feeds = {name: drawn(1, 2, 8, seed=seed) for seed, name in enumerate("qkv")}
    for want, got in zip(ReferenceEvaluator(source).run(None, feeds), run(result, feeds), strict=True):
        np.testing.assert_allclose(want, got, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("opset", [11, 9])
def test_branches_that_an_adapter_makes_go_all_the_way(opset):
    source = model_of("g (float[N,4] x, int64[2] s) => (float[A,B] y) { y = Reshape <allowzero = 1> (x, s) }", 14)
    result, report = convert(source, opset)
    assert report.state in ("verified", "certified")
    assert "If" in ops(result)
    assert_same(source, result, *({"x": drawn(n, 4), "s": np.array(s)} for n, s in ((3, [2, 6]), (0, [0, 7]))))
