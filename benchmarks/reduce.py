"""Compare `onnxbench reduce` with `polygraphy debug reduce` on planted faults, in one run.

usage: reduce.py [--only NAME] [--skip-polygraphy]

Polygraphy gets the check that its users write: a Python script that runs the candidate on the suspect and on the trusted runtime.
Each fault is first shown to move the output by ten tolerances. Prints nodes and bytes left, checks, and CPU seconds, of all
processes: in all, and of the search. That is without start-up, proof and confirmation, and of ours without the explanations that
Polygraphy does not give: the optimization at fault, the nearest passing model, a way around. Needs the test plug-in and polygraphy.
Linux only.
"""

import os
import sys

# `inspect.py` in this folder must not stand for the standard module.
sys.path[:] = [place for place in sys.path if place != os.path.dirname(os.path.abspath(__file__))]

import argparse
import contextlib
import ctypes
import json
import math
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from onnxbench import isolate

LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
value = helper.make_tensor_value_info


@dataclass
class Case:
    """A model with a planted fault, and the nodes of the smallest model that still has it."""

    name: str
    model: onnx.ModelProto
    fault: str
    minimum: int
    one: bool = True  # one node at fault


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="")
    parser.add_argument("--skip-polygraphy", action="store_true")
    options = parser.parse_args()
    print("case | tool | nodes | bytes | checks | CPU s in all | CPU s of the search")
    for case in cases():
        if options.only not in case.name:
            continue
        with tempfile.TemporaryDirectory() as folder:
            compare(case, Path(folder), options.skip_polygraphy)


def compare(case: Case, folder: Path, skip: bool) -> None:
    model = folder / "model.onnx"
    onnx.save(case.model, model)
    moved = shift(case, model, folder)
    size, count = model.stat().st_size, len(case.model.graph.node)
    print(f"{case.name} | original | {count} | {size} | the fault moves the output by {moved:.3g} tolerances")
    assert moved > 10, "the planted fault does not show"
    ours = run_ours(case, model, folder)
    limit = math.ceil(math.log2(count)) + 3
    print(row(case, "onnxbench", ours), "" if not case.one or ours["checks"] <= limit else f"MORE THAN {limit} CHECKS")
    assert ours["nodes"] == case.minimum, f"the minimum is {case.minimum}"
    if skip:
        return
    for mode in ("bisect", "linear"):
        theirs = run_polygraphy(case, model, folder, mode)
        print(row(case, f"polygraphy {mode}", theirs))
        search = ours["search"] / theirs["search"] if theirs["search"] else float("nan")
        print(
            f"{case.name} | ratio | {ours['nodes'] / max(1, theirs['nodes']):.3f} | "
            f"{ours['bytes'] / max(1, theirs['bytes']):.5f} | | {ours['cpu'] / theirs['cpu']:.3f} | {search:.3f}",
            flush=True,
        )
        if theirs["nodes"] <= case.minimum or count > 250:
            return


def row(case: Case, tool: str, found: dict) -> str:
    return (
        f"{case.name} | {tool} | {found['nodes']} | {found['bytes']} | {found['checks']} | "
        f"{found['cpu']:.2f} | {found['search']:.2f}"
    )


def cpu(command: list[str], folder: Path) -> tuple[float, str]:
    """CPU seconds of a command and of all that it started, and what it printed.

    Processes that it leaves behind become our children, so that none is missed.
    """
    isolate.shut_down()  # our own workers, or we would wait for them
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    before = os.times()
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=environment, timeout=1800)
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, 0):
            pass
    after = os.times()
    used = after.children_user - before.children_user + after.children_system - before.children_system
    return used, done.stdout if done.stdout.strip() else done.stderr


def run_ours(case: Case, model: Path, folder: Path) -> dict:
    command = [sys.executable, "-m", "onnxbench", "reduce", str(model), "-r", f"misbehaving:{case.fault}"]
    command += ["--against", "onnxruntime:opt=disable", "--json", "-q"]
    whole, said = cpu([*command, "--bundle", "out"], folder)
    report = json.loads(said)
    proof, _ = cpu([*command, "--prove"], folder)
    search, _ = cpu([*command, "-o", "out.onnx", "--no-explain"], folder)
    return {
        "nodes": report["all_nodes_after"],
        "bytes": (folder / "out" / "model.onnx").stat().st_size,
        "checks": report["checks"],
        "cpu": whole,
        "search": max(0.01, search - proof),
    }


