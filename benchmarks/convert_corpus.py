"""Raise every model of a folder with `onnxbench convert`, and judge the results from outside.

usage: convert_corpus.py FOLDER [--to 13,17,21,latest] [--only NAME] [--log FILE] [--limit S] [--keep FOLDER]

FOLDER is what corpus/fetch_models.py made. Each model is raised to each target above its own opset. A result is judged in a process
of its own: is it at the target, do the checker and strict inference take it if they take the source, and does ONNX Runtime without
optimizations give what it gives for the source, on the same seeded inputs; where it does not run the source, what the backend test
of the installed onnx wants of that model. The log is a line of JSON for each model and target; what
stands there is not done again. Ends with 1 if a result is worse than its report says.
"""

import os
import sys

# `inspect.py` in this folder must not stand for the standard module: the folder comes last.
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:] = [*(place for place in sys.path if place != HERE), HERE]

import argparse
import contextlib
import json
import multiprocessing
import signal
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from convert import LATEST, Case, data_sets, invalidity, opset_of
from convert import run as run_test

from onnxbench.core.model import load
from onnxbench.verify import feed_sets

RTOL, ATOL = 1e-3, 1e-5
GOOD = ("equal", "right by its test", "no kernel", "too long", "source does not run", "")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--to", default="13,17,21,latest")
    parser.add_argument("--only", default="")
    parser.add_argument("--log", type=Path, default=Path("convert_corpus.jsonl"))
    parser.add_argument("--limit", type=float, default=600.0, help="seconds of one command")
    parser.add_argument("--judge-limit", type=float, default=120.0, help="seconds of one judgement")
    parser.add_argument("--keep", type=Path, help="where results stay")
    options = parser.parse_args()
    targets = [LATEST if text == "latest" else int(text) for text in options.to.split(",")]
    done = {(row["model"], row["target"]): row for row in logged(options.log)}
    print("| model | from | to | state | judged | seconds |\n|---|---|---|---|---|---|")
    rows = []
    for path, opset, target in jobs(options.folder, targets, options.only):
        name = str(path.relative_to(options.folder))
        row = done.get((name, target))
        if row is None:
            row = {"model": name, "from": opset, "target": target, **raise_one(path, target, options)}
            with options.log.open("a") as log:
                log.write(json.dumps(row) + "\n")
        rows.append(row)
        said = row["judged"] + (f": {row['why']}" if row["why"] else "")
        print(
            f"| {name} | {row['from']} | {target} | {row['state']} | {said[:160]} | {row['seconds']:.1f} |", flush=True
        )
    summarize(rows)
    return int(any(row["judged"] not in GOOD for row in rows))


def logged(log: Path) -> Iterator[dict[str, Any]]:
    for text in log.read_text().splitlines() if log.exists() else ():
        with contextlib.suppress(json.JSONDecodeError):  # the line that an interruption cut
            yield json.loads(text)


def jobs(folder: Path, targets: list[int], only: str) -> Iterator[tuple[Path, int, int]]:
    for path in sorted(folder.rglob("*.onnx")):
        if only not in str(path):
            continue
        try:
            opset = opset_of(onnx.load(path, load_external_data=False))
        except Exception as error:
            print(f"{path}: {error}", file=sys.stderr)
            continue
        for target in targets:
            if opset is not None and opset < target:
                yield path, opset, target


def raise_one(path: Path, target: int, options: argparse.Namespace) -> dict[str, Any]:
    """What the command says of one model and target, and what its result is."""
    with tempfile.TemporaryDirectory() as folder:
        place = (
            options.keep / str(target) / path.relative_to(options.folder) if options.keep else Path(folder) / path.name
        )
        place.parent.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "onnxbench", "convert", str(path), "--to", str(target), "-o", str(place)]
        since = time.monotonic()
        code, said, complaint = call([*command, "--json", "-q", "--force"], options.limit)
        row = {"exit": code, "seconds": round(time.monotonic() - since, 2), **told(code, said, complaint)}
        judged, why = judge(path, place, target, options.judge_limit) if code == 0 else ("", row.pop("complaint", ""))
        return {**row, "judged": judged, "why": why}


def call(command: list[str], limit: float) -> tuple[int | None, str, str]:
    """Exit code (none if it did not end), and both streams."""
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        said, complaint = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return None, "", "no end"
    return process.returncode, said, complaint


def told(code: int | None, said: str, complaint: str) -> dict[str, Any]:
    try:
        report = json.loads(said)
        verification = report["verification"]
    except (json.JSONDecodeError, KeyError, TypeError):
        return {"state": f"error {code}", "complaint": " ".join(complaint.split())[-400:]}
    refusals = sorted({f"{entry['step']}: {entry['reason']}" for entry in report["refusals"]})
    return {
        "state": verification["state"],
        "reason": verification["reason"],
        "runs": verification["runs"],
        "rewrites": len(report["rewrites"]),
        "refusals": refusals,
        "complaint": "; ".join(refusals) or verification["reason"],
    }


