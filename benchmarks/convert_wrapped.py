"""Convert the backend tests of one opset in other surroundings, and compare source and result on ONNX Runtime.

usage: convert_wrapped.py SUITE/RELEASE --to N [--only NAME] [--wrapping NAME ...] [--show STATES]

Each single-operator model is taken as it is, without shapes, with symbols for sizes, in branches of an If, as a local function, as
one that refers to attributes, with its inputs as constants, as initializers that may be overridden, at IR version 3, spelled
"ai.onnx", with nodes in reverse order, and in float16. A model takes part if its source runs.
"""

import os
import sys

# `inspect.py` in this folder must not stand for the standard module: the folder comes last.
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:] = [*(place for place in sys.path if place != HERE), HERE]

import argparse
import multiprocessing
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
import onnx
from onnx import AttributeProto, FunctionProto, ModelProto, TensorProto, helper, numpy_helper

STATES = ("equal", "refused", "no kernel", "WRONG", "INVALID", "CRASHED", "skipped")


def copied(model: ModelProto) -> ModelProto:
    copy = ModelProto()
    copy.CopyFrom(model)
    return copy


def plain(model, feeds):
    return model, feeds


def shapeless(model, feeds):
    for value in (*model.graph.input, *model.graph.output):
        value.type.tensor_type.ClearField("shape")
    return model, feeds


def symbolic(model, feeds):
    for place, value in enumerate((*model.graph.input, *model.graph.output)):
        for axis, dim in enumerate(value.type.tensor_type.shape.dim):
            dim.dim_param = f"d{place}_{axis}"
    return model, feeds


def branch(model, feeds):
    """In both branches of an If, twice deep."""
    graph = model.graph
    if graph.initializer or all(entry.domain for entry in model.opset_import):
        return None

    def inner(nodes, outputs):
        return helper.make_graph(nodes, "branch", [], outputs)

    def renamed(suffix):
        nodes, outputs = [], []
        made = {name: name + suffix for node in graph.node for name in node.output if name}
        for node in graph.node:
            copy = onnx.NodeProto()
            copy.CopyFrom(node)
            copy.input[:] = [made.get(name, name) for name in node.input]
            copy.output[:] = [made.get(name, name) for name in node.output]
            nodes.append(copy)
        for value in graph.output:
            copy = onnx.ValueInfoProto()
            copy.CopyFrom(value)
            copy.name = made.get(value.name, value.name)
            outputs.append(copy)
        return inner(nodes, outputs)

    outputs = [value.name for value in graph.output]
    deep = helper.make_node(
        "If", ["cond"], [f"{name}_d" for name in outputs], then_branch=renamed("_a"), else_branch=renamed("_b")
    )
    declared = []
    for value in graph.output:
        copy = onnx.ValueInfoProto()
        copy.CopyFrom(value)
        copy.name = f"{value.name}_d"
        declared.append(copy)
    node = helper.make_node("If", ["cond"], outputs, then_branch=inner([deep], declared), else_branch=renamed("_c"))
    del graph.node[:]
    graph.node.append(node)
    graph.input.append(helper.make_tensor_value_info("cond", TensorProto.BOOL, []))
    return model, {**feeds, "cond": np.array(True)}


def function(model, feeds, refer=False):
    graph = model.graph
    if graph.initializer or any(a.type == AttributeProto.GRAPH for n in graph.node for a in n.attribute):
        return None
    made = FunctionProto(name="Wrapped", domain="local")
    made.input.extend(value.name for value in graph.input)
    made.output.extend(value.name for value in graph.output)
    made.node.extend(graph.node)
    made.opset_import.extend(model.opset_import)
    call = helper.make_node("Wrapped", list(made.input), list(made.output), domain="local")
    if refer:
        count = 0
        for node in made.node:
            for attribute in node.attribute:
                if attribute.type in (AttributeProto.TENSOR, AttributeProto.GRAPH):
                    continue
                name = f"given_{count}"
                count += 1
                given = call.attribute.add()
                given.CopyFrom(attribute)
                given.name = name
                kind, own = attribute.type, attribute.name
                attribute.Clear()
                attribute.name, attribute.type, attribute.ref_attr_name = own, kind, name
                made.attribute.append(name)
        if not count:
            return None
    del graph.node[:]
    graph.node.append(call)
    model.functions.append(made)
    model.opset_import.append(helper.make_opsetid("local", 1))
    model.ir_version = max(8, model.ir_version)
    return model, feeds


def referring(model, feeds):
    return function(model, feeds, refer=True)


def constants(model, feeds, as_nodes=False, overridable=False, ir=8):
    """Every input but the first is stored."""
    graph = model.graph
    kept = list(graph.input)[:1]
    rest = [value.name for value in list(graph.input)[1:]]
    if as_nodes and all(entry.domain for entry in model.opset_import):
        return None
    if not rest or any(not isinstance(feeds.get(name), np.ndarray) for name in rest):
        return None
    nodes = list(graph.node)
    inputs = list(graph.input) if overridable else kept
    copies = [onnx.ValueInfoProto.FromString(value.SerializeToString()) for value in inputs]
    del graph.input[:]
    graph.input.extend(copies)
    if as_nodes:
        made = [helper.make_node("Constant", [], [name], value=numpy_helper.from_array(feeds[name])) for name in rest]
        old = [onnx.NodeProto.FromString(node.SerializeToString()) for node in nodes]
        del graph.node[:]
        graph.node.extend([*made, *old])
    else:
        graph.initializer.extend(numpy_helper.from_array(feeds[name], name) for name in rest)
    model.ir_version = ir
    return model, {name: value for name, value in feeds.items() if name not in rest}