CHECK = """\
import sys

import numpy as np
import onnx
import onnxruntime
from misbehaving_faults import run_faulty

open("asked", "a").write(".")
model = onnx.load(sys.argv[1])
rng = np.random.default_rng(0)
settings = onnxruntime.SessionOptions()
settings.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
settings.log_severity_level = 4
session = onnxruntime.InferenceSession(model.SerializeToString(), settings, providers=["CPUExecutionProvider"])
feeds = {}
for declared in session.get_inputs():
    shape = [size if isinstance(size, int) else 2 for size in declared.shape]
    feeds[declared.name] = rng.standard_normal(shape).astype(np.float32)
names = [output.name for output in session.get_outputs()]
want = dict(zip(names, session.run(names, feeds)))
got = run_faulty(model.SerializeToString(), None, feeds, names, OPTIONS, lambda name: None)
sys.exit(not all(np.allclose(got[n], want[n], rtol=1e-4, atol=1e-5, equal_nan=True) for n in names))
"""


def run_polygraphy(case: Case, model: Path, folder: Path, mode: str) -> dict:
    import misbehaving_faults

    shutil.copy(misbehaving_faults.__file__, folder / "misbehaving_faults.py")
    options = dict(part.split("=", 1) for part in case.fault.split(","))
    (folder / "check.py").write_text(f"OPTIONS = {options!r}\n{CHECK}")
    (folder / "asked").unlink(missing_ok=True)
    tool = str(Path(sys.executable).with_name("polygraphy"))
    target = folder / f"reduced-{mode}.onnx"
    command = [tool, "debug", "reduce", str(model), "-o", str(target), "--mode", mode, "--model-input-shapes"]
    command += [f"{declared.name}:[{','.join(map(str, shape_of(declared)))}]" for declared in fed(case.model)]
    command += ["--check", sys.executable, "check.py", "polygraphy_debug.onnx"]
    used, said = cpu(command, folder)
    start, _ = cpu([tool, "inspect", "model", str(model)], folder)
    asked = len((folder / "asked").read_text()) if (folder / "asked").exists() else 0
    found = {"checks": asked, "cpu": used, "search": used - start}
    if not target.exists():
        print(f"{case.name} | polygraphy {mode} wrote nothing: {said.strip().splitlines()[-1:]}")
        return {"nodes": len(case.model.graph.node), "bytes": model.stat().st_size, **found}
    return {"nodes": len(onnx.load(target).graph.node), "bytes": target.stat().st_size, **found}


def fed(model: onnx.ModelProto) -> list:
    held = {tensor.name for tensor in model.graph.initializer}
    return [declared for declared in model.graph.input if declared.name not in held]


def shape_of(declared: onnx.ValueInfoProto) -> list[int]:
    return [dim.dim_value or 2 for dim in declared.type.tensor_type.shape.dim]


def shift(case: Case, model: Path, folder: Path) -> float:
    """By how many tolerances the fault moves the output of the whole model."""
    from onnxbench import GraphView, find, generate, load

    loaded = load(model)
    feeds = generate(GraphView(loaded.proto, loaded.proto.graph))
    want = find("onnxruntime:opt=disable").run(loaded, feeds).outputs
    outcome = find(f"misbehaving:{case.fault}").run(loaded, feeds)
    if not outcome.ok:
        return math.inf
    worst = 0.0
    for name, right in want.items():
        error = np.abs(outcome.outputs[name].astype(np.float64) - right)
        worst = max(worst, float((error / (1e-5 * np.abs(right).max() + 1e-4 * np.abs(right) + 1e-30)).max()))
    return worst


# cases ---------------------------------------------------------------------------------------------------------------


