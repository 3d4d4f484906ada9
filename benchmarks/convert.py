"""Compare `onnxbench convert` with other opset converters on ONNX's own backend tests, in one run.

usage: convert.py [--suite DIR] [--direction 9:13 ...] [--ours-only] [--show wrong,invalid,refused] [--json FILE] ...

DIR is what corpus/fetch_backend_tests.py made: single-operator models of each opset with inputs and right outputs; the tests that
the installed onnx generates come to them. A model takes part in a direction if it has that opset itself and gives its own outputs.
Each converter runs in worker processes with a limit of time, for some end in a segmentation fault. What a result is:

  correct   the checker and strict inference take it, it is at the target, and it gives the outputs of the test
  wrong     it runs, and gives other outputs
  invalid   a result was given that checker, inference or runtime refuses, or that is not at the target
  refused   the converter said that it cannot
  no kernel valid, and no runtime here can run it
  crashed   the converter died, hung or, ours, ended in an error that is none of its own

Outputs come from ONNX Runtime without optimizations, else from the reference evaluator. Source "latest" is the generated tests,
labelled with the newest opset where that says the same. Linux only.
"""

import os
import sys

# `inspect.py` in this folder must not stand for the standard module: the folder comes last.
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:] = [*(place for place in sys.path if place != HERE), HERE]
os.environ["ALLOW_RELEASED_ONNX_OPSET_ONLY"] = "0"  # ONNX Runtime shall try opsets that it does not know in full

import argparse
import contextlib
import ctypes
import hashlib
import json
import multiprocessing
import pickle
import signal
import struct
import subprocess
import tempfile
import time
import traceback
import warnings
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import ModelProto, NodeProto, OptionalProto, SequenceProto, TensorProto, ValueInfoProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

LATEST = onnx.defs.onnx_opset_version()
DIRECTIONS = [
    "7:13",
    "8:13",
    "9:13",
    "9:latest",
    "11:17",
    "13:latest",
    "18:latest",
    "13:9",
    "17:11",
    "latest:17",
    "18:25",
]
KINDS = ("node", "simple", "pytorch-converted", "pytorch-operator")
CLASSES = ("correct", "wrong", "invalid", "refused", "no kernel", "crashed")
OURS, CPP, SCRIPT = "onnxbench", "onnx C++", "onnxscript"
ORT, REFERENCE = "ORT", "reference"
RTOL, ATOL = 1e-3, 1e-7
PEER = """\
import os, pickle, struct, sys
out = os.fdopen(os.dup(1), "wb")
os.dup2(2, 1)
import onnx
from onnxscript import ir, version_converter
while head := sys.stdin.buffer.read(4):
    data, target = pickle.loads(sys.stdin.buffer.read(struct.unpack("<I", head)[0]))
    try:
        model = ir.from_proto(onnx.ModelProto.FromString(data))
        version_converter.convert_version(model, target)
        answer = (ir.to_proto(model).SerializeToString(), "")
    except BaseException as error:
        answer = (None, f"{type(error).__name__}: {error}"[:500])
    answer = pickle.dumps(answer)
    out.write(struct.pack("<I", len(answer)) + answer)
    out.flush()
"""


class Refused(Exception):
    """A converter said that it cannot convert a model."""


# The suite.


@dataclass(frozen=True)
class Case:
    """A backend test on disk: the model is `path`, the data lies beside it."""

    name: str
    path: str
    opset: int

    def data(self) -> Iterator[list[Path]]:
        """Files of each data set, inputs before outputs."""
        for folder in sorted(Path(self.path).parent.glob("test_data_set_*")):
            yield [*numbered(folder, "input"), *numbered(folder, "output")]


def numbered(folder: Path, stem: str) -> list[Path]:
    return sorted(folder.glob(f"{stem}_*.pb"), key=lambda path: int(path.stem.rpartition("_")[2]))