def nodes(model, feeds):
    return constants(model, feeds, as_nodes=True)


def overridable(model, feeds):
    made = constants(copied(model), feeds, overridable=True)
    return None if made is None else (made[0], feeds)


def third(model, feeds):
    return constants(model, feeds, overridable=True, ir=3)


def spelled(model, feeds):
    for place, node in enumerate(model.graph.node):
        if place % 2 == 0:
            node.domain = "ai.onnx"
    version = next(entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx"))
    del model.opset_import[:]
    model.opset_import.extend([helper.make_opsetid("ai.onnx", version), helper.make_opsetid("", version)])
    return model, feeds


def half(model, feeds):
    changed = False
    for value in (*model.graph.input, *model.graph.output):
        if value.type.tensor_type.elem_type == TensorProto.FLOAT:
            value.type.tensor_type.elem_type = TensorProto.FLOAT16
            changed = True
    for tensor in model.graph.initializer:
        if tensor.data_type == TensorProto.FLOAT:
            tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float16), tensor.name))
    if not changed:
        return None
    return model, {
        name: value.astype(np.float16) if isinstance(value, np.ndarray) and value.dtype == np.float32 else value
        for name, value in feeds.items()
    }


WRAPPINGS = {
    entry.__name__: entry
    for entry in (
        plain, shapeless, symbolic, branch, function, referring, constants, nodes, overridable, third, spelled, half
    )
}  # fmt: skip


def run(model: ModelProto, feeds):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, feeds)


def same(one, other) -> bool:
    if isinstance(one, list):
        return len(one) == len(other) and all(same(a, b) for a, b in zip(one, other, strict=True))
    one, other = np.asarray(one), np.asarray(other)
    if one.dtype != other.dtype or one.shape != other.shape:
        return False
    if one.dtype.kind in "fc":
        rtol = 1e-2 if one.dtype == np.float16 else 1e-3
        one, other = one.astype(np.float64), other.astype(np.float64)
        largest = np.abs(one[np.isfinite(one)]).max(
            initial=1
        )  # a sum of many that is nearly 0 is as wrong as they are large
        return bool(np.allclose(one, other, rtol=rtol, atol=1e-5 * largest, equal_nan=True))
    return bool((one == other).all())


def judge(job):
    """What becomes of one model in one wrapping."""
    folder, name, target = job
    warnings.filterwarnings("ignore")
    from onnxbench.converters.options import ConvertOptions
    from onnxbench.converters.run import convert_model
    from onnxbench.core.model import Model
    from onnxbench.core.slimming import fatten

    model = onnx.load(folder / "model.onnx")
    feeds = {}
    try:
        for place, value in enumerate(model.graph.input):
            tensor = TensorProto.FromString((folder / "test_data_set_0" / f"input_{place}.pb").read_bytes())
            feeds[value.name] = numpy_helper.to_array(tensor)
        made = WRAPPINGS[name](model, feeds)
        if made is None:
            return "skipped", ""
        source, feeds = made
        want = run(source, feeds)
    except Exception as error:
        return "skipped", str(error)
    try:
        result, report = convert_model(Model(source, label="m"), ConvertOptions(targets={"": target}, verify=False))
    except Exception as error:
        return "CRASHED", f"{type(error).__name__}: {error}"
    if result is None:
        return "refused", "; ".join(f"{entry.step}: {entry.reason}" for entry in report.refusals)
    proto = fatten(result).proto
    try:
        onnx.checker.check_model(proto, full_check=True)
    except Exception as error:
        try:
            onnx.checker.check_model(source, full_check=True)
        except Exception:
            pass
        else:
            return "INVALID", str(error)
    try:
        got = run(proto, feeds)
    except Exception as error:
        return "no kernel" if "NOT_IMPLEMENTED" in str(error) else "WRONG", str(error)
    if not all(same(a, b) for a, b in zip(want, got, strict=True)):
        return "WRONG", "other numbers"
    return "equal", ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suite", type=Path)
    parser.add_argument("--to", type=int, required=True)
    parser.add_argument("--only", default="")
    parser.add_argument("--wrapping", action="append", choices=list(WRAPPINGS))
    parser.add_argument("--show", default="WRONG,INVALID,CRASHED")
    options = parser.parse_args()
    folders = sorted(path.parent for path in (options.suite / "node").glob("*/model.onnx") if options.only in str(path))
    names = options.wrapping or list(WRAPPINGS)
    jobs = [(folder, name, options.to) for name in names for folder in folders]
    counts = {name: Counter() for name in names}
    bad = 0
    with multiprocessing.get_context("fork").Pool(2, maxtasksperchild=400) as pool:
        for (folder, name, _), (state, reason) in zip(jobs, pool.imap(judge, jobs, chunksize=8), strict=True):
            counts[name][state] += 1
            if state in options.show.split(","):
                print(f"{state} {name} {folder.name}: {' '.join(reason.split())[:300]}", flush=True)
            bad += state.isupper()
    print("| wrapping | " + " | ".join(STATES) + " |\n|---" * 1 + "|---" * len(STATES) + "|")
    for name, count in counts.items():
        print(f"| {name} | " + " | ".join(str(count[state]) for state in STATES) + " |")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
