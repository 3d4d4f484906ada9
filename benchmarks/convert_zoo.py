"""Convert a folder of 200 models with `onnxbench convert`, killed half-way and run again.

usage: convert_zoo.py [FOLDER] [--to 13] [--arg=OPTION ...] [--make-only]

Makes 200 models at opset 9, of nine families and many sizes, in nested folders; ten have external data, three are broken (cut off,
an operator that is none, data that is missing). Kills the whole process group once half of the results are there, runs the command
again, and checks: the report names each model once and rightly, what was finished was not done again, nothing is left over, and
every result is valid, at the target, and equal to its source on ONNX Runtime. Ends with 1 if something is not so. Linux only.
"""

import os
import sys

# `inspect.py` in this folder must not stand for the standard module: the folder comes last.
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:] = [*(place for place in sys.path if place != HERE), HERE]

import argparse
import contextlib
import json
import os.path
import signal
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from convert import invalidity, opset_of
from convert_corpus import difference
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

COUNT, EXTERNAL = 200, 10
BROKEN = ("broken/cut off.onnx", "broken/no operator.onnx", "broken/no data.onnx")
node, value = helper.make_node, helper.make_tensor_value_info
FLOAT, BOOL, INT64 = TensorProto.FLOAT, TensorProto.BOOL, TensorProto.INT64
GOOD = ("verified", "certified")


# The zoo.


def weight(rng: np.random.Generator, name: str, *shape: int, dtype: Any = np.float32) -> TensorProto:
    scale = 1 / np.sqrt(max(1, np.prod(shape[1:])))
    return numpy_helper.from_array((rng.standard_normal(shape) * scale).astype(dtype), name)


def model(
    nodes: list[NodeProto],
    inputs: list[Any],
    outputs: list[str],
    weights: list[TensorProto],
    *,
    ir: int = 4,
    kind: int = FLOAT,
    rank: int = 2,
) -> ModelProto:
    """At opset 9; IR 3 lists weights as inputs. Outputs have a type and a rank."""
    if ir == 3:
        inputs = [*inputs, *(value(tensor.name, tensor.data_type, tensor.dims) for tensor in weights)]
    graph = helper.make_graph(nodes, "zoo", inputs, [value(name, kind, [None] * rank) for name in outputs], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 9)], ir_version=ir, producer_name="zoo")


def mlp(rng: np.random.Generator, size: int, *, ir: int = 4, half: bool = False) -> ModelProto:
    width, dtype, kind = 4 * size, np.float16 if half else np.float32, TensorProto.FLOAT16 if half else FLOAT
    nodes, weights, last = [], [], "x"
    for layer in range(1 + size % 5):
        weights += [
            weight(rng, f"w{layer}", width, width, dtype=dtype),
            weight(rng, f"b{layer}", width, dtype=dtype),
        ]
        nodes += [
            node("Gemm", [last, f"w{layer}", f"b{layer}"], [f"g{layer}"], f"gemm {layer}"),
            node("Clip", [f"g{layer}"], [f"c{layer}"], f"clip {layer}", min=-1.0, max=3.0),
            node("Dropout", [f"c{layer}"], [f"d{layer}"], ratio=0.25),
        ]
        last = f"d{layer}"
    nodes.append(node("Softmax", [last], ["y"]))
    return model(nodes, [value("x", kind, ["batch", width])], ["y"], weights, ir=ir, kind=kind)


def weights_as_inputs(rng: np.random.Generator, size: int) -> ModelProto:
    return mlp(rng, size, ir=3)


def half(rng: np.random.Generator, size: int) -> ModelProto:
    return mlp(rng, size, half=True)


def convolutional(rng: np.random.Generator, size: int) -> ModelProto:
    channels = 2 + size % 7
    weights = [
        weight(rng, "k", channels, 3, 3, 3),
        *(weight(rng, name, channels) for name in ("scale", "shift", "mean")),
        numpy_helper.from_array(np.abs(rng.standard_normal(channels)).astype(np.float32) + 0.5, "spread"),
        numpy_helper.from_array(np.array([1, 1, 2, 2], np.float32), "twice"),
        weight(rng, "w", channels * 64, 10),
        weight(rng, "b", 10),
    ]
    nodes = [
        node("Pad", ["x"], ["padded"], pads=[0, 0, 1, 1, 0, 0, 1, 1], mode=("constant", "edge", "reflect")[size % 3]),
        node("Conv", ["padded", "k"], ["conv"], kernel_shape=[3, 3]),
        node("BatchNormalization", ["conv", "scale", "shift", "mean", "spread"], ["normal"], epsilon=1e-4),
        node("Relu", ["normal"], ["active"]),
        node("Dropout", ["active"], ["dropped"]),
        node("MaxPool", ["dropped"], ["pooled"], kernel_shape=[2, 2], strides=[2, 2]),
        node("Upsample", ["pooled", "twice"], ["large"], mode="nearest"),
        node("AveragePool", ["large"], ["small"], kernel_shape=[2, 2], strides=[2, 2]),
        node("Flatten", ["small"], ["flat"]),
        node("Gemm", ["flat", "w", "b"], ["logits"]),
        node("Softmax", ["logits"], ["y"], axis=1),
    ]
    return model(nodes, [value("x", FLOAT, ["batch", 3, 16, 16])], ["y"], weights)