def suite(folder: Path) -> list[Case]:
    """Every test once, of whatever release it was first in."""
    seen: set[bytes] = set()
    found = []
    for root, label in [*((release, release.name) for release in releases(folder)), *generated()]:
        for path in sorted(path for kind in KINDS for path in root.glob(f"{kind}/*/model.onnx")):
            case = Case(f"{label}/{path.parent.parent.name}/{path.parent.name}", str(path), 0)
            content = path.read_bytes()
            mark = hashlib.sha1(b"\0".join([content, *(f.read_bytes() for files in case.data() for f in files)]))
            if mark.digest() in seen:
                continue
            seen.add(mark.digest())
            opset = opset_of(ModelProto.FromString(content))
            if opset is not None:
                found.append(Case(case.name, case.path, opset))
    return found


def releases(folder: Path) -> list[Path]:
    named = [path for path in folder.iterdir() if path.name[0].isdigit() and path.is_dir()]
    return sorted(named, key=lambda path: [int(part) for part in path.name.split(".")])


def opset_of(model: ModelProto) -> int | None:
    return next((entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx")), None)


def generated() -> list[tuple[Path, str]]:
    """Folders of the tests of the installed onnx: as they are, and labelled with the newest opset. Made once."""
    root = Path(tempfile.gettempdir()) / f"onnxbench-backend-tests-{onnx.__version__}-{os.getuid()}"
    if not (root / ".done").exists():
        root.mkdir(exist_ok=True)
        print("generating the tests of the installed onnx ...", file=sys.stderr)
        worker = multiprocessing.get_context("fork").Process(target=generate, args=(root,))
        worker.start()
        worker.join()
        assert worker.exitcode == 0, "the tests could not be generated"
        (root / ".done").touch()
    return [(root / "current", "current"), (root / "latest", "latest")]


def generate(root: Path) -> None:
    from onnx.backend.test.loader import load_model_tests

    warnings.simplefilter("ignore")
    for kind in KINDS:
        for case in load_model_tests(kind=kind):
            folder = root / "current" / kind / case.name
            if case.model_dir is not None:
                folder.parent.mkdir(parents=True, exist_ok=True)
                if not folder.exists():
                    folder.symlink_to(case.model_dir)
            else:
                write(case, folder)
            model = onnx.load(folder / "model.onnx")
            if relabel(model):
                beside = root / "latest" / kind / case.name
                beside.mkdir(parents=True, exist_ok=True)
                onnx.save(model, beside / "model.onnx")
                for data in folder.glob("test_data_set_*"):
                    if not (beside / data.name).exists():
                        (beside / data.name).symlink_to(data)


def write(case: Any, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    onnx.save(case.model, folder / "model.onnx")
    for number, (inputs, outputs) in enumerate(case.data_sets):
        data = folder / f"test_data_set_{number}"
        data.mkdir(exist_ok=True)
        for stem, arrays, values in (
            ("input", inputs, case.model.graph.input),
            ("output", outputs, case.model.graph.output),
        ):
            for index, (array, value) in enumerate(zip(arrays, values, strict=False)):
                (data / f"{stem}_{index}.pb").write_bytes(encode(array, value).SerializeToString())


def encode(array: Any, value: ValueInfoProto) -> Any:
    if isinstance(array, TensorProto):
        return array
    kind = value.type.WhichOneof("value")
    if kind == "sequence_type":
        return numpy_helper.from_list(array, value.name)
    if kind == "optional_type":
        return numpy_helper.from_optional(array, value.name)
    return numpy_helper.from_array(np.asarray(array), value.name)


def relabel(model: ModelProto) -> bool:
    """Give a model the newest opset, if each operator in it means the same there."""
    old = opset_of(model)
    if old is None:
        return False
    for op in {node.op_type for node in nodes(model) if node.domain in ("", "ai.onnx")}:
        try:
            if onnx.defs.get_schema(op, old).since_version != onnx.defs.get_schema(op, LATEST).since_version:
                return False
        except onnx.defs.SchemaError:
            return False
    for owner in (model, *model.functions):
        for entry in owner.opset_import:
            if entry.domain in ("", "ai.onnx"):
                entry.version = LATEST
    model.ir_version = max(model.ir_version, helper.find_min_ir_version_for(model.opset_import, ignore_unknown=True))
    return True


def nodes(model: ModelProto) -> Iterator[NodeProto]:
    pending = [*model.graph.node, *(node for function in model.functions for node in function.node)]
    while pending:
        node = pending.pop()
        yield node
        for attribute in node.attribute:
            pending += attribute.g.node
            pending += [inner for graph in attribute.graphs for inner in graph.node]


# Converters: a path, a target, and whether to verify; the result's bytes.


def convert_ours(path: str, target: int, verify: bool) -> bytes:
    from onnxbench.converters.options import ConvertOptions
    from onnxbench.converters.run import convert_model
    from onnxbench.core.model import load
    from onnxbench.core.slimming import fatten
    from onnxbench.errors import BenchError

    try:
        result, report = convert_model(load(path), ConvertOptions(targets={"": target}, verify=verify))
    except BenchError as error:
        raise Refused(f"{error.code} {error}") from error
    if result is None:
        reasons = sorted({f"{refusal.step}: {refusal.reason}" for refusal in report.refusals})
        raise Refused("; ".join(reasons) or f"{report.state}: {report.reason}")
    return fatten(result).proto.SerializeToString()


def convert_cpp(path: str, target: int, verify: bool) -> bytes:
    from onnx import version_converter

    model = onnx.load(path)
    try:
        return version_converter.convert_version(model, target).SerializeToString()
    except Exception as error:
        raise Refused(f"{type(error).__name__}: {error}") from error


def convert_script(path: str, target: int, verify: bool) -> bytes:
    process = peer()
    message = pickle.dumps((Path(path).read_bytes(), target))
    process.stdin.write(struct.pack("<I", len(message)) + message)
    process.stdin.flush()
    head = process.stdout.read(4)
    if not head:
        peer.cache_clear()
        raise RuntimeError("the converter died")
    data, reason = pickle.loads(process.stdout.read(struct.unpack("<I", head)[0]))
    if data is None:
        raise Refused(reason)
    return data


peer_interpreter = "python"  # of an environment that has onnxscript; --peers says which


@cache
def peer() -> subprocess.Popen[bytes]:
    command = [peer_interpreter, "-c", PEER]
    environment = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment
    )


CONVERTERS: dict[str, Callable[[str, int, bool], bytes]] = {
    OURS: convert_ours,
    CPP: convert_cpp,
    SCRIPT: convert_script,
}


# Running and judging.


class NoKernel(Exception):
    """A runtime cannot run a model, which says nothing about the model."""


class Unloadable(Exception):
    """A runtime says that a model is no good."""


def run_ort(model: ModelProto, feeds: dict[str, Any]) -> list[Any]:
    settings = onnxruntime.SessionOptions()
    settings.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    settings.log_severity_level = 4
    settings.intra_op_num_threads = settings.inter_op_num_threads = 1
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), settings, providers=["CPUExecutionProvider"])
    except Exception as error:
        raise (NoKernel if is_gap(str(error)) else Unloadable)(f"{error}") from error
    try:
        if any(is_odd(array) for array in feeds.values()):
            return run_odd(session, model, feeds)
        return session.run(None, feeds)
    except RuntimeError as error:
        if "No corresponding Numpy type" in str(error):
            raise NoKernel(f"{error}") from error
        raise


