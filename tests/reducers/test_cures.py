"""The optimizer at fault is named, and only if switching it off was seen to cure the failure."""

import pytest

from onnxbench import Model, find
from onnxbench.core.feeds import generate
from onnxbench.core.graph import GraphView
from onnxbench.reducers.cures import find_cures

from .conftest import chain, model

RELU_CLIP = """relu_clip (double[2, 4] x) => (double[2, 4] y) <double low = {0.0}, double high = {6.0}> {
    [scaled] s = Add (x, x) [relu] r = Relu (s) [clip] c = Clip (r, low, high) [tanh] y = Tanh (c) }"""


def runs(subject: Model, runtime: str) -> bool:
    return find(runtime).run(subject, generate(GraphView(subject.proto, subject.proto.graph))).ok


def test_the_guilty_optimizer_is_named_and_is_guilty(reduced):
    """ONNX Runtime fuses a double Relu with a Clip into a Clip with float bounds (microsoft/onnxruntime#11836)."""
    broken = model(RELU_CLIP, '"": 13')
    assert not runs(broken, "onnxruntime")
    report, _ = reduced(broken, "onnxruntime")
    assert report.cured_by_disabling == ["FuseReluClip"]
    assert report.lowest_failing == "onnxruntime:opt=basic"
    assert runs(broken, "onnxruntime:disable=FuseReluClip")
    assert not runs(broken, report.lowest_failing)


def test_what_the_user_switched_off_stays_off():
    suspect = find("onnxruntime:disable=ConstantFolding,opt=extended")
    assert "ConstantFolding" not in suspect.optimizers()
    assert str(suspect.without(["FuseReluClip"])) == "onnxruntime:opt=extended,disable=ConstantFolding+FuseReluClip"
    assert [runtime.options["opt"] for runtime in suspect.levels()] == ["disable", "basic", "extended"]
    assert all(runtime.options["disable"] == ["ConstantFolding"] for runtime in suspect.levels())


def test_a_fault_of_no_optimizer_names_none(reduced):
    report, _ = reduced(chain(8, {3: "Softsign"}), "misbehaving:ops=Softsign,do=raise")
    assert (report.lowest_failing, report.cured_by_disabling) == ("", [])


@pytest.mark.parametrize("guilty", [(), ("a",), ("c", "g"), ("h",)])
def test_each_single_cure_is_found_and_groups_without_one_are_asked_once(guilty):
    names = "abcdefgh"
    asked = []

    class Suspect:
        off = frozenset()

        def levels(self):
            return [LOWEST, self]

        def optimizers(self):
            return names

        def without(self, more):
            changed = Suspect()
            changed.off = frozenset(more)
            return changed

    LOWEST = Suspect()

    def ask(runtime):
        asked.append(runtime.off)
        return "gone" if runtime is LOWEST or runtime.off & set(guilty) else "same"

    suspect = Suspect()
    assert find_cures(suspect, ask).optimizers == guilty
    assert len(asked) <= 2 + 1 + 2 * len(guilty) * 3
