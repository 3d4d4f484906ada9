"""The command line as a user has it: a subprocess in a folder of its own."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import onnx
import pytest
from onnx import parser

Run = Callable[..., subprocess.CompletedProcess[str]]

#: microsoft/onnxruntime#11836, float64 Relu + Clip inside other nodes: refuses to load above opt=disable.
RELU_CLIP = """<ir_version: 8, opset_import: ["": 17]>
g (double[3] x) => (double[3] y) <double lo = {-1}, double hi = {1}> {
  [s0] a0 = Sin (x) [s1] a1 = Sin (a0) [s2] a2 = Sin (a1) [relu] r = Relu (a2) [clip] c = Clip (r, lo, hi)
  [s3] a3 = Sin (c) [s4] y = Sin (a3) }"""

HEALTHY = """<ir_version: 8, opset_import: ["": 17]>
g (float[N, 3] x) => (float[N, 3] y) { [a] h = Relu (x) [b] y = Neg (h) }"""


@pytest.fixture
def bench(tmp_path: Path) -> Run:
    """Run `onnxbench ...` in a temporary folder."""

    def run(*arguments: str, **more: object) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "onnxbench", *map(str, arguments)]
        settings: dict[str, object] = {"cwd": tmp_path, "capture_output": True, "text": True, "timeout": 120, **more}
        return subprocess.run(command, check=False, **settings)  # type: ignore[call-overload, no-any-return]

    return run


@pytest.fixture
def relu_clip(tmp_path: Path) -> Path:
    return write(tmp_path / "relu_clip.onnx", RELU_CLIP)


@pytest.fixture
def healthy(tmp_path: Path) -> Path:
    return write(tmp_path / "healthy.onnx", HEALTHY)


def write(path: Path, text: str) -> Path:
    onnx.save(parser.parse_model(text), path)
    return path
