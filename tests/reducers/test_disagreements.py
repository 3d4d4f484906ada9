"""Real disagreements of OpenVINO and ONNX Runtime, planted in networks of 50 nodes, come out as the one node at fault.

They were found by `benchmarks/disagreements.py`, which runs onnx's node tests through both; docs/runtimes.md lists them.
Another release may have mended any of them: then its test is skipped, and says so.
"""

import re
from dataclasses import dataclass, field
from importlib.util import find_spec

import numpy as np
import pytest

from onnxbench import Tolerance, find
from onnxbench.core.compare import differ_all

from .conftest import model, names

pytestmark = pytest.mark.skipif(find_spec("openvino") is None, reason="pip install 'onnxbench[openvino]'")

SIXTEEN = np.linspace(-2, 2, 16, dtype=np.float32).reshape(1, 1, 4, 4)
RELEASES = ("2026.4.1 (f32)", "1.32.0")
KINDS = {"float32": "float", "int64": "int64"}


def otherwise(what):
    """It is not as written down: a fault with the releases that were looked at, no news with others."""
    (pytest.fail if (find("openvino").version(), find("onnxruntime").version()) == RELEASES else pytest.skip)(what)


def drawn(**shapes):
    generator = np.random.default_rng(0)
    return {name: generator.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}


PEEPHOLES = drawn(W=(1, 12, 4), R=(1, 12, 3), B=(1, 24), H=(1, 2, 3), P=(1, 9))


@dataclass(frozen=True)
class Recipe:
    """One node, with its adapters, between two chains of `op`.

    Attributes:
        lines: nodes from `a`, where the first chain ends, to `b`, where the second begins; one is called `culprit`.
        feed: what the first chain begins with.
        shape: of `b`.
        constants: initializers, in ONNX text.
        inputs: what else is fed.
    """

    lines: str
    feed: np.ndarray
    shape: str
    constants: str = ""
    op: str = "Tanh"
    opset: int = 19
    before: int = 24
    inputs: dict[str, np.ndarray] = field(default_factory=dict)

    def planted(self):
        dims = ", ".join(map(str, self.feed.shape))
        length = 50 - len(re.findall(r"\[[a-z]+\] ", self.lines))
        first = [f"[n{i}] {after} = {self.op} ({name})" for i, name, after in links("s", "x", "a", self.before)]
        second = [
            f"[m{i}] {after} = {self.op} ({name})" for i, name, after in links("t", "b", "y", length - self.before)
        ]
        more = "".join(f", {KINDS[v.dtype.name]}[{', '.join(map(str, v.shape))}] {n}" for n, v in self.inputs.items())
        graph = (
            f"agraph (float[{dims}] x{more}) => (float[{self.shape}] y) <{self.constants}> "
            f"{{ {' '.join([*first, self.lines, *second])} }}"
        )
        planted = model(graph, f'"": {self.opset}')
        assert len(planted.proto.graph.node) == 50
        return planted

    def feeds(self):
        return {"x": self.feed} | self.inputs


def links(stem, first, last, count):
    ends = [first, *(f"{stem}{i}" for i in range(1, count)), last]
    return [(i, ends[i], ends[i + 1]) for i in range(count)]