def attributes(rng: np.random.Generator, size: int) -> ModelProto:
    """Operators whose attributes became inputs."""
    width = 6 + size % 5
    nodes = [
        node("Slice", ["x"], ["cut"], starts=[0, 1], ends=[2**31 - 1, -1], axes=[0, 2]),
        node("Pad", ["cut"], ["padded"], pads=[0, 0, 1, 0, 0, 1], value=0.5),
        node("TopK", ["padded"], ["largest", "places"], axis=-1, k=4),
        node("Unsqueeze", ["largest"], ["wider"], axes=[0, 2]),
        node("Squeeze", ["wider"], ["narrow"], axes=[0, 2]),
        node("Split", ["narrow"], ["left", "right"], axis=2, split=[1, 3]),
        node("ReduceSum", ["right"], ["sum"], axes=[-1] if size % 2 else [2], keepdims=1),
        node("Sub", ["left", "sum"], ["less"]),
        node("Clip", ["less"], ["clipped"], min=-2.0),
        node("Cast", ["places"], ["numbers"], to=FLOAT),
        node("ReduceMean", ["numbers"], ["mean"], axes=[2], keepdims=1),
        node("Add", ["clipped", "mean"], ["y"]),
    ]
    return model(nodes, [value("x", FLOAT, ["batch", 3, width])], ["y"], [], rank=3)


def flattening(rng: np.random.Generator, size: int) -> ModelProto:
    """Softmax and its kin along an axis that is not the last one."""
    op = ("Softmax", "LogSoftmax", "Hardmax")[size % 3]
    weights = [weight(rng, "w", 5 + size % 4, 4)]
    nodes = [
        node("MatMul", ["x", "w"], ["product"]),
        node(op, ["product"], ["middle"], axis=size % 2 + 1),
        node(op, ["middle"], ["default"]) if size % 4 else node(op, ["middle"], ["default"], axis=0),
        node("Add", ["default", "middle"], ["y"]),
    ]
    return model(nodes, [value("x", FLOAT, ["batch", 3, 5 + size % 4])], ["y"], weights, rank=3)


def branches(rng: np.random.Generator, size: int) -> ModelProto:
    def branch(name: str, *nodes: NodeProto) -> Any:
        return helper.make_graph(nodes, name, [], [value(f"{name}_out", FLOAT, [None, None])])

    then = branch(
        "then",
        node("Unsqueeze", ["h"], ["then_u"], axes=[1]),
        node("Softmax", ["then_u"], ["then_s"]),
        node("Squeeze", ["then_s"], ["then_out"], axes=[1]),
    )
    other = branch(
        "other",
        node("Clip", ["h"], ["other_c"], min=0.0, max=1.0),
        node("Pad", ["other_c"], ["other_p"], pads=[0, 1, 0, 1]),
        node("Slice", ["other_p"], ["other_out"], axes=[1], starts=[1], ends=[-1]),
    )
    width = 3 + size
    nodes = [
        node("MatMul", ["x", "w"], ["h"]),
        node("ReduceSum", ["x"], ["total"], keepdims=0),
        node("Greater", ["total", "zero"], ["positive"]),
        node("If", ["positive"], ["y"], then_branch=then, else_branch=other),
    ]
    weights = [weight(rng, "w", width, width), numpy_helper.from_array(np.float32(0), "zero")]
    return model(nodes, [value("x", FLOAT, ["batch", width])], ["y"], weights)