def is_gap(message: str) -> bool:
    """Whether ONNX Runtime says that it lacks something, and not that the model does."""
    said = (
        "NOT_IMPLEMENTED",
        "Could not find an implementation",
        "No Op registered",
        "is not a registered function/op",
    )
    return any(part in message for part in (*said, "under development", "Unsupported model IR version"))


def is_odd(array: Any) -> bool:
    return isinstance(array, np.ndarray) and array.dtype.kind == "V"


def run_odd(session: onnxruntime.InferenceSession, model: ModelProto, feeds: dict[str, Any]) -> list[Any]:
    """Run with inputs of types that NumPy lacks."""
    types = {value.name: value.type.tensor_type.elem_type for value in model.graph.input}
    values = {}
    for name, array in feeds.items():
        if is_odd(array):
            if array.dtype.name.startswith(("int", "uint", "float4")):
                raise NoKernel("packed types")
            raw = array.view(f"u{array.dtype.itemsize}")
            values[name] = onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(raw, types[name])
        elif isinstance(array, np.ndarray):
            values[name] = onnxruntime.OrtValue.ortvalue_from_numpy(array)
        else:
            raise NoKernel("sequences beside odd types")
    return [value.numpy() for value in session.run_with_ort_values(None, values)]


def run_reference(model: ModelProto, feeds: dict[str, Any]) -> list[Any]:
    try:
        return ReferenceEvaluator(model).run(None, feeds)
    except Exception as error:
        raise NoKernel(f"{type(error).__name__}: {error}") from error