NUMBERS = {
    "cubic Resize ignores exclude_outside": Recipe(
        '[culprit] b = Resize <mode = "cubic", exclude_outside = 1, cubic_coeff_a = -0.5> (a, , scales)',
        SIXTEEN,
        "1, 1, 8, 8",
        "float[4] scales = {1, 1, 2, 2}",
    ),
    "linear Resize with antialias weighs its neighbours otherwise": Recipe(
        '[culprit] b = Resize <mode = "linear", antialias = 1> (a, , scales)',
        SIXTEEN,
        "1, 1, 2, 2",
        "float[4] scales = {1, 1, 0.6, 0.6}",
    ),
    "Resize ignores keep_aspect_ratio_policy": Recipe(
        '[culprit] b = Resize <mode = "nearest", axes = [2, 3], keep_aspect_ratio_policy = "not_larger"> (a, , , sizes)',
        SIXTEEN[:, :, :2, :2],
        "1, 1, H, W",
        "int64[2] sizes = {7, 8}",
    ),
    "LSTM ignores its peepholes": Recipe(
        "[culprit] skipped, b = LSTM <hidden_size = 3> (a, W, R, B, lengths, H, H, P)",
        np.linspace(-2, 2, 8, dtype=np.float32).reshape(1, 2, 4),
        "1, 2, 3",
        "int32[2] lengths = {1, 1}",
        inputs=PEEPHOLES,
    ),
    "MaxPool with ceil_mode makes windows that lie outside": Recipe(
        "[culprit] b = MaxPool <ceil_mode = 1, kernel_shape = [1, 1], strides = [2, 2]> (a)",
        SIXTEEN[:, :, :2, :2],
        "1, 1, H, W",
    ),
    "DFT ignores its axis": Recipe(
        "[culprit] b = DFT (a, , axis)",
        np.linspace(-2, 2, 100, dtype=np.float32).reshape(1, 10, 10, 1),
        "1, 10, 10, 2",
        "int64 axis = {2}",
        opset=20,
    ),
    "Add of uint8 saturates": Recipe(
        "[before] i = Cast <to = 2> (a) [culprit] j = Add (i, i) [after] b = Cast <to = 1> (j)",
        np.array([100, 200, 250], np.float32),
        "3",
        op="Neg",
    ),
    "Mul of int64 has 32 bits": Recipe(
        "[before] i = Cast <to = 7> (a) [culprit] j = Mul (i, i) [after] b = Cast <to = 1> (j)",
        np.array([100, 200_000, 3_000_000], np.float32),
        "3",
        op="Neg",
    ),
    "ReduceMax of nothing is a number": Recipe(
        "[culprit] b = ReduceMax <keepdims = 1> (a, axes)",
        np.zeros((2, 0, 4), np.float32),
        "2, 1, 4",
        "int64[1] axes = {1}",
        op="Neg",
        opset=20,
    ),
    "TopK with a k that is fed takes equals out of order": Recipe(
        "[before] i = Cast <to = 7> (a) [culprit] v, j = TopK (i, k) [after] b = Cast <to = 1> (j)",
        np.zeros(4, np.float32),
        "3",
        inputs={"k": np.array([3])},
        op="Neg",
    ),
    "DynamicQuantizeLinear rounds down": Recipe(
        "[culprit] q, s, z = DynamicQuantizeLinear (a) [after] b = Cast <to = 1> (q)",
        np.array([0, 2, -3, -2.5, 1.34, 0.5], np.float32),
        "6",
        op="Neg",
    ),
}


#: Who is suspected by whom: both ways are the same disagreement, so each is tried one way, in turn.
WAYS = [("openvino", "onnxruntime:opt=disable"), ("onnxruntime", "openvino")]


@pytest.mark.parametrize("name, suspect, against", [(name, *WAYS[place % 2]) for place, name in enumerate(NUMBERS)])
def test_wrong_numbers_are_reduced_to_the_node(reduced, name, suspect, against):
    recipe = NUMBERS[name]
    planted, feeds = recipe.planted(), recipe.feeds()
    got, wanted = (find(runtime).run(planted, feeds) for runtime in (suspect, against))
    if not got.ok or not wanted.ok or not differ_all(wanted.outputs, got.outputs, Tolerance()):
        otherwise(f"{suspect} {got.sentence()}, {against} {wanted.sentence()}, and they agree")
    report, left = reduced(planted, suspect, against, feeds=feeds)
    assert names(left) == ["culprit"]
    assert (report.status, report.confirmed, report.nodes_before, report.nodes_after) == ("minimal", True, 50, 1)
    assert report.signature["kind"] == "numbers"


