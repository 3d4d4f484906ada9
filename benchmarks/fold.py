"""Compare `onnxbench fold` with other simplifiers, in one run.

usage: fold.py [MODEL ...] [--peers PYTHON] [--only NAME] [--limit S]

Models that are named come first; then light VGG-19 and ResNet-50 of the onnx package, 20,000 nodes of which 5,000 can be folded,
and 1.6 GB of external weights. Peers run with their operator fusions off. PYTHON is an interpreter that has onnxsim, onnxslim,
onnxscript and polygraphy (default: this one); what it has not is left out. Prints for each tool nodes (bodies and functions counted,
Constants not), bytes with external data, CPU seconds and peak memory of all processes, whether the checker and strict inference take
the result, and whether it gives the original's outputs. Linux only.
"""

import os
import sys

# `inspect.py` in this folder must not stand for the standard module: the folder comes last.
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:] = [*(place for place in sys.path if place != HERE), HERE]

import argparse
import json
import subprocess
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from peak_memory import family, resident

import onnxbench

LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
TOOLS = ("onnxbench", "polygraphy", "onnxsim", "onnxslim", "onnxscript", "ort basic")
PEER = """\
import sys
import onnx
tool, source, target = sys.argv[1:4]
if tool == "ort basic":
    import onnxruntime
    settings = onnxruntime.SessionOptions()
    settings.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    settings.optimized_model_filepath = target
    settings.log_severity_level = 4
    onnxruntime.InferenceSession(source, settings, providers=["CPUExecutionProvider"], disabled_optimizers=FUSIONS)
    sys.exit()
model = onnx.load(source)
if tool == "onnxsim":
    import os
    import subprocess
    import onnxsim
    command = [os.path.join(os.path.dirname(sys.executable), "onnxsim"), "--list-default-optimizers"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    fusions = [name for name in listed if name.startswith("fuse")]
    fusions.append("fuse_mul_into_conv")  # done by default, and not listed
    model, _ = onnxsim.simplify(model, skipped_optimizers=fusions, skip_fuse_bn=True)
elif tool == "onnxslim":
    import onnxslim
    from onnxslim.core.pattern.registry import DEFAULT_FUSION_PATTERNS
    fusions = [name for name in DEFAULT_FUSION_PATTERNS if name.startswith("Fusion")]
    model = onnxslim.slim(model, skip_fusion_patterns=fusions)
elif tool == "onnxscript":
    import onnxscript.optimizer
    model = onnxscript.optimizer.optimize(model)
onnx.save(model, target)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", type=Path)
    parser.add_argument("--peers", default=sys.executable)
    parser.add_argument("--only", default="")
    parser.add_argument("--limit", type=float, default=180.0, help="seconds for each tool and model")
    options = parser.parse_args()
    print("| model | tool | nodes | bytes | CPU s | peak MB | valid | equal |\n|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for path in [*options.models, *generated(Path(folder), options.only)]:
            if options.only in path.name:
                compare(path, Path(folder), options.peers, options.limit)


def compare(path: Path, folder: Path, peers: str, limit: float) -> None:
    print(f"| {path.name} | original | {count(path)} | {size(path)} | | | {valid(path)} | |")
    for tool in TOOLS:
        target = folder / "out" / "result.onnx"
        target.parent.mkdir(exist_ok=True)
        for old in target.parent.iterdir():
            old.unlink()
        command = commands(tool, path, target, folder, peers)
        if command is None:
            continue
        cpu, peak, ended = measure(command, limit)
        if not target.exists():
            print(
                f"| {path.name} | {tool} | {'no result' if ended else 'no end'} | | {cpu:.2f} | {peak / 1e6:.0f} | | |",
                flush=True,
            )
            continue
        row = [count(target), size(target), f"{cpu:.2f}", f"{peak / 1e6:.0f}", valid(target), equal(path, target)]
        print(f"| {path.name} | {tool} | {' | '.join(map(str, row))} |", flush=True)


def commands(tool: str, path: Path, target: Path, folder: Path, peers: str) -> list[str] | None:
    if tool == "onnxbench":
        return [sys.executable, "-m", "onnxbench", "fold", str(path), "-o", str(target), "-q"]
    if not Path(peers).exists():
        return None
    if tool == "polygraphy":
        found = Path(peers).with_name("polygraphy")
        return (
            [str(found), "surgeon", "sanitize", str(path), "-o", str(target), "--fold-constants", "--cleanup"]
            if found.exists()
            else None
        )
    module = {"ort basic": "onnxruntime"}.get(tool, tool)
    if subprocess.run([peers, "-c", f"import {module}"], capture_output=True, check=False).returncode:
        return None
    script = folder / "peer.py"
    script.write_text(f"FUSIONS = {fusions()!r}\n{PEER}")
    return [peers, str(script), tool, str(path), str(target)]


def fusions() -> list[str]:
    """The optimizers of ONNX Runtime that fuse operators, as they are called in the newest release that we list."""
    listed = json.loads((Path(onnxbench.__file__).parent / "runtimes" / "optimizers.json").read_text())
    return [name for name in list(listed.values())[-1] if "Fus" in name]


def measure(command: list[str], limit: float) -> tuple[float, int, bool]:
    """CPU seconds, peak of resident memory of all processes, and whether it ended by itself."""
    peak, done = [0], threading.Event()
    before = os.times()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def watch() -> None:
        while not done.wait(0.02):
            peak[0] = max(peak[0], sum(map(resident, family(process.pid))))

    watcher = threading.Thread(target=watch)
    watcher.start()
    ended = True
    try:
        process.wait(limit)
    except subprocess.TimeoutExpired:
        ended = False
        process.kill()
        process.wait()
    done.set()
    watcher.join()
    adopt()
    after = os.times()
    used = after.children_user - before.children_user + after.children_system - before.children_system
    return used, peak[0], ended


def adopt() -> None:
    """Wait for processes that a command left behind: they are our children then, and their time is counted."""
    time.sleep(0.1)
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def count(path: Path) -> int:
    def inside(nodes) -> int:
        total = 0
        for node in nodes:
            total += node.op_type != "Constant"
            for attribute in node.attribute:
                total += sum(inside(graph.node) for graph in [attribute.g, *attribute.graphs])
        return total

    model = onnx.load(path, load_external_data=False)
    return inside(model.graph.node) + sum(inside(function.node) for function in model.functions)


def size(path: Path) -> int:
    model = onnx.load(path, load_external_data=False)
    places = {e.value for t in model.graph.initializer for e in t.external_data if e.key == "location"}
    return path.stat().st_size + sum(
        (path.parent / place).stat().st_size for place in places if (path.parent / place).exists()
    )


def valid(path: Path) -> str:
    script = "import sys, onnx; onnx.checker.check_model(sys.argv[1], full_check=True)"
    try:
        done = subprocess.run(
            [sys.executable, "-c", script, str(path)], capture_output=True, text=True, timeout=120, check=False
        )
    except subprocess.TimeoutExpired:
        return "no answer"
    return (
        "yes"
        if done.returncode == 0
        else "no: " + (done.stderr.strip().splitlines() or ["?"])[-1][-60:].replace("|", "/")
    )


def equal(before: Path, after: Path) -> str:
    """Whether both give the same on several inputs, by ONNX Runtime without optimizations, apart from this process."""
    if size(before) > 1 << 30:
        return "not run"
    script = (
        "import sys; from onnxbench.core.model import load; from onnxbench.verify import verify, feed_sets\n"
        "one = load(sys.argv[1]); v = verify(one, load(sys.argv[2]), feed_sets(one)); print(v.state, v.runs, v.reason)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(before), str(after)], capture_output=True, text=True, check=False
    )
    state = (done.stdout.split() or ["?"])[0]
    return {"verified": "yes", "mismatch": "NO"}.get(state, "not told")


# models --------------------------------------------------------------------------------------------------------------


def generated(folder: Path, only: str):
    for name in ("light_vgg19.onnx", "light_resnet50.onnx", "light_inception_v1.onnx"):
        yield LIGHT / name
    if only in "many.onnx":
        yield many(folder)
    if only in "heavy.onnx":
        yield heavy(folder)


def many(folder: Path) -> Path:
    """15,000 nodes that compute, and 5,000 that compute only with constants, in 500 groups of ten."""
    nodes, last = [], "x"
    weights = [numpy_helper.from_array(np.full(8, 0.01, np.float32), "c")]
    for i in range(500):
        made = "c"
        for k in range(10):
            nodes.append(
                helper.make_node(
                    ("Add", "Mul", "Neg", "Exp")[k % 4],
                    [made, "c"][: 2 - (k % 4) // 2],
                    [f"k{i}_{k}"],
                    name=f"k{i}_{k}",
                )
            )
            made = f"k{i}_{k}"
        for k in range(30):
            operands = [last, made] if k == 0 else [last]
            nodes.append(
                helper.make_node("Add" if k == 0 else ("Tanh", "Neg")[k % 2], operands, [f"t{i}_{k}"], name=f"t{i}_{k}")
            )
            last = f"t{i}_{k}"
    return write(folder / "many.onnx", nodes, last, weights, 8)


def heavy(folder: Path) -> Path:
    """Two dozen MatMul by external weights, 1.6 GB in a sparse file, with some arithmetic to fold."""
    nodes, weights, last, side, number = [], [], "x", 4096, 24
    weights.append(numpy_helper.from_array(np.asarray(2.0, np.float32), "two"))
    for i in range(number):
        tensor = TensorProto(name=f"w{i}", data_type=1, dims=[side, side], data_location=TensorProto.EXTERNAL)
        for key, value in (("location", "heavy.data"), ("offset", i * side * side * 4), ("length", side * side * 4)):
            tensor.external_data.add(key=key, value=str(value))
        weights.append(tensor)
        nodes.append(helper.make_node("MatMul", [last, f"w{i}"], [f"m{i}"], name=f"/layer{i}/MatMul"))
        nodes.append(helper.make_node("Mul", ["two", "two"], [f"k{i}"], name=f"/layer{i}/k"))
        nodes.append(helper.make_node("Mul", [f"m{i}", f"k{i}"], [f"n{i}"], name=f"/layer{i}/Mul"))
        last = f"n{i}"
    with (folder / "heavy.data").open("wb") as file:
        file.truncate(number * side * side * 4)
        for i in range(number):  # no two alike
            file.seek(i * side * side * 4)
            file.write(np.float32(i + 1).tobytes())
    return write(folder / "heavy.onnx", nodes, last, weights, side)


def write(path: Path, nodes: list, last: str, weights: list, width: int) -> Path:
    value = helper.make_tensor_value_info
    graph = helper.make_graph(nodes, "g", [value("x", 1, ["N", width])], [value(last, 1, ["N", width])], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


if __name__ == "__main__":
    import ctypes

    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER
    main()
