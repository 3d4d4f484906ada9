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


def doubling(levels):
    """Functions of which each calls the next one twice: written out they would be 2 to the power of `levels` nodes."""
    calls = [f"t = local.f{i + 1} (a) b = local.f{i + 1} (t)" for i in range(levels)] + ["b = Softsign (a)"]
    return " ".join(
        f'<domain: "local", opset_import: ["": 17, "local": 1]> f{i} (a) => (b) {{ {body} }}'
        for i, body in enumerate(calls)
    )


def test_functions_that_nobody_could_write_out_are_opened_one_by_one(reduced):
    planted = model("agraph (float[4] x) => (float[4] y) { y = local.f0 (x) }", '"": 17, "local": 1', doubling(18))
    report, found = reduced(planted, "misbehaving:ops=Softsign,do=load", timeout=2)
    assert (report.status, report.confirmed, [node.op_type for node in found.graph.node]) == (
        "minimal",
        True,
        ["Softsign"],
    )


def test_a_hang_in_functions_that_nobody_could_write_out_is_handed_back_with_the_reason(reduced):
    planted = model(
        "agraph (float[4] x) => (float[4] y) { [a] h = Neg (x) y = local.f0 (h) }", '"": 17, "local": 1', doubling(40)
    )
    report, found = reduced(planted, "misbehaving:ops=f0,do=hang", timeout=2)
    assert (report.status, [node.op_type for node in found.graph.node]) == ("minimal", ["f0"])
    written_out = 2**40
    assert any(f"{written_out:,} nodes" in note for note in report.notes)
