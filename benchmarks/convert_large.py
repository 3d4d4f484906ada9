"""Measure `onnxbench convert` on a model of many nodes and on one of many weights.

usage: convert_large.py [--nodes 5000,20000] [--gigabytes 3] [--elsewhere] [--skip-verify] [--peers PYTHON]

The first is a chain at opset 9, raised to 13 with --no-verify, beside ONNX's C++ converter and a process that only loads and saves
the model. The second has 256 MB of external weights in each layer (a sparse file), and its result goes beside it, so that no weight
has to be read; with --elsewhere also into another folder, where the weights have to be copied. Prints CPU seconds, bytes read
by system calls and peak memory (pages that processes share counted once; pages of the weights that are mapped count) of all
processes, those left behind included. Linux only.
"""

import os
import sys

# `inspect.py` in this folder must not stand for the standard module: the folder comes last.
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:] = [*(place for place in sys.path if place != HERE), HERE]

import argparse
import contextlib
import ctypes
import subprocess
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from convert import opset_of
from onnx import ModelProto, TensorProto, helper, numpy_helper
from peak_memory import family, resident

FLOAT = TensorProto.FLOAT
WIDTH = 8192  # a square of floats: 256 MB
LOAD = "import onnx, sys; onnx.save(onnx.load(sys.argv[1]), sys.argv[2])"
CPP = """\
import onnx, onnx.version_converter, sys
onnx.save(onnx.version_converter.convert_version(onnx.load(sys.argv[1]), 13), sys.argv[2])
"""
SCRIPT = """\
import onnx, sys
from onnxscript import ir, version_converter
model = ir.load(sys.argv[1])
version_converter.convert_version(model, 25)
ir.save(model, sys.argv[2])
"""


@dataclass(frozen=True)
class Cost:
    """What a command took, of all its processes."""

    code: int
    cpu: float
    wall: float
    read: int
    peak: int
    said: str


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", default="5000,20000")
    parser.add_argument("--gigabytes", type=float, default=3.0)
    parser.add_argument("--elsewhere", action="store_true")
    parser.add_argument("--skip-verify", action="store_true", help="leave out the runs that verify")
    parser.add_argument("--only", choices=["nodes", "weights"])
    parser.add_argument("--peers", default="", help="an interpreter that has onnxscript")
    options = parser.parse_args()
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER: what a command leaves behind is ours to wait for
    print("| model | command | exit | CPU s | wall s | read MB | peak MB | result |\n|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        if options.only != "weights":
            for count in map(int, options.nodes.split(",")):
                many_nodes(Path(folder), count, options)
        if options.only != "nodes":
            many_weights(Path(folder), options)
    return 0


def many_nodes(folder: Path, count: int, options: argparse.Namespace) -> None:
    source, target = folder / f"{count} nodes.onnx", folder / "result.onnx"
    onnx.save(chain(count, 9), source)
    name = f"{count:,} nodes"
    show(name, "load, save", [sys.executable, "-c", LOAD, str(source), str(target)], target, 9)
    show(name, "ours", [*ours(source, target), "--no-verify"], target, 13)
    if not options.skip_verify:
        show(name, "ours, verified", ours(source, target), target, 13)
    show(name, "onnx C++", [sys.executable, "-c", CPP, str(source), str(target)], target, 13)
    if options.peers and Path(options.peers).exists():  # it raises nothing below 18, and nothing above 25
        onnx.save(chain(count, 18), source)
        show(name, "onnxscript 18 to 25", [options.peers, "-c", SCRIPT, str(source), str(target)], target, 25)


def many_weights(folder: Path, options: argparse.Namespace) -> None:
    source, target = folder / "weights" / "model.onnx", folder / "weights" / "result.onnx"
    layers = write_large(source, options.gigabytes)
    name = f"{layers * WIDTH * WIDTH * 4 / 1e9:.1f} GB"
    show(name, "ours", [*ours(source, target), "--no-verify"], target, 13)
    if not options.skip_verify:
        show(name, "ours, verified", ours(source, target), target, 13)
    if options.elsewhere:
        other = folder / "elsewhere" / "result.onnx"
        other.parent.mkdir()
        show(name, "ours, elsewhere", [*ours(source, other), "--no-verify"], other, 13)


def ours(source: Path, target: Path) -> list[str]:
    return [sys.executable, "-m", "onnxbench", "convert", str(source), "--to", "13", "-o", str(target), "-q", "--force"]


def show(model: str, tool: str, command: list[str], target: Path, opset: int) -> None:
    target.unlink(missing_ok=True)
    cost = measure(command)
    row = [cost.code, f"{cost.cpu:.2f}", f"{cost.wall:.2f}", f"{cost.read / 1e6:.1f}", f"{cost.peak / 1e6:.0f}"]
    print(f"| {model} | {tool} | {' | '.join(map(str, row))} | {outcome(target, opset) or cost.said} |", flush=True)


def outcome(target: Path, opset: int) -> str:
    if not target.exists():
        return ""
    model = onnx.load(target, load_external_data=False)
    if opset_of(model) != opset:
        return f"opset {opset_of(model)}, not {opset}"
    try:
        onnx.checker.check_model(target)
    except Exception as error:
        return f"invalid: {' '.join(str(error).split())[:100]}"
    return f"{len(model.graph.node)} nodes, valid"


def measure(command: list[str]) -> Cost:
    """Run a command; CPU and reads of processes that were waited for come to ours."""
    peak, done = [0], threading.Event()

    def watch() -> None:
        while not done.wait(0.02):
            peak[0] = max(peak[0], sum(map(resident, family(os.getpid())[1:])))

    used, read, since = cpu(), bytes_read(), time.monotonic()
    with tempfile.TemporaryFile("w+") as complaint:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=complaint, text=True)
        watcher = threading.Thread(target=watch)
        watcher.start()
        pid, status = os.waitpid(process.pid, 0)
        assert pid == process.pid
        wall = time.monotonic() - since
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, 0):
                pass
        own_end = cpu()
        total_read = bytes_read() - read
        done.set()
        watcher.join()
        complaint.seek(0)
        said = " ".join(complaint.read().split())[-120:]
    process.returncode = os.waitstatus_to_exitcode(status)
    return Cost(process.returncode, own_end - used, wall, total_read, peak[0], said)


