"""Real disagreements of OpenVINO and ONNX Runtime, planted in networks of 50 nodes, come out as the one node at fault.

They were found by `benchmarks/disagreements.py`, which runs onnx's node tests through both; docs/runtimes.md lists them.
A later release may mend any of them: then its test is skipped, and says so.
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
PEEPHOLES = {
    "W": "float[1, 12, 4]",
    "R": "float[1, 12, 3]",
    "B": "float[1, 24]",
    "H": "float[1, 2, 3]",
    "P": "float[1, 9]",
}


@dataclass(frozen=True)
class Recipe:
    """One node, with its adapters, between two chains of `op`.

    Attributes:
        lines: nodes from `a`, where the first chain ends, to `b`, where the second begins; one is called `culprit`.
        feed: what the first chain begins with.
        shape: of `b`.
        constants: initializers, in ONNX text.
    """

    lines: str
    feed: np.ndarray
    shape: str
    constants: str = ""
    op: str = "Tanh"
    opset: int = 19
    before: int = 24
    inputs: dict[str, str] = field(default_factory=dict)

    def planted(self):
        dims = ", ".join(map(str, self.feed.shape))
        length = 50 - len(re.findall(r"\[[a-z]+\] ", self.lines))
        first = [f"[n{i}] {after} = {self.op} ({name})" for i, name, after in links("s", "x", "a", self.before)]
        second = [
            f"[m{i}] {after} = {self.op} ({name})" for i, name, after in links("t", "b", "y", length - self.before)
        ]
        more = "".join(f", {kind} {name}" for name, kind in self.inputs.items())
        graph = (
            f"agraph (float[{dims}] x{more}) => (float[{self.shape}] y) <{self.constants}> "
            f"{{ {' '.join([*first, self.lines, *second])} }}"
        )
        planted = model(graph, f'"": {self.opset}')
        assert len(planted.proto.graph.node) == 50
        return planted

    def feeds(self):
        draw = np.random.default_rng(0)
        sizes = {
            name: [int(n) for n in kind.split("[")[1].rstrip("]").split(",")] for name, kind in self.inputs.items()
        }
        return {"x": self.feed} | {name: draw.normal(size=size).astype(np.float32) for name, size in sizes.items()}


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
    "TopK takes the later of equals": Recipe(
        "[culprit] v, i = TopK (a, k) [after] b = Cast <to = 1> (i)",
        np.zeros(4, np.float32),
        "3",
        "int64[1] k = {3}",
        op="Neg",
    ),
    "DynamicQuantizeLinear rounds down": Recipe(
        "[culprit] q, s, z = DynamicQuantizeLinear (a) [after] b = Cast <to = 1> (q)",
        np.array([0, 2, -3, -2.5, 1.34, 0.5], np.float32),
        "6",
        op="Neg",
    ),
}


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("suspect, against", [("openvino", "onnxruntime:opt=disable"), ("onnxruntime", "openvino")])
def test_wrong_numbers_are_reduced_to_the_node(reduced, name, suspect, against):
    recipe = NUMBERS[name]
    planted, feeds = recipe.planted(), recipe.feeds()
    got, wanted = (find(runtime).run(planted, feeds) for runtime in (suspect, against))
    assert got.ok, got.message
    assert wanted.ok, wanted.message
    if not differ_all(wanted.outputs, got.outputs, Tolerance()):
        pytest.skip(f"they agree: {find('openvino').version()}")
    report, left = reduced(planted, suspect, against, feeds=feeds)
    assert names(left) == ["culprit"]
    assert (report.status, report.confirmed, report.nodes_before, report.nodes_after) == ("minimal", True, 50, 1)
    assert report.signature["kind"] == "numbers"