def decode(path: Path, value: ValueInfoProto) -> Any:
    content, kind = path.read_bytes(), value.type.WhichOneof("value")
    if kind == "sequence_type":
        return numpy_helper.to_list(SequenceProto.FromString(content))
    if kind == "optional_type":
        return numpy_helper.to_optional(OptionalProto.FromString(content))
    return numpy_helper.to_array(TensorProto.FromString(content))


def data_sets(case: Case, source: ModelProto) -> list[tuple[dict[str, Any], list[Any]]]:
    """Feeds and right outputs; inputs that have a value themselves get none from the test."""
    stored = {tensor.name for tensor in source.graph.initializer}
    found = []
    for files in case.data():
        given = [path for path in files if path.name.startswith("input")]
        wanted = [path for path in files if path.name.startswith("output")]
        asked = [value for value in source.graph.input if value.name not in stored]
        if len(given) > len(asked):
            asked = list(source.graph.input)
        feeds = {value.name: decode(path, value) for path, value in zip(given, asked, strict=False)}
        outputs = [decode(path, value) for path, value in zip(wanted, source.graph.output, strict=False)]
        found.append((feeds, outputs))
    return found


def run(model: ModelProto, sets: list[tuple[dict[str, Any], list[Any]]], by: str = "") -> tuple[str, str, str]:
    """What a model does on the data of its test (correct, wrong, invalid or no kernel), why, and what ran it right.

    ONNX Runtime has the last word if it runs the model, but for results of a source (`by`) that only the reference ran right.
    """
    found, why = run_by(run_ort, model, sets)
    if found == "correct":
        return found, "", ORT
    if found != "no kernel" and by == ORT:
        return found, f"{ORT}: {why}", ""
    other, because = run_by(run_reference, model, sets)
    said = f"{ORT}: {why}; {REFERENCE}: {because}"
    if other == "correct":
        return other, f"{REFERENCE}; {ORT}: {why}", REFERENCE
    if found == "no kernel" and opset_of(model) < 13:
        return "no kernel", said, ""  # the reference knows little of what operators meant then
    return (other if found == "no kernel" else found), said, ""


def run_by(runtime: Any, model: ModelProto, sets: list[tuple[dict[str, Any], list[Any]]]) -> tuple[str, str]:
    try:
        reason = next(filter(None, (differ(runtime(model, feeds), wanted) for feeds, wanted in sets)), "")
    except NoKernel as error:
        return "no kernel", f"{error}"
    except Unloadable as error:
        return "invalid", f"{error}"
    except Exception as error:
        return "wrong", f"{type(error).__name__}: {error}"
    return ("wrong", reason) if reason else ("correct", "")


def differ(outputs: Iterable[Any], wanted: list[Any]) -> str:
    outputs = list(outputs)
    if len(outputs) != len(wanted):
        return f"{len(outputs)} outputs for {len(wanted)}"
    return next(filter(None, map(difference, outputs, wanted)), "")


def difference(output: Any, wanted: Any) -> str:
    if wanted is None or output is None:
        return "" if wanted is output else "one is none"
    if isinstance(wanted, list):
        return differ(output, wanted) if isinstance(output, list) else "no sequence"
    output, wanted = np.asarray(output), np.asarray(wanted)
    if output.shape != wanted.shape:
        return f"shape {list(output.shape)} for {list(wanted.shape)}"
    if is_odd(wanted) or is_odd(output):
        if is_odd(wanted) and not is_odd(output) and output.dtype.itemsize == wanted.dtype.itemsize:
            output = output.view(wanted.dtype)
        output, wanted = output.astype(np.float32), wanted.astype(np.float32)
    if wanted.dtype.kind in "OUS":
        return "" if [*map(plain, output.flat)] == [*map(plain, wanted.flat)] else "other strings"
    if output.dtype != wanted.dtype:
        return f"{output.dtype} for {wanted.dtype}"
    if np.allclose(output, wanted, rtol=RTOL, atol=ATOL, equal_nan=True):
        return ""
    return "other numbers"


