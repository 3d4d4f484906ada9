"""What is handed back as a way around works on the whole model, and computes the same."""

import sys

import numpy as np
import pytest

from onnxbench import Limits, Request, Tolerance, find, load, reduce
from onnxbench.converters.runtime_target import newest_opset
from onnxbench.core.compare import differ_all
from onnxbench.core.feeds import generate
from onnxbench.core.graph import GraphView
from onnxbench.core.types import infer
from onnxbench.reducers.workarounds import Fault, opset, rewrites, rewritten, ways
from onnxbench.runtimes.command import Command

from .conftest import model, ops

GELU = """agraph (float[N, 4] x) => (float[N, 4] y) {
  [a] v0 = Sin (x) [b] v1 = Gelu (v0) [c] v2 = Cos (v1) [d] y = Tanh (v2) }"""
FUSED = "agraph (float[N, 4] x) => (float[N, 4] y) { [a] v0 = Sin (x) [b] v1 = Cos (v0) [c] v2 = Tanh (v1) [d] y = Neg (v2) }"
HALF = "agraph (float16[3, 4] x) => (float16[3, 4] y) { [a] v0 = Sin (x) [b] v1 = Add (v0, x) [c] y = Tanh (v1) }"


def outputs(subject, runtime="onnxruntime:opt=disable"):
    outcome = find(runtime).run(subject, generate(GraphView(subject.proto, subject.proto.graph)))
    assert outcome.ok, outcome.sentence()
    return outcome.outputs


CONSTANT = (
    "agraph (float[2, 4] x) => (float[2, 4] y) <float[4] c = {1, 2, 3, 4}> { k = Erf (c) t = Neg (x) y = Add (t, k) }"
)
SUM = """agraph (float[N, 4] x) => (float[N] y) <int64[1] axes = {1}> {
  [a] v0 = Sin (x) [b] v1 = ReduceSum <keepdims = 0> (v0, axes) [c] y = Tanh (v1) }"""

#: A check that fails where a node reads "kept": the field of a node's inputs comes before the name.
READS_KEPT = r"""import sys
sys.exit(3 if b"\n\x04kept" in open(sys.argv[1], "rb").read() else 0)
"""


@pytest.mark.parametrize(
    "graph, opset, suspect, name",
    [
        (SUM, 17, "misbehaving:ops=ReduceSum,constant=1", "another opset"),
        (GELU, 20, "misbehaving:ops=Gelu", "expanded"),
        (FUSED, 17, "misbehaving:fused=Cos+Tanh", "barrier"),
        (FUSED, 17, "misbehaving:fused=Cos+Tanh,do=raise", "barrier"),
        (CONSTANT, 17, "misbehaving:ops=Erf", "folded"),
    ],
)
def test_a_rewritten_model_passes_where_the_original_fails(reduced, tmp_path, graph, opset, suspect, name):
    broken, target = model(graph, f'"": {opset}'), tmp_path / "around.onnx"
    report, _ = reduced(broken, suspect, workaround=str(target))
    assert [w.how.partition(":")[0] for w in report.workarounds if w.kind == "model"] == [name]
    assert report.workaround == str(target)
    around, wanted = load(target), outputs(broken)
    assert not differ_all(wanted, outputs(around, suspect), Tolerance())
    faulty = find(suspect).run(broken, generate(GraphView(broken.proto, broken.proto.graph)))
    assert not faulty.ok or differ_all(wanted, faulty.outputs, Tolerance())
    assert [v.name for v in around.proto.graph.output] == ["y"]


def test_where_nothing_helps_no_model_is_written_and_that_is_said(reduced, tmp_path):
    target = tmp_path / "around.onnx"
    report, _ = reduced(model(FUSED), "misbehaving:ops=Cos", workaround=str(target))
    assert not target.exists()
    assert (report.workaround, report.workarounds) == (None, [])
    assert any("rewritten" in note for note in report.notes)


def test_an_optimizer_is_switched_off_before_a_level(reduced):
    text = "agraph (double[2, 4] x) => (double[2, 4] y) <double lo = {0}, double hi = {6}> { r = Relu (x) y = Clip (r, lo, hi) }"
    report, _ = reduced(model(text), "onnxruntime")
    assert [(w.kind, w.how, w.verified) for w in report.workarounds] == [
        ("setting", "onnxruntime:disable=FuseReluClip", True)
    ]


