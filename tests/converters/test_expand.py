"""Function bodies of the specification in models that have names of their own."""

import numpy as np
import pytest

from .judging import assert_same, convert, drawn, model_of

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
