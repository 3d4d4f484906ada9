"""Count what is known of the values of real models, by our propagation and by others, and hold ours against real runs.

usage: python benchmarks/shapes.py FOLDER [--least NODES] [--no-runs]

FOLDER holds .onnx files. Of each, the outputs of the nodes of the main graph are counted: those with a known element
type, a known rank, and dims that are all numbers or expressions over sizes of the inputs (in brackets: made-up symbols
count too). Beside ours: `onnx.shape_inference.infer_shapes(data_prop=True)` and ONNX Runtime's
`SymbolicShapeInference(auto_merge=True)`, which needs sympy; "-" where it fails. Then the model runs at two sizes of its
symbols, ONNX Runtime without optimizations, every value recorded; each dim and element type that we claim is compared;
what the file itself declares wrongly is not counted.
"""

import os
import sys

# `inspect.py` in this folder must not stand for the standard module.
sys.path[:] = [place for place in sys.path if place != os.path.dirname(os.path.abspath(__file__))]

import argparse
import re
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
import onnx

from onnxbench import BenchError, GraphView, find, generate, isolate, load, record
from onnxbench.core.shape_rules.light import declared_texts
from onnxbench.core.shape_rules.symbols import lone
from onnxbench.core.shapes import propagate
from onnxbench.core.sizes import choose_sizes
from onnxbench.core.symbolic import Expr, evaluate
from onnxbench.core.types import run_inference
from onnxbench.core.values import element_type, tensor_type