def loop(rng: np.random.Generator, size: int) -> ModelProto:
    width = 3 + size % 20
    body = helper.make_graph(
        [
            node("Identity", ["go"], ["still"]),
            node("MatMul", ["state", "w"], ["mixed"]),
            node("Clip", ["mixed"], ["next"], min=-1.0, max=1.0),
            node("ReduceSum", ["next"], ["sum"], axes=[1], keepdims=0),
            node("Unsqueeze", ["sum"], ["scanned"], axes=[0]),
        ],
        "body",
        [value("i", INT64, []), value("go", BOOL, []), value("state", FLOAT, [None, None])],
        [value("still", BOOL, []), value("next", FLOAT, [None, None]), value("scanned", FLOAT, [None, None])],
    )
    nodes = [
        node("Loop", ["times", "", "x"], ["last", "scan"], body=body),
        node("Squeeze", ["scan"], ["rows"], axes=[1]),
        node("ReduceSum", ["rows"], ["sums"], axes=[0]),
        node("Transpose", ["sums"], ["column"]),
        node("Add", ["last", "column"], ["y"]),
    ]
    weights = [weight(rng, "w", width, width), numpy_helper.from_array(np.int64(1 + size % 4), "times")]
    return model(nodes, [value("x", FLOAT, ["batch", width])], ["y"], weights)


def deep(rng: np.random.Generator, size: int) -> ModelProto:
    """Many small nodes."""
    nodes, last = [], "x"
    for step in range(20 * size):
        op, more = (("Clip", {"min": -4.0}), ("Relu", {}), ("Softmax", {}), ("Sqrt", {}))[step % 4]
        nodes.append(node(op, [last], [f"t{step}"], **more))
        last = f"t{step}"
    nodes.append(node("Squeeze", [last], ["y"], axes=[1]))
    del rng
    return model(nodes, [value("x", FLOAT, ["batch", 1, 8])], ["y"], [])


FAMILIES = (mlp, convolutional, attributes, flattening, branches, loop, weights_as_inputs, half, deep)


