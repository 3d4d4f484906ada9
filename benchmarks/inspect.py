"""Compare `onnxbench inspect` with `polygraphy inspect model --shape-inference`, in one run.

Two models are made: 20,000 nodes, and 1.6 GB of external weights (a sparse file). Prints wall seconds (the median of some
alternating runs) and, for the weights, the peak of resident memory summed over all processes. Linux only.
"""

import os
import sys

# `inspect.py` in this folder must not stand for the standard module: the folder comes last.
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:] = [*(place for place in sys.path if place != HERE), HERE]

import argparse
import shutil
import statistics
import subprocess
import tempfile
import threading
import time
from pathlib import Path

import onnx
from onnx import TensorProto, helper
from peak_memory import family, resident


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=3)
    runs = parser.parse_args().runs
    with tempfile.TemporaryDirectory() as folder:
        many, heavy = many_nodes(Path(folder)), heavy_weights(Path(folder))
        compare("20,000 nodes", many, runs, ["--shape-inference"])
        compare("1.6 GB external", heavy, runs, [])


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
    nodes, weights, last, side, count = [], [], "x", 4096, 24
    for i in range(count):
        tensor = TensorProto(name=f"w{i}", data_type=1, dims=[side, side], data_location=TensorProto.EXTERNAL)
        for key, value in (("location", "heavy.data"), ("offset", i * side * side * 4), ("length", side * side * 4)):
            tensor.external_data.add(key=key, value=str(value))
        weights.append(tensor)
        nodes.append(helper.make_node("MatMul", [last, f"w{i}"], [f"m{i}"], name=f"/layer{i}/MatMul"))
        last = f"m{i}"
    with (folder / "heavy.data").open("wb") as file:
        file.truncate(count * side * side * 4)
    return write(folder / "heavy.onnx", nodes, last, weights, side)


def write(path: Path, nodes: list, last: str, weights: list, width: int) -> Path:
    value = helper.make_tensor_value_info
    graph = helper.make_graph(nodes, "g", [value("x", 1, ["N", width])], [value(last, 1, ["N", width])], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def compare(title: str, model: Path, runs: int, more: list[str]) -> None:
    polygraphy = shutil.which("polygraphy", path=str(Path(sys.executable).parent)) or "polygraphy"
    commands = {
        "onnxbench": [sys.executable, "-m", "onnxbench", "inspect", str(model)],
        "polygraphy": [polygraphy, "inspect", "model", str(model), *more],
    }
    seen: dict[str, list[tuple[float, int]]] = {name: [] for name in commands}
    for _ in range(runs):
        for name, command in commands.items():
            seen[name].append(measure(command))
    medians = {name: statistics.median(seconds for seconds, _ in rows) for name, rows in seen.items()}
    for name, rows in seen.items():
        print(f"{title}: {name} {medians[name]:.2f} s, peak {max(peak for _, peak in rows) / 1e6:.0f} MB")
    print(f"{title}: ratio {medians['onnxbench'] / medians['polygraphy']:.2f}")


def measure(command: list[str]) -> tuple[float, int]:
    """Seconds, and the peak of resident memory of the process and all its descendants."""
    peak, done = [0], threading.Event()
    started = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def watch() -> None:
        while not done.wait(0.02):
            peak[0] = max(peak[0], sum(map(resident, family(process.pid))))

    watcher = threading.Thread(target=watch)
    watcher.start()
    process.wait()
    seconds = time.perf_counter() - started
    done.set()
    watcher.join()
    return seconds, peak[0]


if __name__ == "__main__":
    main()
