"""Culprits in local functions that have to stay functions, and branches that have to stay branches."""

import pytest

from .conftest import model, names

CALLS = """agraph (float[4] x) => (float[4] y) {
  [n] h = Sin (x) [call] k = local.outer (h) [other] l = local.outer (k) [e] y = Cos (l) }"""
FUNCTIONS = """<domain: "local", opset_import: ["": 17, "local": 1]> outer (a) => (b) { [inner] b = local.middle (a) }
<domain: "local", opset_import: ["": 17, "local": 1]> middle (a) => (b) { [p] c = Sin (a) [inmost] b = local.inner (c) }
<domain: "local", opset_import: ["": 17]> inner (a) => (b) { [q] c = Softsign (a) [r] b = Cos (c) }"""
BRANCHES = """agraph (float[4] x) => (float[4] y) <bool yes = {1}> {
  [if] h = If (yes) <then_branch = g1 () => (float[4] u) {
    [inner] u = If (yes) <then_branch = g2 () => (float[4] v) { [two] v = Softsign (x) },
                          else_branch = g3 () => (float[4] w) { [three] w = Cos (x) }> },
    else_branch = g4 () => (float[4] z) { [four] z = Cos (x) }>
  [after] y = Sin (h) }"""


@pytest.mark.parametrize("deed", ["wrong", "load"])
def test_a_function_that_only_calls_another_goes(reduced, deed):
    planted = model(CALLS, '"": 17, "local": 1', FUNCTIONS)
    report, found = reduced(planted, f"misbehaving:ops=Softsign,do={deed},inside=1")
    assert (report.status, report.confirmed, len(found.graph.node)) == ("minimal", True, 1)
    assert [function.name for function in found.functions] == ["inner"]


def test_all_functions_go_where_none_is_needed(reduced):
    _, found = reduced(model(CALLS, '"": 17, "local": 1', FUNCTIONS), "misbehaving:ops=Softsign")
    assert ([node.op_type for node in found.graph.node], len(found.functions)) == (["Softsign"], 0)


@pytest.mark.parametrize("deed", ["wrong", "load"])
def test_the_inner_of_two_branches_stays(reduced, deed):
    report, found = reduced(model(BRANCHES), f"misbehaving:ops=Softsign,do={deed},inside=1")
    assert (report.status, names(found)) == ("minimal", ["inner"])
