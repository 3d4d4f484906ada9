"""Plant a fault in the middle of real networks and see how far, and how fast, `onnxbench reduce` gets.

usage: planted.py FOLDER [--deed raise|wrong|signal] [--limit BYTES]

FOLDER holds .onnx files (from published packages, say). Each gets one culprit: the node in the middle of its depth-first
order that has a name of its own and a float output. Prints nodes before and after, checks, ceil(log2 n) + 3, and seconds.
Needs the test plug-in (tests/misbehaving).
"""

import os
import sys

# `inspect.py` in this folder must not stand for the standard module.
sys.path[:] = [place for place in sys.path if place != os.path.dirname(os.path.abspath(__file__))]

import argparse
import json
import math
import subprocess
import tempfile
import time
from pathlib import Path

from onnxbench import GraphView, infer, load


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--deed", default="raise")
    parser.add_argument("--limit", type=int, default=200_000_000)
    options = parser.parse_args()
    worst = 0
    for path in sorted(options.folder.rglob("*.onnx")):
        if path.stat().st_size > options.limit:
            continue
        name = culprit(path)
        if name is None:
            continue
        row = reduce(path, name, options.deed)
        worst = max(worst, row.get("excess", 99))
        print(json.dumps({"model": path.name, "culprit": name, **row}), flush=True)
    print(f"most checks above ceil(log2 n) + 3: {worst}")
    return 0


def culprit(path: Path) -> str | None:
    """The named node nearest to the middle whose output is float32; None in graphs of fewer than 20 nodes."""
    try:
        model = load(path)
        view = GraphView(model.proto, model.proto.graph)
        order = view.order
        types = infer(model)
    except Exception as error:
        print(f"{path.name}: {error}", file=sys.stderr)
        return None
    middle = len(order) // 2
    if len(order) < 20:
        return None
    for node in sorted(order, key=lambda node: abs(order.index(node) - middle)):
        name = node.proto.name
        kind = types.get(node.outputs[0]) if node.outputs else None
        is_float = kind is not None and kind.tensor_type.elem_type == 1 and node.proto.op_type != "Constant"
        if is_float and name and len(view.by_name[name]) == 1 and not {"+", ","} & set(name):
            return name
    return None


def reduce(path: Path, name: str, deed: str) -> dict[str, object]:
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "onnxbench", "reduce", str(path), "-r", f"misbehaving:names={name},do={deed}"]
        started = time.perf_counter()
        done = subprocess.run([*command, "--json", "-q", "--bundle", f"{folder}/b"], capture_output=True, text=True)
        seconds = round(time.perf_counter() - started, 1)
    said = json.loads(done.stdout) if done.stdout.startswith("{") else {}
    if done.returncode or "nodes_after" not in said:
        return {"exit": done.returncode, "error": said.get("error", done.stderr[-300:]), "seconds": seconds}
    bound = math.ceil(math.log2(said["nodes_before"])) + 3
    return {
        "before": said["nodes_before"],
        "after": said["nodes_after"],
        "checks": said["checks"],
        "bound": bound,
        "excess": said["checks"] - bound,
        "seconds": seconds,
    }


if __name__ == "__main__":
    sys.exit(main())
