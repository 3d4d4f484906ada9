"""REPORT.md and report.html: what a maintainer needs is there, and no name of a model is obeyed."""

import subprocess
import sys
import time
from html.parser import HTMLParser

import numpy as np
import pytest
from onnx import helper, parser

from onnxbench import GraphView, Model, Reduction
from onnxbench.core.outline import outline
from onnxbench.reducers.catalogue import Known
from onnxbench.reducers.course import Point
from onnxbench.reducers.finding import Finding
from onnxbench.reducers.releases import Release
from onnxbench.reducers.result import Along, Culprit, Passing, Workaround
from onnxbench.render import html, markdown

CLIP = """<ir_version: 8, opset_import: ["": 17]>
g (double[1] x) => (double[1] y) <double w = {1}> { [a] h = Relu (x) [b] y = Clip (h, w) }"""
HOSTILE = "</title><script>alert(1)</script>\"'>`*[x](javascript:0)|&\x1b[31m\u202e"


def finding(text=CLIP, suspect="onnxruntime", feeds=None, **more):
    """A finding of a load error, or whatever else `more` says."""
    model = Model(parser.parse_model(text), label="small")
    report = Reduction("m.onnx", suspect, ["reference"], "minimal", versions={suspect: "1.32.0"}, failed=3, runs=3)
    report.signature = {"kind": "error", "detail": "Fail", "phase": "load", "message": "no", "sentence": "load error"}
    report.nodes_before, report.nodes_after, report.message = 50, 2, "no such thing"
    report.culprits = [Culprit("relu", "Relu", "r", ["r"], "encoder/layer.3", "net.py:12"), Culprit("c", "Clip", "d")]
    report.curve = [Point(0.0, 0, 50, 9000), Point(0.5, 3, 2, 100)]
    for name, value in more.items():
        setattr(report, name, value)
    view = GraphView(model.proto, model.proto.graph)
    return Finding(report, model, feeds or {"x": np.ones(1)}, outline(view, {0, 1}))


class Page(HTMLParser):
    """Tags and text of a page, which must be balanced."""

    VOID = ("meta", "path", "rect", "circle")

    def __init__(self, text):
        super().__init__()
        self.tags, self.said, self.links, self._open = [], "", [], []
        self.feed(text)
        assert self._open == []

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.links += [value for name, value in attributes if name in ("href", "src")]
        assert not [name for name, _ in attributes if name.startswith("on")]
        if tag not in self.VOID:
            self._open.append(tag)

    def handle_endtag(self, tag):
        if tag not in self.VOID:
            assert self._open.pop() == tag

    def handle_data(self, data):
        self.said += data


def test_a_report_has_what_a_maintainer_asks_for():
    shown = finding(
        known=[Known("microsoft/onnxruntime#11836", "fusing Relu and Clip")],
        lowest_failing="onnxruntime:opt=basic",
        cured_by_disabling=["FuseReluClip"],
        releases=[Release("onnxruntime@old", "1.20.0", "gone"), Release("onnxruntime@new", "1.23.2", "same")],
        since="works in 1.20.0, fails in 1.23.2",
        workarounds=[Workaround("setting", "onnxruntime:disable=FuseReluClip", True)],
        passing=Passing(["'b' (Clip) has no input 1"], True),
        by_products={"the process dies": 2},
        notes=["flaky"],
    )
    page = Page(html.reduction(shown)).said
    report = markdown.reduction(shown)
    assert report.startswith(
        "# onnxruntime 1.32.0: load error in Relu, Clip\n\n`onnxruntime 1.32.0` refuses to load a model"
    )
    for said in (report, page):
        for part in (
            *("microsoft/onnxruntime#11836", "opt=basic", "disabled_optimizers=['FuseReluClip']", "works in 1.20.0"),
            *("passing.onnx", "'b' (Clip) has no input 1", "passing.npz", "encoder/layer.3", "net.py:12"),
            *("no such thing", "from 50 nodes to 2", "the process dies", "Flaky.", "y = Clip (h, w)", "3 of 3 runs"),
        ):
            assert part in said
    assert "https://github.com/microsoft/onnxruntime/issues/11836" in Page(html.reduction(shown)).links


def test_differences_are_expected_and_actual_elements():
    numbers = {"kind": "numbers", "detail": "values", "phase": "", "message": "", "sentence": "wrong numbers"}
    row = {"name": "y", "kind": "values", "where": [0, 2], "want_at": 0.25, "got_at": "NaN", "max_abs": 0.5}
    row |= {"max_rel": None, "share": 0.25, "detail": ""}
    shown = finding(signature=numbers, message="", judge="reference", differences=[row])
    assert "| `y` | [0, 2] | 0.25 | `NaN` | 0.5 | - | 25 % |" in markdown.reduction(shown)
    assert "computes something else" in markdown.reduction(shown)
    shown.report.along = [Along("a", "Relu", 0.0, 0.0), Along("b", "Clip", 0.01, None), Along("c", "Sin", 0.0, 1e-9)]
    assert Page(html.reduction(shown)).tags.count("svg") == 3