def plain(text: Any) -> str:
    return text.decode() if isinstance(text, bytes) else str(text)


def invalidity(model: ModelProto) -> str:
    """Why the checker or strict inference does not take a model."""
    try:
        onnx.checker.check_model(model, full_check=True)
        onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True, data_prop=True)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


# Work, in a worker.


@dataclass(frozen=True)
class Task:
    """A model to judge as it is (no tool), or to convert and judge."""

    case: Case
    tool: str = ""
    target: int = 0
    verify: bool = False
    taken: bool = True  # by the checker, as it is
    by: str = ""  # the runtime that runs it right as it is


def work(task: Task, converted: Callable[[], None]) -> tuple[str, ...]:
    source = onnx.load(task.case.path)
    sets = data_sets(task.case, source)
    if not task.tool:
        found, reason, by = run(source, sets) if sets else ("no data", "", "")
        return found, invalidity(source) if found == "correct" else reason, by
    try:
        content = CONVERTERS[task.tool](task.case.path, task.target, task.verify)
    except Refused as refusal:
        return "refused", str(refusal)
    converted()
    result = ModelProto.FromString(content)
    if opset_of(result) != task.target:
        return "invalid", f"opset {opset_of(result)}, not {task.target}"
    if task.taken and (reason := invalidity(result)):
        return "invalid", reason
    return run(result, sets, task.by)[:2]


def serve(tasks: Connection) -> None:
    os.setsid()
    ctypes.CDLL(None).prctl(
        1, signal.SIGKILL, 0, 0, 0
    )  # PR_SET_PDEATHSIG: no worker outlives a benchmark that is killed
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    onnxruntime.set_default_logger_severity(4)
    sink = os.open(os.devnull, os.O_WRONLY)
    os.dup2(sink, 1)
    os.dup2(sink, 2)
    while (task := tasks.recv()) is not None:
        try:
            found = work(task, lambda: tasks.send("converted"))
        except BaseException as error:
            found = "crashed", f"{type(error).__name__}: {error} {place(error)}"
        tasks.send(tuple(" ".join(part.split())[:600] for part in found))
    os._exit(0)


def place(error: BaseException) -> str:
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"({Path(last.filename).name}:{last.lineno})"


# Work, handed out.


@dataclass
class Worker:
    """A process that works on one task after the other."""

    task: Task | None = None
    since: float = 0.0
    converted: bool = False
    process: Any = field(init=False)
    pipe: Connection = field(init=False)

    def __post_init__(self) -> None:
        context = multiprocessing.get_context("fork")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=serve, args=(theirs,), daemon=False)
        self.process.start()
        theirs.close()

    def give(self, task: Task) -> None:
        self.task, self.since, self.converted = task, time.monotonic(), False
        self.pipe.send(task)

    def end(self) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.kill()
        self.process.join()
        self.pipe.close()


def hand_out(tasks: list[Task], jobs: int, limit: float) -> dict[Task, tuple[str, ...]]:
    """What came of each task. A worker that dies or hangs is replaced."""
    queue, found = deque(tasks), {}
    workers = [Worker() for _ in range(min(jobs, len(tasks)))]
    for worker in workers:
        worker.give(queue.popleft())
    while any(worker.task for worker in workers):
        ready = wait([worker.pipe for worker in workers if worker.task], timeout=0.5)
        for index, worker in enumerate(workers):
            if not worker.task:
                continue
            late = time.monotonic() - worker.since > limit
            if worker.pipe not in ready and not late:
                continue
            try:
                answer = worker.pipe.recv() if worker.pipe in ready else None
            except (EOFError, ConnectionError):
                answer = None
            if answer == "converted":
                worker.converted = True
                continue
            if answer is None:
                answer = death(worker, late)
                task = worker.task
                worker.end()
                worker = workers[index] = Worker(task)
            found[worker.task] = answer
            worker.task = None
            if queue:
                worker.give(queue.popleft())
    for worker in workers:
        worker.end()
    return found


