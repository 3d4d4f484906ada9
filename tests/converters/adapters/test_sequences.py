"""Sequences that loops carry."""

import numpy as np

from tests.converters.adapters.same import assert_same, refusals

LOOP = """
<ir_version: 8, opset_import: ["": 13]>
g (int64 n, bool yes, float[M] x, seq(float[N]) start) => (seq(float[N]) y, float[K] z) {{
    y, z = Loop(n, yes, start, x) <
        body = body (int64 i, bool on, seq({list}) s, float[K] a) => (bool go, seq({list}) t, float[K] b) {{
        go = Identity(on)  b = Concat<axis = 0>(a, a)  t = SequenceInsert(s, a{place})
    }}>
}}
"""
X = np.array([1, 2], np.float32)


def lists(*lengths):
    return [np.arange(length, dtype=np.float32) for length in lengths]


def test_lists_are_added():
    text = LOOP.format(list="float[N]", place="")
    for rounds in (0, 1, 3):
        feeds = {"n": np.array(rounds), "yes": np.array(True), "x": X, "start": lists(2, 0, 3)}
        assert_same(text, 11, feeds)


def test_sequences_of_nothing_known():
    assert "lists" in refusals(LOOP.format(list="float[N,M]", place=""), 11)[0]


def test_what_is_not_added_at_the_end():
    assert "more" in refusals(LOOP.format(list="float[N]", place=", i"), 11)[0]


def test_a_sequence_is_mapped():
    text = """
    <ir_version: 8, opset_import: ["": 17]>
    g (seq(float[N]) x) => (seq(float[N]) y) {
        y = SequenceMap(x) <body = body (float[N] a) => (float[N] b) { b = Neg(a) }>
    }
    """
    assert_same(text, 11, {"x": lists(2, 0, 5)})