FAILURES = {
    "openvino": {
        "Pad has no mode wrap": (
            Recipe(
                '[culprit] b = Pad <mode = "wrap"> (a, pads)',
                SIXTEEN,
                "1, 1, 6, 4",
                "int64[8] pads = {0, 0, 1, 0, 0, 0, 1, 0}",
            ),
            "Unsupported padding mode",
        ),
        "Mod of float needs fmod": (
            Recipe(
                "[culprit] b = Mod <fmod = 0> (a, two)",
                np.array([3, -3, 5], np.float32),
                "3",
                "float two = {2}",
                op="Neg",
                opset=28,
            ),
            "floating point",
        ),
        "Celu of float16 mixes types": (
            Recipe(
                "[before] h = Cast <to = 10> (a) [culprit] i = Celu (h) [after] b = Cast <to = 1> (i)",
                np.array([3, -3, 5], np.float32),
                "3",
                opset=28,
            ),
            "same element type",
        ),
        "GridSample has four dimensions": (
            Recipe(
                '[culprit] b = GridSample <mode = "linear"> (a, grid)',
                np.ones((1, 1, 2, 2, 2), np.float32),
                "1, 1, 1, 1, 1",
                "float[1, 1, 1, 1, 3] grid = {0, 0, 0}",
                opset=20,
            ),
            "4D input",
        ),
        "ReduceLogSum needs to know its axes": (
            Recipe(
                "[culprit] b = ReduceLogSum <keepdims = 0> (a, axes)",
                np.ones((3, 4, 5), np.float32),
                "3",
                inputs={"axes": np.array([2, 1])},
                opset=18,
            ),
            "dynamic rank",
        ),
        "Cast makes no strings": (
            Recipe(
                "[before] i = Abs (a) [culprit] j = Cast <to = 8> (i) [after] b = Cast <to = 1> (j)",
                np.ones(3, np.float32),
                "3",
            ),
            "Unsupported operation",
        ),
    },
    "onnxruntime": {
        "LSTM has no layout 1": (
            Recipe(
                "[culprit] skipped, b = LSTM <hidden_size = 3, layout = 1> (a, W, R)",
                np.ones((2, 1, 4), np.float32),
                "2, 1, 3",
                inputs=drawn(W=(1, 12, 4), R=(1, 12, 3)),
            ),
            "Batchwise recurrent operations",
        ),
        "ReduceMax of no booleans": (
            Recipe(
                "[before] i = Cast <to = 9> (a) [culprit] j = ReduceMax <keepdims = 1> (i, axes) [after] b = Cast <to = 1> (j)",
                np.zeros((2, 0, 4), np.float32),
                "2, 1, 4",
                "int64[1] axes = {1}",
                op="Neg",
                opset=20,
            ),
            "empty set",
        ),
    },
}


@pytest.mark.parametrize("suspect, name", [(suspect, name) for suspect, names in FAILURES.items() for name in names])
def test_what_only_one_can_run_is_reduced_to_the_node(reduced, suspect, name):
    recipe, words = FAILURES[suspect][name]
    (against,) = FAILURES.keys() - {suspect}
    planted, feeds = recipe.planted(), recipe.feeds()
    got, wanted = (find(runtime).run(planted, feeds) for runtime in (suspect, against))
    if got.ok or not wanted.ok or words not in got.message:
        otherwise(f"{suspect} {got.sentence()}, {against} {wanted.sentence()}")
    report, left = reduced(planted, suspect, against, feeds=feeds)
    assert names(left) == ["culprit"]
    assert (report.status, report.confirmed, report.nodes_before, report.nodes_after) == ("minimal", True, 50, 1)
    assert report.signature["kind"] in ("error", "unsupported")


def test_a_crash_is_reduced_to_the_node(reduced):
    """OpenVINO hands a string that comes in straight out again, and frees it twice."""
    chain = " ".join(f"[n{i}] {after} = Tanh ({name})" for i, name, after in links("t", "x", "y", 49))
    planted = model(
        f"g (float[3] x, string[2] s) => (float[3] y, string[2] t) {{ {chain} [culprit] t = Identity (s) }}"
    )
    feeds = {"x": np.ones(3, np.float32), "s": np.array(["a" * 50, "b" * 60], object)}
    got = find("openvino").run(planted, feeds)
    if got.kind != "crash":
        otherwise(f"openvino {got.sentence()}")
    report, left = reduced(planted, "openvino", feeds=feeds)
    assert names(left) == ["culprit"]
    assert (report.status, report.confirmed, report.nodes_before, report.nodes_after) == ("minimal", True, 50, 1)
    assert (report.signature["kind"], report.signature["detail"]) == ("crash", "SIGABRT")