FUNCTIONS = {"floor", "ceiling", "Max", "Min", "max", "min", "Mod"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--least", type=int, default=0)
    parser.add_argument("--no-runs", action="store_true")
    options = parser.parse_args()
    print("| model | values | ours: element, rank, dims | onnx | ONNX Runtime | compared | contradictions | seconds |")
    print("|---|---|---|---|---|---|---|---|")
    worse, wrong, small = 0, 0, 0
    for path in sorted(options.folder.rglob("*.onnx")):
        model = load(path)
        view = GraphView(model.proto, model.proto.graph)
        started = time.perf_counter()
        shapes = propagate(model, timeout=120)
        seconds = time.perf_counter() - started
        names = [name for node in view.nodes for name in node.outputs if name]
        ours = count(names, {name: described(shapes, name) for name in names})
        texts = declared_texts(model.proto)
        others = [theirs(names, texts, function(path)) for function in (by_onnx, by_onnxruntime)]
        compared, contradictions = (0, []) if options.no_runs else run_twice(model, view, shapes)
        is_worse = any(o is not None and any(a < b for a, b in zip(ours[:3], o[:3], strict=True)) for o in others)
        worse, wrong = worse + is_worse, wrong + len(contradictions)
        if len(view.nodes) < options.least and not is_worse and not contradictions:
            small += 1
            continue
        cells = [
            path.name if path.name != "model.onnx" else path.parent.name,
            len(names),
            text(ours),
            *map(text, others),
        ]
        print("|", " | ".join(map(str, [*cells, compared, len(contradictions), f"{seconds:.2f}"])), "|", flush=True)
        for line in [*contradictions[:5], *([shapes.note] if shapes.note else [])]:
            print("   ", line)
    print(f"\nand {small} smaller ones; worse than another in {worse} models; {wrong} contradictions to a run")


def by_onnx(path):
    result = isolate.call(run_inference, (load(path).proto.SerializeToString(),), timeout=300)
    return onnx.ModelProto.FromString(result.value) if isinstance(result, isolate.Ok) else None


def by_onnxruntime(path):
    with tempfile.TemporaryDirectory() as folder:  # the tool leaves files in the working folder where it fails
        made = Path(folder) / "made.onnx"
        tool = "onnxruntime.tools.symbolic_shape_infer"
        command = [sys.executable, "-P", "-m", tool, "--input", path.absolute(), "--output", made, "--auto_merge"]
        subprocess.run(command, cwd=folder, capture_output=True, timeout=300)
        return onnx.load(made) if made.exists() else None


def theirs(names, texts, model):
    if model is None:
        return None
    graph = model.graph
    types = {value.name: value.type for value in (*graph.value_info, *graph.output)}
    fed = {dim.dim_param for value in graph.input for dim in dims_of(value.type)}
    words = {word for text in {*texts, *fed} for word in re.findall(r"[^\W\d]\w*", text)} | FUNCTIONS
    return count(names, {name: read(types[name], words) for name in names if name in types})


def read(kind, words):
    """(element known, dims as (known, named)) of a type."""
    holder = tensor_type(kind)
    if holder is None:
        return bool(kind.WhichOneof("value")), []
    if not holder.HasField("shape"):
        return bool(holder.elem_type), None
    dims = []
    for dim in holder.shape.dim:
        own = all(word in words for word in re.findall(r"[^\W\d]\w*", dim.dim_param))
        named = dim.HasField("dim_value") or bool(dim.dim_param)
        dims.append((named and own, named))
    return bool(holder.elem_type), dims


def described(shapes, name):
    dims = shapes.dims(name)
    kind = shapes.type(name)
    if kind is not None and not kind.HasField("tensor_type"):
        return read(kind, set())
    if dims is None:
        return shapes.element(name) is not None, None
    known = [
        (dim is not None and not (isinstance(dim, Expr) and dim.symbols & shapes.made_up), dim is not None)
        for dim in dims
    ]
    return shapes.element(name) is not None, known


def count(names, found):
    values = [found.get(name, (False, None)) for name in names]
    ranked = [dims for _, dims in values if dims is not None]
    return (
        sum(element for element, _ in values),
        len(ranked),
        sum(all(own for own, _ in dims) for dims in ranked),
        sum(all(named for _, named in dims) for dims in ranked),
    )


def text(counts):
    return "-" if counts is None else "{}, {}, {} ({})".format(*counts)


def run_twice(model, view, shapes):
    compared, contradictions = 0, []
    for first, step in ((2, 1), (5, 2)):
        try:
            symbols, values = run(model, view, shapes, first, step)
        except BenchError as error:
            print("    cannot run:", error)
            return compared, contradictions
        for name, value in values.items():
            if isinstance(value, np.ndarray):
                compared += 1
                declared = [dim.dim_value for dim in dims_of(view.types[name])] if name in view.types else []
                if declared and declared == [evaluate(dim, symbols) for dim in shapes.dims(name) or ()]:
                    continue
                contradictions += wrong_of(shapes, name, value, symbols)
    return compared, contradictions


def run(model, view, shapes, first, step):
    """Every value of the main graph, with the symbols at different sizes, and what the symbols are worth."""
    names = list(dict.fromkeys(d.dim_param for info in view.inputs.values() for d in dims_of(info.type) if d.dim_param))
    plain = [name for name in names if not re.search(r"[-+*/ ]", name)]
    image = {name: 64 * (i + first) if i else first for i, name in enumerate(plain)}
    attempts = [image | ({"?": 48} if "?" in plain else {})]
    attempts += [{name: first + step * i for i, name in enumerate(plain)}, dict.fromkeys(plain, 32 * first), {}]
    best = None
    for dims in attempts:
        try:
            feeds = generate(view, dims=dims)
        except BenchError:
            if dims:
                continue
            raise
        with tempfile.TemporaryDirectory() as folder:
            made = record([find("onnxruntime:opt=disable")], model, view, feeds, workspace=Path(folder))
            values = made.values
            shaped = {n: np.empty(v.shape, v.dtype) if isinstance(v, np.ndarray) else v for n, v in values.items()}
        symbols = dict(choose_sizes(view, {}, dims).symbols)
        if best is None or len(shaped) > len(best[1]):
            best = symbols, shaped
        if not made.missing:
            break
    return best


def dims_of(kind):
    holder = tensor_type(kind)
    return holder.shape.dim if holder is not None else ()


def wrong_of(shapes, name, value, symbols):
    """Sentences for what we claim of a value and a run refutes; made-up symbols get the size that they first have."""
    found = []
    element, dims = shapes.element(name), shapes.dims(name)
    if element is not None and element != element_type(value.dtype):
        found.append(f"{name}: element {element}, run {value.dtype}")
    if dims is None:
        return found
    if len(dims) != value.ndim:
        return [*found, f"{name}: rank {len(dims)} {[str(d) for d in dims]}, run {value.shape}"]
    for dim, size in zip(dims, value.shape, strict=True):
        if dim is None:
            continue
        if lone(dim) and lone(dim) not in symbols:
            symbols[lone(dim)] = size
        claimed = evaluate(dim, symbols)
        if isinstance(claimed, int) and claimed != size:
            found.append(f"{name}: {dim} = {claimed}, run {value.shape}")
    return found


if __name__ == "__main__":
    main()
