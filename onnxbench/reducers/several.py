"""Reduce many models, each by a command of its own: one bundle for each distinct failure."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from onnxbench.core.atomic import unwritable
from onnxbench.reducers.result import SCHEMA

#: Exit codes that say something of a model, and not of the machine or the command line.
_ANSWERS = (0, 1)


@dataclass(slots=True)
class Row:
    """What came of one model.

    Attributes:
        model: its path.
        code: exit code of its reduction.
        report: as `Reduction.to_dict()`, with an `error` if there is one.
        failure: number of the failure that it shows, from 1; 0 if it shows none.
    """

    model: str
    code: int
    report: dict[str, Any]
    failure: int = 0

    @property
    def fails(self) -> bool:
        return bool(self.report.get("signature"))


@dataclass(slots=True)
class Failure:
    """A distinct failure: its sentence, where it is reduced, who has reported it, which models show it."""

    sentence: str
    operators: list[str]
    bundle: str | None
    known: list[str]
    models: list[str]


@dataclass(slots=True)
class Several:
    """The report on many models."""

    rows: list[Row] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    interrupted: int = 0

    @property
    def exit_code(self) -> int:
        """0 if a failure was reduced and nothing went wrong, 1 if no model fails, else the worst code of a model."""
        if self.interrupted:
            return 128 + self.interrupted
        wrong = [row.code for row in self.rows if row.code not in _ANSWERS]
        return max(wrong) if wrong else 0 if self.failures else 1

    def to_dict(self) -> dict[str, Any]:
        models = [{"model": row.model, "code": row.code, "failure": row.failure, **row.report} for row in self.rows]
        return {"schema": SCHEMA, "models": models, "failures": [asdict(failure) for failure in self.failures]}


@dataclass(slots=True)
class Batch:
    """Runs reductions side by side, and keeps what is done in a file.

    Attributes:
        command: makes the arguments of one reduction from a model, and a bundle (None: only prove).
        folder: where the bundles go, and the file of what is done.
        jobs: how many run at a time.
        resume: go on with what is done.
        tell: told what has begun.
    """

    command: Callable[[str, Path | None], Sequence[str]]
    folder: Path
    jobs: int = 1
    resume: bool = False
    tell: Callable[[str], None] = lambda line: None
    _done: dict[str, Row] = field(default_factory=dict)
    _running: set[subprocess.Popen[str]] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _stopped: bool = False

    def run(self, models: Sequence[str]) -> Several:
        """Prove each model, reduce one of each distinct failure."""
        self._open()
        result = Several()
        try:
            with ThreadPoolExecutor(max(1, self.jobs)) as pool:
                try:
                    proven = list(pool.map(lambda model: self._row(model, None), models))
                    chosen = _first_of_each(proven)
                    bundles = dict(zip(chosen, _names(self.folder, chosen), strict=True))
                    reduced = list(pool.map(lambda model: self._row(model, bundles[model]), chosen))
                except KeyboardInterrupt as stop:
                    result.interrupted = stop.args[0] if stop.args else int(signal.SIGINT)
                    self._stop()
                    pool.shutdown(cancel_futures=True)
                    proven = [row for (model, kind), row in self._finished() if kind == "prove" and model in models]
                    reduced = [row for (model, kind), row in self._finished() if kind == "reduce" and model in models]
        finally:
            self._stop()
        _gather(result, proven, reduced)
        return result

    def _finished(self) -> list[tuple[tuple[str, str], Row]]:
        return [((row.model, key.partition(" ")[0]), row) for key, row in self._done.items()]

    def _row(self, model: str, bundle: Path | None) -> Row:
        key = f"{'prove' if bundle is None else 'reduce'} {_state(model)}"
        if key in self._done:
            return self._done[key]
        self.tell(f"{'running' if bundle is None else 'reducing'} {model}")
        row = self._run(model, bundle)
        if not self._stopped:
            self._keep(key, row)
        return row

    def _run(self, model: str, bundle: Path | None) -> Row:
        process = subprocess.Popen(
            self.command(model, bundle),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,  # Ctrl-C is ours to pass on
        )
        with self._lock:
            self._running.add(process)
            if self._stopped:
                process.send_signal(signal.SIGINT)
        out, said = process.communicate()
        with self._lock:
            self._running.discard(process)
        try:
            report = json.loads(out)
        except ValueError:
            last = said.strip().splitlines()[-1:] or ["no output"]
            report = {"error": {"code": "OB701", "message": last[0], "hint": ""}}
        return Row(model, process.returncode, report)

    def _stop(self) -> None:
        with self._lock:
            self._stopped = True
            for process in self._running:
                process.send_signal(signal.SIGINT)

    def _open(self) -> None:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            if not self.resume:
                self._file.unlink(missing_ok=True)
                return
            lines = self._file.read_text(encoding="utf-8").splitlines() if self._file.exists() else []
        except OSError as error:
            raise unwritable(self.folder, error) from None
        for line in lines:
            try:
                entry = json.loads(line)
                self._done[entry["key"]] = Row(entry["model"], entry["code"], entry["report"])
            except (ValueError, KeyError):  # the line that was being written when the process was killed
                continue

    @property
    def _file(self) -> Path:
        return self.folder / "reduce.jsonl"

    def _keep(self, key: str, row: Row) -> None:
        with self._lock:
            self._done[key] = row
            line = json.dumps({"key": key, "model": row.model, "code": row.code, "report": row.report})
            try:
                with self._file.open("a", encoding="utf-8") as file:
                    file.write(line + "\n")
            except OSError as error:
                raise unwritable(self._file, error) from None


def _state(model: str) -> str:
    try:
        found = os.stat(model)  # noqa: PTH116
    except OSError:
        return model
    return f"{model} {found.st_size} {found.st_mtime_ns}"


def _first_of_each(proven: Sequence[Row]) -> list[str]:
    """One model of each failure; only messages tell failures apart before they are reduced."""
    chosen: dict[str, str] = {}
    for row in proven:
        if row.fails:
            signature = row.report["signature"]
            alike = json.dumps(signature, sort_keys=True) if signature["message"] else row.model
            chosen.setdefault(alike, row.model)
    return list(chosen.values())


def _names(folder: Path, models: Sequence[str]) -> list[Path]:
    """A bundle for each model, by its stem, with a number where stems meet."""
    taken: set[str] = set()
    found: list[Path] = []
    for model in models:
        stem, number = Path(model).stem, 2
        name = stem
        while name in taken:
            name, number = f"{stem}-{number}", number + 1
        taken.add(name)
        found.append(folder / f"{name}.repro")
    return found


def _gather(result: Several, proven: Sequence[Row], reduced: Sequence[Row]) -> None:
    """Put rows together: what is reduced to the same operators, or known by the same report, is one failure."""
    by_model = {row.model: row for row in reduced}
    numbers: dict[str, int] = {}
    by_signature: dict[str, int] = {}
    for row in proven:
        signature = json.dumps(row.report.get("signature"), sort_keys=True)
        if row.model in by_model:
            whole = by_model[row.model]
            result.rows.append(whole)
            if not whole.report.get("culprits"):
                continue
            alike = _likeness(whole.report)
            if alike in numbers:
                _drop_bundle(whole.report)
            else:
                result.failures.append(_failure(whole.report))
                numbers[alike] = len(result.failures)
            whole.failure = by_signature[signature] = numbers[alike]
        else:
            result.rows.append(row)
            row.failure = by_signature.get(signature, 0) if row.fails and row.report["signature"]["message"] else 0
    for row in result.rows:
        if row.failure:
            result.failures[row.failure - 1].models.append(row.model)


def _likeness(report: Mapping[str, Any]) -> str:
    known = [entry["issue"] for entry in report["known"]]
    operators = sorted(culprit["operator"] for culprit in report["culprits"])
    signature = report["signature"]
    told = known or [signature["kind"], signature["detail"], signature["phase"], signature["message"], operators]
    return json.dumps(told)


def _failure(report: Mapping[str, Any]) -> Failure:
    return Failure(
        report["signature"]["sentence"],
        [culprit["operator"] for culprit in report["culprits"]],
        report["bundle"],
        [entry["issue"] for entry in report["known"]],
        [],
    )


def _drop_bundle(report: dict[str, Any]) -> None:
    if report.get("bundle"):
        shutil.rmtree(report["bundle"], ignore_errors=True)
        report["bundle"] = None