@pytest.mark.parametrize("suspect", ["onnxruntime", "onnxruntime:opt=basic", "onnxruntime@here", "reference"])
def test_the_snippet_runs_by_itself(suspect, tmp_path):
    text = CLIP.replace("Clip", "Max")
    script = markdown.reduction(finding(text, suspect)).partition("```python\n")[2].partition("\n```")[0]
    done = subprocess.run(
        [sys.executable, "-I", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, "array([1.])" in done.stdout) == (0, True), done.stderr


@pytest.mark.parametrize(
    "feed",
    [
        np.float32(2),
        np.array([[1, 2.5]], np.float32),
        np.array([np.nan, np.inf], np.float16),
        np.zeros((0, 3), np.int8),
    ],
)
def test_the_snippet_feeds_the_same_values(feed):
    from onnxbench.render.snippet import _array

    again = eval(_array(np.asarray(feed)), {"np": np})
    assert again.dtype == np.asarray(feed).dtype
    np.testing.assert_array_equal(again, feed)


@pytest.mark.parametrize("change", [{"suspect": "onnxruntime:threads=1"}, {"feeds": {"x": np.ones(65)}}])
def test_what_a_snippet_cannot_say_is_left_to_the_script(change):
    report = markdown.reduction(finding(**change))
    assert "python repro.py" in report
    assert "```python" not in report


def hostile():
    shown = finding(
        suspect=HOSTILE,
        judge=HOSTILE,
        message=HOSTILE,
        known=[Known(HOSTILE, HOSTILE)],
        lowest_failing=HOSTILE,
        cured_by_disabling=[HOSTILE],
        releases=[Release(HOSTILE, HOSTILE, "same")],
        since=HOSTILE,
        workarounds=[Workaround("model", HOSTILE, False)],
        passing=Passing([HOSTILE], False),
        by_products={HOSTILE: 1},
        notes=[HOSTILE],
        culprits=[Culprit(HOSTILE, HOSTILE, HOSTILE, [HOSTILE], HOSTILE, HOSTILE)],
        versions={HOSTILE: HOSTILE},
        along=[Along(HOSTILE, HOSTILE, 0.1, 0.1)] * 2,
    )
    graph = shown.model.proto.graph
    graph.name = graph.input[0].name = graph.node[0].input[0] = graph.node[0].name = HOSTILE
    graph.node[0].op_type = graph.node[1].name = f"/{HOSTILE}/x"
    view = GraphView(shown.model.proto, graph)
    return Finding(shown.report, shown.model, {HOSTILE: np.ones(1)}, outline(view, {0}))


@pytest.mark.parametrize("kind", ["error", "numbers"])
def test_no_name_is_obeyed(kind):
    shown = hostile()
    shown.report.signature = dict.fromkeys(("detail", "phase", "message", "sentence"), HOSTILE) | {"kind": kind}
    row = dict.fromkeys(["name", "kind", "want_at", "got_at", "max_abs", "max_rel", "share", "detail"], HOSTILE)
    shown.report.differences = [{**row, "where": None}]
    written = html.reduction(shown)
    page = Page(written)
    assert "script" not in page.tags
    assert not [link for link in page.links if not link.startswith(("#", "https://github.com/"))]
    report = markdown.reduction(shown)
    for text in (written, report):
        assert "\x1b" not in text
        assert "\u202e" not in text
    for line in report.splitlines():  # what stands in prose is escaped, what stands in code is fenced
        if line.startswith(("#", "`", "-", "This")) and "script" in line:
            assert "`" in line or "\\<script\\>" in line


def test_errors_of_any_size_are_drawn():
    sizes = (0.0, 5e-324, 1.0, 1.7e308, None, float("inf"))
    shown = finding(along=[Along("a", "Abs", size, size) for size in sizes])
    assert Page(html.reduction(shown)).tags.count("svg") == 3
    assert "nan" not in html.reduction(shown)


def test_without_a_graph_or_anything_else_a_page_is_a_page():
    bare = finding(culprits=[], curve=[], versions={}, message="")
    page = Page(html.reduction(Finding(bare.report, bare.model, {}, None)))
    assert "svg" not in page.tags
    assert page.tags.count("h1") == 1


def test_a_page_needs_no_net_and_no_script():
    written = html.reduction(finding())
    assert "default-src 'none'" in written
    assert "prefers-color-scheme:dark" in written
    assert "http" not in written.replace("http-equiv", "")


def test_a_network_of_fifty_thousand_nodes_is_drawn_at_once():
    nodes = [helper.make_node("Abs", [f"t{i}"], [f"t{i + 1}"], f"/layer.{i // 500}/n{i}") for i in range(50_000)]
    ends = [helper.make_tensor_value_info(name, 1, [2]) for name in ("t0", "t50000")]
    proto = helper.make_model(helper.make_graph(nodes, "g", ends[:1], ends[1:]))
    small = finding(along=[Along(f"n{i}", "Abs", 0.0, 1e-6 * i) for i in range(2000)])
    began = time.perf_counter()
    drawn = outline(GraphView(proto, proto.graph), {30_000})
    written = html.reduction(Finding(small.report, small.model, {}, drawn))
    assert time.perf_counter() - began < 20  # about one on a quiet machine
    assert len(written) < 400_000
    assert 'id="culprit"' in written