def cpu() -> float:
    """Seconds of children that were waited for."""
    times = os.times()
    return times.children_user + times.children_system


def bytes_read() -> int:
    """By system calls, of this process and of children that were waited for. What the watcher reads is small."""
    lines = Path("/proc/self/io").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("rchar:"))


# The models.


def chain(count: int, opset: int) -> ModelProto:
    """Nodes one after the other; at opset 9 two of three need another form at 13."""
    steps = old_steps if opset < 13 else new_steps
    nodes, last = [], "x"
    for index in range(0, count, 6):
        for op, more, attributes in steps():
            result = f"t{len(nodes)}"
            nodes.append(helper.make_node(op, [last, *more], [result], f"node {len(nodes)}", **attributes))
            last = result
        assert len(nodes) == index + 6
    nodes.append(helper.make_node("Identity", [last], ["y"]))
    value = helper.make_tensor_value_info
    constants = [
        numpy_helper.from_array(np.array([1], np.int64), "one"),
        numpy_helper.from_array(np.float32(-4), "low"),
    ]
    graph = helper.make_graph(
        nodes, "chain", [value("x", FLOAT, ["batch", 8])], [value("y", FLOAT, ["batch", 8])], constants
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=4 if opset < 13 else 8)


def old_steps() -> list[tuple[str, list[str], dict]]:
    return [
        ("Clip", [], {"min": -4.0}),
        ("Relu", [], {}),
        ("Unsqueeze", [], {"axes": [1]}),
        ("Softmax", [], {"axis": 1}),
        ("Squeeze", [], {"axes": [1]}),
        ("Dropout", [], {"ratio": 0.5}),
    ]


def new_steps() -> list[tuple[str, list[str], dict]]:
    return [
        ("Clip", ["low"], {}),
        ("Relu", [], {}),
        ("Unsqueeze", ["one"], {}),
        ("Softmax", [], {"axis": -1}),
        ("Squeeze", ["one"], {}),
        ("Dropout", [], {}),
    ]


def write_large(path: Path, gigabytes: float) -> int:
    """A model with that much of external weights, all zero, and the number of its layers."""
    path.parent.mkdir()
    layers = max(1, round(gigabytes * 1e9 / (WIDTH * WIDTH * 4)))
    size = WIDTH * WIDTH * 4
    nodes, weights, last = [], [], "x"
    for layer in range(layers):
        tensor = TensorProto(name=f"w{layer}", data_type=FLOAT, dims=[WIDTH, WIDTH], data_location=TensorProto.EXTERNAL)
        for key, text in (("location", "weights.bin"), ("offset", str(layer * size)), ("length", str(size))):
            tensor.external_data.add(key=key, value=text)
        weights.append(tensor)
        nodes += [
            helper.make_node("MatMul", [last, f"w{layer}"], [f"m{layer}"]),
            helper.make_node("Clip", [f"m{layer}"], [f"c{layer}"], min=-1.0, max=1.0),
            helper.make_node("Softmax", [f"c{layer}"], [f"s{layer}"]),
        ]
        last = f"s{layer}"
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes, "large", [value("x", FLOAT, [1, WIDTH])], [value(last, FLOAT, [1, WIDTH])], weights
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 9)], ir_version=4), path)
    with (path.parent / "weights.bin").open("wb") as file:
        file.truncate(layers * size)
    return layers


if __name__ == "__main__":
    sys.exit(main())