def cases():
    for length in (50, 200, 1000):
        yield Case(f"chain of {length}", chain(length, {length // 3: "Softsign"}), "ops=Softsign,do=wrong", 1)
    yield Case("8 branches", branches(), "ops=Softsign,do=wrong", 1)
    yield Case("2 far apart", chain(200, {20: "Softsign", 170: "Softplus"}), "ops=Softsign+Softplus,do=wrong", 2, False)
    yield Case("fusion", chain(100, {40: "Softsign", 41: "Softplus"}), "fused=Softsign+Softplus,do=wrong", 2, False)
    yield Case("value", chain(100, {0: "Exp", 60: "Softsign"}), "ops=Softsign,above=3,do=wrong", 1)
    yield Case("in an If", nested(), "ops=Softsign,inside=1,do=raise", 2, False)
    for name, culprit in (("resnet50", 200), ("inception_v1", 60), ("densenet121", 400), ("squeezenet", 30)):
        yield light(name, culprit)


def chain(length: int, culprits: dict[int, str]) -> onnx.ModelProto:
    """Neg and Identity-like steps that hand a change on: x, then x + c, so that no saturation hides a fault."""
    nodes = []
    for i in range(length):
        if i in culprits:
            nodes.append(helper.make_node(culprits[i], [f"t{i}"], [f"t{i + 1}"], name=f"n{i}"))
        elif i % 2:
            nodes.append(helper.make_node("Neg", [f"t{i}"], [f"t{i + 1}"], name=f"n{i}"))
        else:
            nodes.append(helper.make_node("Add", [f"t{i}", "c"], [f"t{i + 1}"], name=f"n{i}"))
    graph = helper.make_graph(
        nodes,
        "chain",
        [value("t0", 1, [2, 8])],
        [value(f"t{length}", 1, [2, 8])],
        [numpy_helper.from_array(np.full(8, 0.01, np.float32), "c")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def branches() -> onnx.ModelProto:
    nodes, ends = [], []
    for b in range(8):
        for i in range(6):
            op = "Softsign" if (b, i) == (5, 3) else ("Sin", "Neg")[i % 2]
            nodes.append(helper.make_node(op, [f"v{b}_{i}" if i else "x"], [f"v{b}_{i + 1}"], name=f"b{b}_{i}"))
        ends.append(f"v{b}_6")
    nodes.append(helper.make_node("Sum", ends, ["y"], name="sum"))
    graph = helper.make_graph(nodes, "branches", [value("x", 1, [2, 8])], [value("y", 1, [2, 8])])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def nested() -> onnx.ModelProto:
    def branch(name: str, op: str) -> onnx.GraphProto:
        inner = [helper.make_node("Sin", ["m"], [f"{name}1"]), helper.make_node(op, [f"{name}1"], [f"{name}2"])]
        inner += [helper.make_node("Neg", [f"{name}{i}"], [f"{name}{i + 1}"]) for i in range(2, 10)]
        return helper.make_graph(inner, name, [], [value(f"{name}10", 1, [2, 8])])

    nodes = [helper.make_node("Neg", ["x" if not i else f"a{i}"], [f"a{i + 1}"], name=f"a{i}") for i in range(20)]
    nodes.append(helper.make_node("Identity", ["a20"], ["m"], name="m"))
    nodes.append(
        helper.make_node(
            "If", ["go"], ["b0"], name="if", then_branch=branch("t", "Softsign"), else_branch=branch("e", "Cos")
        )
    )
    nodes += [helper.make_node("Neg", [f"b{i}"], [f"b{i + 1}"], name=f"b{i}") for i in range(20)]
    graph = helper.make_graph(
        nodes,
        "nested",
        [value("x", 1, [2, 8])],
        [value("b20", 1, [2, 8])],
        [numpy_helper.from_array(np.asarray(True), "go")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def light(name: str, culprit: int) -> Case:
    """A network of the onnx package with He-scaled weights and without its last Softmax; one Relu is at fault."""
    model = onnx.load(LIGHT / f"light_{name}.onnx")
    rng = np.random.default_rng(0)
    graph = model.graph
    if graph.node[-1].op_type == "Softmax":
        graph.output[0].name = graph.node[-1].input[0]
        del graph.node[-1]
    stored = {tensor.name: tensor for tensor in graph.initializer}
    made = {output: node for node in graph.node for output in node.output}
    for node in graph.node:
        first = 0 if node.op_type == "Unsqueeze" else 1  # what scales and shifts after BatchNormalization
        for place, source in enumerate(node.input[first : 1 if not first else None], first):
            fill(node, place, source, stored, made, rng)
    relus = [node for node in graph.node if node.op_type == "Relu"]
    target = min(relus, key=lambda node: abs(list(graph.node).index(node) - culprit))
    target.name = "the_culprit"
    return Case(name, model, "names=the_culprit,do=wrong", 1)


def fill(node, place: int, source: str, stored: dict, made: dict, rng) -> None:
    maker = made.get(source)
    if maker is not None and maker.op_type == "ConstantOfShape":
        shape = numpy_helper.to_array(stored[maker.input[0]]) if maker.input[0] in stored else None
        if shape is None:
            return
        data = sample(node, place, tuple(int(size) for size in shape), rng)
        maker.op_type = "Constant"
        del maker.input[:]
        del maker.attribute[:]
        maker.attribute.append(helper.make_attribute("value", numpy_helper.from_array(data)))
    elif source in stored and stored[source].data_type == TensorProto.FLOAT:
        data = sample(node, place, tuple(stored[source].dims), rng)
        stored[source].CopyFrom(numpy_helper.from_array(data, source))


def sample(node, place: int, shape: tuple[int, ...], rng) -> np.ndarray:
    if node.op_type == "BatchNormalization":  # scale, bias, mean, variance
        return np.full(shape, (0, 1.0, 0.0, 0.0, 1.0)[place], np.float32)
    if node.op_type == "Unsqueeze":
        return np.ones(shape, np.float32)
    if len(shape) < 2:
        return np.zeros(shape, np.float32)
    fan = int(np.prod(shape[1:])) if node.op_type == "Conv" else shape[-1]
    return (rng.standard_normal(shape) * math.sqrt(2 / max(1, fan))).astype(np.float32)


if __name__ == "__main__":
    main()