def make(folder: Path) -> None:
    """Write the zoo."""
    for index in range(COUNT - len(BROKEN)):
        rng = np.random.default_rng(index)
        size = 1 + index // len(FAMILIES)
        external = index < EXTERNAL * 2 and index % 2 == 0
        family = mlp if external else FAMILIES[index % len(FAMILIES)]
        made = family(rng, size * 4 if external else size)
        path = folder / ("external" if external else family.__name__) / f"by {size % 3}" / f"model {index}.onnx"
        path.parent.mkdir(parents=True, exist_ok=True)
        write(made, path, external)
    cut, operator, data = (folder / name for name in BROKEN)
    cut.parent.mkdir(parents=True, exist_ok=True)
    whole = convolutional(np.random.default_rng(0), 3).SerializeToString()
    cut.write_bytes(whole[: len(whole) // 2])
    onnx.save(model([node("Sofmax", ["x"], ["y"])], [value("x", FLOAT, [1, 2])], ["y"], []), operator)
    write(mlp(np.random.default_rng(0), 16), data, True)
    data.with_suffix(".onnx.data").unlink()


def write(made: ModelProto, path: Path, external: bool) -> None:
    if external:
        onnx.save(
            made,
            path,
            save_as_external_data=True,
            location=f"{path.name}.data",
            size_threshold=0,
            convert_attribute=False,
        )
    else:
        onnx.save(made, path)


# The run.


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, help="where zoo/ and out/ go, instead of a temporary folder")
    parser.add_argument("--to", type=int, default=13)
    parser.add_argument(
        "--arg", action="append", default=[], help="further option of the command, like --arg=--no-verify"
    )
    parser.add_argument("--make-only", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        return play(options.folder or Path(temporary), options)


def play(folder: Path, options: argparse.Namespace) -> int:
    zoo, out = folder / "zoo", folder / "out"
    assert not out.exists(), f"{out} is there already"
    make(zoo)
    faults = {name: reason for name, reason in judge_each(zoo, zoo, 9) if name not in BROKEN}
    assert not faults, faults
    if options.make_only:
        return 0
    command = [sys.executable, "-m", "onnxbench", "convert", str(zoo), "--to", str(options.to), "-o", str(out)]
    command += options.arg
    first = kill_half_way(command, out)
    halfway = {path: path.stat().st_mtime_ns for path in results(out)}
    print(f"killed after {first:.1f} s with {len(halfway)} results")
    since = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    print(f"run again: {time.monotonic() - since:.1f} s, exit code {done.returncode}")
    problems = [
        *judge_report(zoo, out, done),
        *judge_resumption(out, halfway),
        *judge_results(zoo, out, options.to),
    ]
    print("\n".join(f"PROBLEM: {problem}" for problem in problems) or "all as it should be")
    return int(bool(problems))


def results(out: Path) -> list[Path]:
    return sorted(out.rglob("*.onnx")) if out.exists() else []


def kill_half_way(command: list[str], out: Path) -> float:
    since = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    while process.poll() is None and len(results(out)) < (COUNT - len(BROKEN)) // 2:
        time.sleep(0.05)
    if process.poll() is not None:
        print(f"PROBLEM: it ended by itself with {process.returncode}, before it was killed")
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    time.sleep(1)  # workers in other groups see that their parent is gone
    return time.monotonic() - since


def judge_report(zoo: Path, out: Path, done: subprocess.CompletedProcess[str]) -> list[str]:
    problems = [] if done.returncode == 3 else [f"exit code {done.returncode}, not 3: {done.stderr[-400:]}"]
    file = out / "report.json"
    if not file.exists():
        return [*problems, "there is no report.json"]
    rows = json.loads(file.read_text())["models"]
    states: dict[str, str] = {}
    for row in rows:
        name = os.path.relpath(row["model"], zoo) if Path(row["model"]).is_absolute() else row["model"]
        if name in states:
            problems.append(f"{name} is twice in the report")
        states[name] = "error" if row.get("error") else row.get("verification", row)["state"]
    print("states: " + ", ".join(f"{count} {state}" for state, count in Counter(states.values()).most_common()))
    wanted = {str(path.relative_to(zoo)) for path in zoo.rglob("*.onnx")}
    problems += [f"{name} is not in the report" for name in sorted(wanted - states.keys())]
    problems += [f"{name} is in the report, and not in the zoo" for name in sorted(states.keys() - wanted)]
    for name in sorted(wanted & states.keys()):
        if name in BROKEN and states[name] not in ("error", "refused"):
            problems.append(f"{name} is broken, and {states[name]}")
        elif name not in BROKEN and states[name] not in GOOD:
            problems.append(f"{name} is {states[name]}")
    return problems


def data_files(path: Path) -> set[Path]:
    """The files that a model's external tensors lie in."""
    model = onnx.load(path, load_external_data=False)
    entries = [entry for tensor in model.graph.initializer for entry in tensor.external_data]
    return {path.parent / entry.value for entry in entries if entry.key == "location"}


def judge_resumption(out: Path, halfway: dict[Path, int]) -> list[str]:
    """What was finished before is not done again; nothing half-done is left."""
    again = [path for path, before in halfway.items() if not path.exists() or path.stat().st_mtime_ns != before]
    problems = [f"{len(again)} of {len(halfway)} finished models were converted again"] if len(again) > 4 else []
    known = {*results(out), *(path for result in results(out) for path in data_files(result))}
    own = {out / "report", out / ".onnxbench-convert"}
    found = [path for path in out.rglob("*") if path.is_file() and path.parent / path.stem not in own]
    extra = [str(path.relative_to(out)) for path in found if path not in known]
    return [*problems, *([f"left over: {', '.join(extra[:8])}"] if extra else [])]


def judge_results(zoo: Path, out: Path, target: int) -> list[str]:
    faults = dict(judge_each(zoo, out, target))
    # What is refused is copied as it is; the others cannot be read.
    problems = [f"{name} has a result" for name in BROKEN if (out / name).exists() and "operator" not in name]
    return [*problems, *(f"{name}: {reason}" for name, reason in faults.items() if name not in BROKEN)]


def judge_each(zoo: Path, out: Path, target: int) -> Iterator[tuple[str, str]]:
    for source in sorted(zoo.rglob("*.onnx")):
        result = out / source.relative_to(zoo)
        if reason := matter(source, result, target) if result.exists() else "no result":
            yield str(source.relative_to(zoo)), reason


def matter(source: Path, result: Path, target: int) -> str:
    """What is wrong with a result, if anything."""
    try:
        after = onnx.load(result)
        if opset_of(after) != target:
            return f"opset {opset_of(after)}"
        if reason := invalidity(after):
            return reason
        before = session(source)
        feeds = [inputs(before, seed, batch) for seed, batch in ((0, 1), (1, 3))]
        return next(
            filter(None, (difference(before.run(None, one), session(result).run(None, one)) for one in feeds)), ""
        )
    except Exception as error:
        return f"{type(error).__name__}: {error}"[:300]


def session(path: Path) -> onnxruntime.InferenceSession:
    settings = onnxruntime.SessionOptions()
    settings.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    settings.log_severity_level = 4
    return onnxruntime.InferenceSession(path, settings, providers=["CPUExecutionProvider"])


def inputs(of: onnxruntime.InferenceSession, seed: int, batch: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    made = {}
    for entry in of.get_inputs():
        shape = [size if isinstance(size, int) else batch for size in entry.shape]
        made[entry.name] = rng.standard_normal(shape).astype(np.float16 if "16" in entry.type else np.float32)
    return made


if __name__ == "__main__":
    sys.exit(main())
