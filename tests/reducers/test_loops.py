"""Culprits inside the bodies of loops, in the round that fails."""

import numpy as np
import pytest

from .conftest import model, names

LOOP = """agraph (float[4] x) => (float[4] y) <int64 m = {{6}}, bool go = {{1}}> {{
  [before] a = Sin (x)
  [loop] b = Loop (m, go, a) <body = body (int64 i, bool c, float[4] s) => (bool c2, float[4] t) {{
    [keep] c2 = Identity (c) [one] p = Sin (s) [two] q = {op} (p) [three] t = Add (q, x) }}>
  [after] y = Cos (b) }}"""

SCAN = """agraph (float[4] x, float[5, 4] z) => (float[4] y, float[5, 4] w) {
  [before] a = Sin (x)
  [scan] b, w = Scan <num_scan_inputs = 1, body = body (float[4] s, float[4] e) => (float[4] t, float[4] o) {
    [one] p = Sin (s) [two] q = Softsign (p) [three] t = Add (q, e) [four] o = Neg (t) }> (a, z)
  [after] y = Cos (b) }"""

NESTED = """agraph (float[4] x) => (float[4] y) <int64 m = {3}, bool go = {1}> {
  [outer] y = Loop (m, go, x) <body = body (int64 i, bool c, float[4] s) => (bool c2, float[4] t) {
    [keep] c2 = Identity (c) [one] p = Sin (s)
    [inner] q = Loop (m, go, p) <body = body2 (int64 j, bool d, float[4] u) => (bool d2, float[4] v) {
      [keep2] d2 = Identity (d) [two] v0 = Softsign (u) [three] v = Sin (v0) }>
    [four] t = Cos (q) }> }"""

BRANCHED = """agraph (float[4] x) => (float[4] y) <int64 m = {{4}}, bool go = {{1}}, int64 none = {{0}}> {{
  [loop] y = Loop (m, go, x) <body = body (int64 i, bool c, float[4] s) => (bool c2, float[4] t) {{
    [keep] c2 = Identity (c) [one] p = Sin (s) [when] k = {when}
    [if] q = If (k) <then_branch = g1 () => (float[4] u) {{ [two] u0 = Cos (p) [three] u = Softsign (u0) }},
                     else_branch = g2 () => (float[4] v) {{ [four] v = Cos (p) }}>
    [five] t = Add (q, x) }}> }}"""


@pytest.mark.parametrize("deed", ["wrong", "raise", "nan"])
@pytest.mark.parametrize("graph, left", [(LOOP.format(op="Softsign"), ["two"]), (SCAN, ["two"]), (NESTED, ["two"])])
def test_a_culprit_in_a_body_is_left_alone(reduced, deed, graph, left):
    report, found = reduced(model(graph), f"misbehaving:ops=Softsign,do={deed}")
    assert (report.status, report.confirmed, names(found)) == ("minimal", True, left)


def test_only_a_late_round_fails(reduced):
    """A maximum masks the fault until the sum is large: only the last rounds are worth stepping into."""
    graph = """agraph (float[1] x) => (float[1] z) <int64 m = {8}, bool go = {1}, float[1] least = {7.5}> {
      [loop] y, z = Loop (m, go, x, x) <body = body (int64 i, bool c, float[1] s, float[1] e) => (
        bool c2, float[1] t, float[1] f) {
        [keep] c2 = Identity (c) [one] t = Add (s, x) [two] q = Relu (t) [three] f = Max (q, least) }> }"""
    report, found = reduced(model(graph), "misbehaving:ops=Relu", feeds={"x": np.ones(1, np.float32)})
    assert (report.status, names(found)) == ("minimal", ["two"])


def test_a_loop_that_is_part_of_the_failure_stays(reduced):
    _, found = reduced(model(LOOP.format(op="Softsign")), "misbehaving:ops=Softsign,inside=1")
    assert names(found) == ["loop"]


@pytest.mark.parametrize(
    "deed, when",
    [
        ("wrong", "Identity (c)"),
        ("load", "Identity (c)"),
        ("wrong", "Greater (i, none)"),
        ("load", "Greater (i, none)"),  # not taken in the first round, which fails to load all the same
        ("load", "Greater (none, i)"),  # never taken
    ],
)
def test_an_if_in_a_body_is_opened_too(reduced, deed, when):
    report, found = reduced(model(BRANCHED.format(when=when)), f"misbehaving:ops=Softsign,do={deed}")
    assert (report.status, report.confirmed, names(found)) == ("minimal", True, ["three"])