def death(worker: Worker, late: bool) -> tuple[str, str]:
    worker.process.join(0 if late else 2)
    how = "no end" if late else f"signal {-(worker.process.exitcode or 0)}"
    if worker.converted or not worker.task.tool:
        return "invalid", f"a runtime or the checker ended on it: {how}"
    return "crashed", how


# The table.


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--suite", type=Path, required=True, help="what corpus/fetch_backend_tests.py made")
    parser.add_argument("--direction", action="append", metavar="FROM:TO", help=f"default: {' '.join(DIRECTIONS)}")
    parser.add_argument("--only", default="", help="tests whose name contains this")
    parser.add_argument("--ours-only", action="store_true")
    parser.add_argument("--peers", default=peer_interpreter, help="an interpreter that has onnxscript")
    parser.add_argument("--verify", action="store_true", help="let ours verify its results itself")
    parser.add_argument("--show", default="", help="classes whose tests are listed, like wrong,invalid")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for each model and converter")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    run_all(options)


def run_all(options: argparse.Namespace) -> None:
    tools = [OURS] if options.ours_only else [OURS, CPP, *with_onnxscript(options.peers)]
    warm(tools)
    cases = [case for case in suite(options.suite) if options.only in case.name]
    originals: dict[Case, tuple[str, ...]] = {}
    record = []
    print("| direction | models | " + " | ".join(f"{tool}: {' / '.join(CLASSES)}" for tool in tools) + " |")
    print("|---" * (len(tools) + 2) + "|", flush=True)
    for direction in options.direction or DIRECTIONS:
        source, target = (LATEST if text == "latest" else int(text) for text in direction.split(":"))
        fresh = [Task(case) for case in cases if case.opset == source and case not in originals]
        originals |= {task.case: found for task, found in hand_out(fresh, options.jobs, options.limit).items()}
        mine = {case: told[1:] for case, told in originals.items() if (case.opset, told[0]) == (source, "correct")}
        row: dict[str, Any] = {"direction": direction, "models": len(mine), "tools": {}}
        row["not taken by the checker themselves"] = {case.name: reason for case, (reason, _) in mine.items() if reason}
        row["not run right themselves"] = {
            case.name: found for case, found in originals.items() if case.opset == source and case not in mine
        }
        for tool in tools:
            since = time.monotonic()
            tasks = [Task(case, tool, target, options.verify, not reason, by) for case, (reason, by) in mine.items()]
            found = {task.case.name: answer for task, answer in hand_out(tasks, options.jobs, options.limit).items()}
            row["tools"][tool] = {"seconds": round(time.monotonic() - since, 1), "models": found}
        record.append(row)
        print(line(row), flush=True)
        if options.json:
            options.json.write_text(json.dumps(record, indent=1))
    for row in record:
        show(row, options.show.split(","))


def line(row: dict[str, Any]) -> str:
    cells = []
    for told in row["tools"].values():
        counts = Counter(found for found, _ in told["models"].values())
        cells.append(f"{' / '.join(str(counts[name]) for name in CLASSES)} ({told['seconds']:.0f} s)")
    return f"| {row['direction']} | {row['models']} | {' | '.join(cells)} |"


def show(row: dict[str, Any], wanted: list[str]) -> None:
    for tool, told in row["tools"].items():
        listed = sorted((found, reason, name) for name, (found, reason) in told["models"].items() if found in wanted)
        for found, reason, name in listed:
            print(f"{row['direction']} {tool} {found}: {name}: {reason}")


def warm(tools: list[str]) -> None:
    """Import once what workers need."""
    if OURS in tools:
        import onnxbench.converters.run
        import onnxbench.core.slimming  # noqa: F401
    if CPP in tools:
        import onnx.version_converter  # noqa: F401


def with_onnxscript(interpreter: str) -> list[str]:
    global peer_interpreter
    peer_interpreter = interpreter
    has = (
        Path(interpreter).exists()
        and not subprocess.run([interpreter, "-c", "import onnxscript"], capture_output=True, check=False).returncode
    )
    if not has:
        print(f"onnxscript is left out: {interpreter} has it not", file=sys.stderr)
    return [SCRIPT] if has else []


if __name__ == "__main__":
    main()