@pytest.mark.parametrize("name", [entry.name for entry in rewrites()])
def test_every_rewrite_computes_the_same(name):
    entry = next(entry for entry in rewrites() if entry.name == name)
    source = model({"island": HALF}.get(name, GELU), '"": 20')
    changed = rewritten(source.proto, entry, {"v0", "v1"}, infer(source))
    assert changed is not None
    assert ops(changed) != ops(source.proto)
    result = type(source)(changed, label="changed")
    assert not differ_all(outputs(source), outputs(result), Tolerance())
    if name == "island":
        assert ops(changed).count("Cast") == 5
        assert outputs(result)["y"].dtype == np.float16


def test_a_barrier_on_a_scalar(reduced):
    entry = next(entry for entry in rewrites() if entry.name == "barrier")
    source = model("agraph (float x) => (float y) { h = Sin (x) y = Cos (h) }")
    changed = rewritten(source.proto, entry, {"h", "y"}, infer(source))
    assert ops(changed) == ["Sin", "Max", "Cos"]
    assert not differ_all(outputs(source), outputs(type(source)(changed, label="changed")), Tolerance())


def test_another_opset_is_told_with_its_command_if_no_setting_helps(reduced):
    report, _ = reduced(model(SUM), "misbehaving:ops=ReduceSum,constant=1")
    assert [(w.kind, w.how, w.verified) for w in report.workarounds] == [
        ("model", "another opset: onnxbench convert model.onnx --to 12 -o fixed.onnx", True)
    ]


def test_a_command_that_decides_has_its_way_around_compared_by_others(tmp_path):
    (tmp_path / "check.py").write_text(READS_KEPT)
    broken, target = model(SUM.replace("axes", "kept")), tmp_path / "around.onnx"
    feeds = generate(GraphView(broken.proto, broken.proto.graph))
    suspect, trusted = Command(f"{sys.executable} -S -I {tmp_path}/check.py"), [find("onnxruntime:opt=disable")]
    report = reduce(Request(broken, feeds, suspect, trusted, passes=(), workaround=str(target)))
    assert [(w.how.partition(":")[0], w.verified) for w in report.workarounds] == [("another opset", True)]
    assert ops(load(target).proto) == ["Sin", "ReduceSum", "Tanh"]


def test_an_opset_that_the_whole_model_cannot_be_brought_to_is_skipped(reduced):
    text = """agraph (float[1, 1, 4, 2] x, float[1, 4, 2, 2] k) => (float[1, 1, 4] y, float[1, 1, 4, 2] z) <int64[1] axes = {3}> {
      [b] y = ReduceSum <keepdims = 0> (x, axes) [c] z = GridSample (x, k) }"""
    report, _ = reduced(model(text), "misbehaving:ops=ReduceSum,constant=1,do=raise")
    assert [culprit.name for culprit in report.culprits] == ["b"]
    assert report.workarounds == []


def tried(text, start, suspect="onnxruntime"):
    """The opsets that are tried for a model, none of which helps."""
    broken, asked = model(text, f'"": {start}'), []
    fault = Fault(broken, broken, lambda m: asked.append(m.proto.opset_import[0].version), find(suspect), Limits(20))
    assert [list(entry.propose(fault)) for entry in ways() if entry.name == "another opset"] == [[], []]
    return asked


@pytest.mark.parametrize(
    "start, wanted",
    [(17, [18, 22, 28, 16, 5]), (12, [13, 22, 28, 11, 5]), (0, []), (2**31, [])],
)
def test_opsets_that_are_tried_have_other_versions(start, wanted):
    newest = newest_opset(find("onnxruntime"), 20, Limits(20))
    text = "agraph (float[2, 3] x) => (float[2, 3] y) { y = Elu (x) }"
    told = tried(text, start)
    assert told == [newest if opset == 28 else opset for opset in wanted]


def test_the_command_does_not_compare_where_the_runtime_at_fault_would(monkeypatch):
    def convert(source, options):
        return (None if options.verify else source), None

    monkeypatch.setattr(opset, "convert_model", convert)
    broken = model(SUM)
    fault = Fault(broken, broken, lambda m: True, find("onnxruntime"), Limits(20))
    sentence, _ = next(opset.with_as_many_nodes(fault))
    assert sentence == "onnxbench convert model.onnx --to 18 -o fixed.onnx --no-verify"
