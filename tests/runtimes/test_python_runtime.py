"""A Python function as a runtime: whatever it does is an outcome."""

import numpy as np
import pytest
from onnx import numpy_helper
from onnx.parser import parse_model

from onnxbench.core.model import Model
from onnxbench.core.weights import slim
from onnxbench.errors import UsageError
from onnxbench.runtimes.base import Limits
from onnxbench.runtimes.find import find

MODEL = parse_model('<ir_version: 10, opset_import: ["": 21]> g (float[2] x) => (float[2] y) { y = Neg(x) }')
X = np.array([1, 2], np.float32)


@pytest.fixture
def outcome(tmp_path):
    """What comes of the function `f` of a source."""

    def make(source, model=None, feeds=None, **options):
        file = tmp_path / "under_test.py"
        file.write_text(source)
        return find(f"python:{file}:f").run(model or Model(MODEL), feeds or {"x": X}, **options)

    return make


@pytest.mark.parametrize(
    "source",
    [
        "def f(feeds): return {'y': -feeds['x']}",
        "def f(feeds, scale=-1.0): return {'y': scale * feeds['x']}",
        "def f(model, feeds): import onnx; onnx.ModelProto.FromString(model).graph.node[0]; return {'y': -feeds['x']}",
        "def f(model, feeds, scale=-1.0): assert isinstance(model, bytes); return {'y': scale * feeds['x']}",
        "class F:\n    def __call__(self, feeds): return [('y', -feeds['x'])]\nf = F()",
    ],
)
def test_functions_of_feeds_and_of_model_and_feeds(outcome, source):
    result = outcome(source)
    assert result.ok, result.message
    assert result.outputs["y"].tolist() == [-1, -2]


@pytest.mark.parametrize(
    "source, phase, error",
    [
        ("def f(feeds): raise KeyError('k')", "run", "KeyError"),
        ("def f(feeds): import sys; sys.exit(3)", "run", "SystemExit"),
        ("def f(feeds): return 3", "run", "TypeError"),
        ("def f(): return {}", "run", "TypeError"),
        ("import no_such_module", "load", "ModuleNotFoundError"),
        ("def g(feeds): return {}", "load", "AttributeError"),
        ("def f(", "load", "SyntaxError"),
        ("import numpy\ndef f(feeds): return {'y': numpy.zeros(1, 'M8[s]')}", "run", "TypeError"),
    ],
)
def test_what_it_raises_is_an_error(outcome, source, phase, error):
    result = outcome(source)
    assert (result.kind, result.phase, result.error) == ("error", phase, error)


def test_death_and_hang_are_outcomes(outcome):
    assert outcome("import os\ndef f(feeds): os._exit(3)").signal == "exit 3"
    assert outcome("import os\ndef f(feeds): print('bye', flush=True); os.abort()").output == "bye\n"
    assert outcome("import time\ndef f(feeds): time.sleep(600)", limits=Limits(timeout=0.5)).kind == "timeout"


def test_neighbours_and_dataclasses_work(outcome, tmp_path):
    (tmp_path / "neighbour_of_it.py").write_text("SIGN = -1")
    source = """
from __future__ import annotations
from dataclasses import dataclass
from typing import ClassVar
from neighbour_of_it import SIGN

@dataclass
class Config:
    sign: float = SIGN
    kind: ClassVar[str] = "c"

def f(feeds): return {"y": Config().sign * feeds["x"]}
"""
    result = outcome(source)
    assert result.ok, result.message


def test_a_changed_file_is_read_again(outcome):
    assert outcome("def f(feeds): return {'y': feeds['x']}").outputs["y"].tolist() == [1, 2]
    assert outcome("def f(feeds): return {'y': 10 * feeds['x']}").outputs["y"].tolist() == [10, 20]


def test_the_model_comes_whole(outcome):
    model = parse_model('<ir_version: 10, opset_import: ["": 21]> g (float[N] x) => (float[N] y) { y = Add(x, w) }')
    model.graph.initializer.append(numpy_helper.from_array(np.arange(2000, dtype=np.float32), "w"))
    source = """
import onnx
def f(model, feeds):
    return {"y": onnx.numpy_helper.to_array(onnx.ModelProto.FromString(model).graph.initializer[0])}
"""
    result = outcome(source, slim(Model(model)))
    assert result.ok, result.message
    assert result.outputs["y"].tolist() == list(range(2000))


@pytest.mark.parametrize(
    "text", ["python", "python:", "python:file.py", "python:nowhere.py:f", "python:file.py:not a name"]
)
def test_what_cannot_be_read_is_said(text):
    with pytest.raises(UsageError) as caught:
        find(text)
    assert caught.value.code == "OB205"


def test_the_script_computes_the_same(tmp_path):
    file = tmp_path / "scripted.py"
    file.write_text("def f(model, feeds, scale=2): return {'y': scale * feeds['x'], 'n': len(model)}")
    (tmp_path / "m.onnx").write_bytes(b"12345")
    names = {"phase": lambda name: None}
    exec(find(f"python:{file}:f").script(), names)
    outputs = names["run"](str(tmp_path / "m.onnx"), {"x": X})
    assert (outputs["y"].tolist(), outputs["n"]) == ([2, 4], 5)


KILLED = """import os, pathlib, signal
def f(feeds):
    with pathlib.Path(__file__).with_name("runs").open("a") as runs:
        runs.write(".")
        if runs.tell() <= {times}:
            os.kill(os.getpid(), signal.SIGKILL)
    return {{'y': -feeds['x']}}
"""


def test_a_worker_that_somebody_kills_once_says_nothing_of_the_model(outcome):
    assert outcome(KILLED.format(times=1)).kind == "ok"


def test_a_worker_that_is_killed_again_ran_out_of_memory(outcome):
    assert outcome(KILLED.format(times=9)).kind == "memory"
