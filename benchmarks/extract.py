"""Compare `onnxbench extract` with `onnx.utils.extract_model`, `polygraphy surgeon extract` and onnx-ir, in one run.

Two models are made: 20,000 nodes without declared types of inner values, and 1.6 GB of external weights (a sparse file), out
of which one layer of 64 MB goes to another folder. Prints CPU seconds of all processes (the median of some alternating runs)
and the peak of resident memory summed over all processes, and whether ONNX's full check passes what was written. Polygraphy
takes a minute for the nodes: it is run once. onnx-ir has no command and is measured if it is installed. Linux only.
"""

import os
import sys

# `inspect.py` in this folder must not stand for the standard module: the folder comes last.
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:] = [*(place for place in sys.path if place != HERE), HERE]

import argparse
import contextlib
import ctypes
import importlib.metadata
import importlib.util
import resource
import shutil
import statistics
import subprocess
import tempfile
import threading
from pathlib import Path

import onnx
from onnx import TensorProto, helper
from peak_memory import family, resident

SIDE, LAYERS = 4096, 24
UTILS = "import sys, onnx.utils; onnx.utils.extract_model(sys.argv[1], sys.argv[2], [sys.argv[3]], [sys.argv[4]])"
IR = """import sys, onnx_ir
model = onnx_ir.load(sys.argv[1])
graph = onnx_ir.convenience.extract(model.graph, inputs=[sys.argv[3]], outputs=[sys.argv[4]])
onnx_ir.save(onnx_ir.Model(graph, ir_version=model.ir_version), sys.argv[2])"""


def main() -> None:
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER: what tools leave behind is ours to wait for
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    runs = parser.parse_args().runs
    print(", ".join(f"{name} {version(name)}" for name in ("onnx", "polygraphy", "onnx-ir", "onnxruntime")))
    print("| model | tool | CPU s | peak MB | full check |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        many, heavy = many_nodes(Path(folder)), heavy_weights(Path(folder))
        compare("20,000 nodes, 8,000 left", many, "r1000", "r3000", runs)
        compare("1.6 GB external, 64 MB left", heavy, "m11", "m12", runs)


def version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def many_nodes(folder: Path) -> Path:
    """Blocks of MatMul, Add, Relu and shape arithmetic, 20,000 nodes."""
    nodes, last = [], "x"
    weights = [helper.make_tensor("w", 1, [8, 8], [0.1] * 64), helper.make_tensor("b", 1, [8], [0.0] * 8)]
    for i in range(5000):
        nodes += [
            helper.make_node("MatMul", [last, "w"], [f"m{i}"], name=f"/block{i // 100}/layer{i}/MatMul"),
            helper.make_node("Add", [f"m{i}", "b"], [f"a{i}"], name=f"/block{i // 100}/layer{i}/Add"),
            helper.make_node("Shape", [f"a{i}"], [f"s{i}"], name=f"/block{i // 100}/layer{i}/Shape"),
            helper.make_node("Reshape", [f"a{i}", f"s{i}"], [f"r{i}"], name=f"/block{i // 100}/layer{i}/Reshape"),
        ]
        last = f"r{i}"
    return write(folder / "many.onnx", nodes, last, weights, 8)


def heavy_weights(folder: Path) -> Path:
    nodes, weights, last = [], [], "x"
    for i in range(LAYERS):
        tensor = TensorProto(name=f"w{i}", data_type=1, dims=[SIDE, SIDE], data_location=TensorProto.EXTERNAL)
        for key, value in (("location", "heavy.data"), ("offset", i * SIDE * SIDE * 4), ("length", SIDE * SIDE * 4)):
            tensor.external_data.add(key=key, value=str(value))
        weights.append(tensor)
        nodes.append(helper.make_node("MatMul", [last, f"w{i}"], [f"m{i}"], name=f"/layer{i}/MatMul"))
        last = f"m{i}"
    with (folder / "heavy.data").open("wb") as file:
        file.truncate(LAYERS * SIDE * SIDE * 4)
    return write(folder / "heavy.onnx", nodes, last, weights, SIDE)


def write(path: Path, nodes: list, last: str, weights: list, width: int) -> Path:
    value = helper.make_tensor_value_info
    graph = helper.make_graph(nodes, "g", [value("x", 1, ["N", width])], [value(last, 1, ["N", width])], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def compare(title: str, model: Path, start: str, end: str, runs: int) -> None:
    """One row for each tool, each writing into an empty folder."""
    tools = commands(model, start, end)
    seen: dict[str, list[tuple[float, int, str]]] = {name: [] for name in tools}
    for turn in range(runs):
        for name, command in tools.items():
            if turn == 0 or name != "polygraphy":
                with tempfile.TemporaryDirectory() as folder:
                    target = Path(folder) / "piece.onnx"
                    used = measure([str(target) if part == "OUT" else part for part in command])
                    seen[name].append((*used, verdict(target)))
    medians = {name: statistics.median(row[0] for row in rows) for name, rows in seen.items()}
    for name, rows in seen.items():
        print(f"| {title} | {name} | {medians[name]:.2f} | {max(row[1] for row in rows) / 1e6:.0f} | {rows[0][2]} |")
    valid = [medians[name] for name, rows in seen.items() if name != "onnxbench" and rows[0][2] == "passes"]
    if valid:
        print(f"| {title} | ratio to the fastest valid other | {medians['onnxbench'] / min(valid):.2f} | | |")


def commands(model: Path, start: str, end: str) -> dict[str, list[str]]:
    polygraphy = shutil.which("polygraphy", path=str(Path(sys.executable).parent)) or "polygraphy"
    python = [sys.executable, "-c"]
    cuts = ["--inputs", f"{start}:auto:auto", "--outputs", f"{end}:auto"]
    found = {
        "onnxbench": [
            sys.executable,
            "-m",
            "onnxbench",
            "extract",
            str(model),
            "--from",
            start,
            "--to",
            end,
            "-o",
            "OUT",
        ],
        "onnx.utils": [*python, UTILS, str(model), "OUT", start, end],
        "polygraphy": [polygraphy, "surgeon", "extract", str(model), "-o", "OUT", *cuts],
    }
    if importlib.util.find_spec("onnx_ir") is not None:
        found["onnx-ir"] = [*python, IR, str(model), "OUT", start, end]
    return found


def verdict(target: Path) -> str:
    if not target.exists():
        return "nothing written"
    try:
        onnx.checker.check_model(str(target), full_check=True)
    except Exception as error:
        return f"fails: {str(error).strip().splitlines()[0][:60]}"
    return "passes"


def measure(command: list[str]) -> tuple[float, int]:
    """CPU seconds, and the peak of resident memory, of the process and all its descendants."""
    peak, done = [0], threading.Event()
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def watch() -> None:
        while not done.wait(0.01):
            peak[0] = max(peak[0], sum(map(resident, family(process.pid))))

    watcher = threading.Thread(target=watch)
    watcher.start()
    process.wait()
    with contextlib.suppress(ChildProcessError):  # workers that outlive their parent for a moment
        while True:
            os.waitpid(-1, 0)
    done.set()
    watcher.join()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, peak[0]


if __name__ == "__main__":
    main()