def judge(source: Path, result: Path, target: int, limit: float) -> tuple[str, str]:
    """Equal, or what is the matter; in a process of its own."""
    if not result.exists():
        return "nothing written", ""
    ours, theirs = multiprocessing.get_context("fork").Pipe(duplex=False)
    process = multiprocessing.get_context("fork").Process(target=compare, args=(source, result, target, theirs))
    process.start()
    theirs.close()
    try:
        return ours.recv() if ours.poll(limit) else ("too long", "")
    except EOFError:
        process.join()
        return "runtime died", f"exit code {process.exitcode}"
    finally:
        process.kill()
        process.join()


def compare(source: Path, result: Path, target: int, answer: Connection) -> None:
    onnxruntime.set_default_logger_severity(4)
    try:
        answer.send(compared(source, result, target))
    except Exception as error:
        answer.send(("not judged", f"{type(error).__name__}: {error}"[:300]))


def compared(source: Path, result: Path, target: int) -> tuple[str, str]:
    before, after = onnx.load(source), onnx.load(result)
    if opset_of(after) != target:
        return "not at the target", f"opset {opset_of(after)}"
    if (reason := invalidity(after)) and not invalidity(before):
        return "invalid", " ".join(reason.split())[:300]
    try:
        runs = [(feeds, run(source, feeds)) for feeds in first(feed_sets(load(source)), 2)]
    except Exception as error:
        sets = data_sets(Case("", str(with_data(source)), 0), before)
        return by_test(after, sets) if sets else ("source does not run", f"{type(error).__name__}: {error}"[:200])
    try:
        found = [difference(wanted, run(result, feeds)) for feeds, wanted in runs]
    except Exception as error:
        return "does not run", f"{type(error).__name__}: {error}"[:300]
    return next((("differs", reason) for reason in found if reason), ("equal", ""))


def with_data(source: Path) -> Path:
    """The same model in the installed onnx, where the data of its test lies; the model itself if there is none."""
    root = Path(onnx.__file__).parent.parent
    _, found, inside = str(source).partition("/onnx/backend/test/data/")
    same = root / "onnx/backend/test/data" / inside
    return same if found and same.exists() and same.read_bytes() == source.read_bytes() else source


def by_test(model: onnx.ModelProto, sets: list[Any]) -> tuple[str, str]:
    found, reason, _ = run_test(model, sets)
    return {"correct": "right by its test", "wrong": "differs"}.get(found, found), "" if found == "correct" else reason


def first(feeds: Iterator[Any], count: int) -> list[Any]:
    return [one for one, _ in zip(feeds, range(count), strict=False)]


def run(path: Path, feeds: dict[str, np.ndarray]) -> list[Any]:
    settings = onnxruntime.SessionOptions()
    settings.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    settings.log_severity_level = 4
    session = onnxruntime.InferenceSession(path, settings, providers=["CPUExecutionProvider"])
    return session.run(None, dict(feeds))


def difference(wanted: list[Any], found: list[Any]) -> str:
    """Empty if all outputs are equal."""
    if len(wanted) != len(found):
        return f"{len(found)} outputs for {len(wanted)}"
    for place, (old, new) in enumerate(zip(wanted, found, strict=True)):
        if isinstance(old, list):
            reason = difference(old, new) if isinstance(new, list) else "no sequence"
        elif isinstance(old, dict):
            reason = "" if old == new else "another map"
        else:
            reason = unlike(np.asarray(old), np.asarray(new))
        if reason:
            return f"output {place}: {reason}"
    return ""


def unlike(old: np.ndarray, new: np.ndarray) -> str:
    if (old.shape, old.dtype) != (new.shape, new.dtype):
        return f"{new.dtype}{list(new.shape)} for {old.dtype}{list(old.shape)}"
    if old.dtype.kind not in "fc":
        return "" if np.array_equal(old, new) else "other values"
    scale = float(np.nanmax(np.abs(old), initial=0, where=np.isfinite(old)))
    if np.allclose(new, old, rtol=RTOL, atol=ATOL * max(1.0, scale), equal_nan=True):
        return ""
    return f"up to {np.nanmax(np.abs(new.astype(np.float64) - old)):.3g} apart, at most {scale:.3g} large"


def summarize(rows: list[dict[str, Any]]) -> None:
    print()
    for title, key in (("state", "state"), ("judged", "judged")):
        for target in sorted({row["target"] for row in rows}):
            counts = Counter(row[key] or "-" for row in rows if row["target"] == target)
            print(f"{title} at {target}: " + ", ".join(f"{count} {name}" for name, count in counts.most_common()))
    reasons = Counter(row["why"] for row in rows if row["why"] and row["judged"] not in ("equal", "right by its test"))
    for reason, count in reasons.most_common(20):
        print(f"{count} x {reason}")
    print(f"{len(rows)} conversions, {sum(row['seconds'] for row in rows):.0f} s")


if __name__ == "__main__":
    sys.exit(main())
