"""Convert many models, side by side; one that is bad stops no other, and what is done is not done again."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed, wait
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from onnxbench import interrupts, isolate
from onnxbench.converters import digests, workers
from onnxbench.converters.asked import Asked
from onnxbench.converters.copying import copy, make_folder, refuse_without_room, sweep
from onnxbench.converters.journal import Entry, Journal, stamp
from onnxbench.converters.one import Answer, Job
from onnxbench.converters.summary import File, Row, Summary
from onnxbench.converters.survey import Look, opset_of
from onnxbench.converters.tree import Item, Tree
from onnxbench.errors import BenchError, UsageError, escape, quote

T = TypeVar("T")


@dataclass(slots=True)
class Batch:
    """Conversions of a tree.

    Attributes:
        tree: what goes where.
        asked: what is to be done.
        journal: what is done.
        tell: told the summary so far, and what has begun or ended.
    """

    tree: Tree
    asked: Asked
    journal: Journal
    tell: Callable[[Summary, str], None] = lambda summary, line: None
    convert: Callable[[Job], Answer] = workers.convert
    _summary: Summary = field(default_factory=Summary)
    _looks: dict[str, Look] = field(default_factory=dict)
    _stopped: threading.Event = field(default_factory=threading.Event)
    _running: set[Future[Any]] = field(default_factory=set)

    def run(self) -> Summary:
        """Convert what is not done yet. An interrupt ends it with what there is.

        Raises:
            MachineError: OB402 if the disk has no room for all of it.
        """
        started = time.monotonic()
        self._summary.total = len(self.tree.items)
        self._summary.hidden = list(self.tree.hidden)
        pool = ThreadPoolExecutor(max(1, self.asked.jobs))
        try:
            self._work(pool)
        except KeyboardInterrupt as stop:
            self._summary.interrupted = interrupts.number_of(stop)
            self._stop()
        finally:
            self._stopped.set()
            pool.shutdown(wait=False, cancel_futures=True)
        order = {item.place: number for number, item in enumerate(self.tree.items)}
        self._summary.rows.sort(key=lambda row: order[row.place])
        self._summary.seconds = time.monotonic() - started
        return self._summary

    def _work(self, pool: ThreadPoolExecutor) -> None:
        if self.journal.is_old:
            sweep(self._folders())
        left = [item for item in self.tree.items if not self._is_done(item)]
        for item, seen in self._each(pool, left, lambda item: workers.look(item.source, self.asked.job.options.limits)):
            self._looks[item.place] = seen
        aside = {item.place: reason for item in left if (reason := self._stays(item, self._looks[item.place]))}
        chosen = [item for item in left if item.place not in aside]
        files = self._files(aside)
        refuse_without_room(self._bytes(left, aside, files), self.tree.output or Path())
        for item in left:
            if item.place in aside:
                self._add(self._other(item, aside[item.place]))
        for place, source in files.items():
            self._summary.files.append(self._copy_file(place, source))
        for _, row in self._each(pool, chosen, self._one):
            self._add(row)

    def _each(
        self, pool: ThreadPoolExecutor, items: Sequence[Item], work: Callable[[Item], T]
    ) -> Iterator[tuple[Item, T]]:
        """Do something to each, side by side, in the order in which it ends."""
        running = {pool.submit(work, item): item for item in items}
        self._running = set(running)
        for future in as_completed(running):
            yield running[future], future.result()

    def _stop(self) -> None:
        """End the workers, wait for their threads, which notice it at once, and keep what was done by then."""
        self._stopped.set()
        begun = [future for future in self._running if not future.cancel()]
        isolate.shut_down()
        wait(begun, timeout=5)
        sweep(self._folders())
        known = {row.place for row in self._summary.rows}
        for future in begun:
            done = future.done() and future.exception() is None
            if done and isinstance(row := future.result(), Row) and row.place not in known:
                self._summary.rows.append(row)

    def _folders(self) -> set[Path]:
        return {self.tree.target(item).parent for item in self.tree.items}

    # --- what is done already, and what is not to be done

    def _is_done(self, item: Item) -> bool:
        entry = self.journal.done.get(item.place)
        if entry is None or entry.options != self.asked.digest(item):
            return False
        if entry.row["state"] == "refused" and entry.others != self.asked.others:
            return False
        assert self.journal.folder is not None
        if any(stamp(self.journal.folder / place) != list(found) for place, found in entry.wrote.items()):
            return False
        if digests.content(Path(item.source), (name for name in entry.content if name)) != entry.content:
            return False
        try:
            self._add(replace(Row(**entry.row), model=item.source, earlier=True))
        except TypeError:  # somebody has written into the journal
            return False
        return True

    def _stays(self, item: Item, look: Look) -> str:
        """Why a model is not to be converted; empty if it is."""
        if look.error is not None:
            return ""
        wanted, found = self.asked.from_, opset_of(look)
        if wanted is not None and found != wanted:
            return f"it is at opset {found}, not {wanted}" if found is not None else f"it is not at opset {wanted}"
        options = self.asked.job.options
        raised = self.asked.raises(item) and not options.expand and options.ir is None
        return look.stays(options.targets) if raised else ""

    def _bytes(self, left: Sequence[Item], aside: Mapping[str, str], files: Mapping[str, Path]) -> int:
        """Bytes that will be written, if each model stays as large as it is."""
        if self.tree.output is None:
            sizes = sorted((self._looks[item.place].size for item in left), reverse=True)
            return sum(sizes[: self.asked.jobs])  # in place there is a second file of each for a moment
        skipped = aside if self.asked.others == "skip" else {}
        looks = {item.place: self._looks[item.place] for item in left if item.place not in skipped}
        models = sum(look.size if place in aside else look.bytes for place, look in looks.items())
        files = files if self.asked.others == "copy" else {}
        return models + sum(_size(path) for place, path in files.items() if not (self.tree.output / place).exists())

    # --- what is copied

    def _files(self, aside: Mapping[str, str]) -> dict[str, Path]:
        """Files to copy: those that are no model's data, and the data of models that are copied."""
        if self.tree.output is None:
            return {}
        data: dict[Path, list[str]] = {}
        for item in self.tree.items:
            for name in self._data(item):
                data.setdefault((Path(item.source).parent / name).absolute(), []).append(item.place)
        found = {place: path for place, path in self.tree.files.items() if path.absolute() not in data}
        for item in self.tree.items:
            if item.place in aside:
                found.update({_beside(item, name): Path(item.source).parent / name for name in self._data(item)})
        return found

    def _data(self, item: Item) -> list[str]:
        """Data files of a model, by path relative to its folder."""
        if item.place in self._looks:
            return list(self._looks[item.place].data)
        return [name for name in self.journal.done[item.place].content if name]

    def _copy_file(self, place: str, source: Path) -> File:
        if self.asked.others == "skip":
            return File(place, "skipped")
        try:
            self._copy(place, source)
        except BenchError as error:
            return File(place, "failed", error.to_dict(), error.exit_code)
        return File(place, "copied")

    def _copy(self, place: str, source: Path) -> None:
        assert self.tree.output is not None
        target = self.tree.output / place
        if copy(source, target, force=self.asked.job.force or self.journal.owns(place)):
            self.journal.copied(place, stamp(target))

    def _other(self, item: Item, reason: str) -> Row:
        """A model that is not to be converted."""
        row = Row(item.source, item.place, "other", reason)
        row.report = {"before": _spelled(self._looks[item.place].opsets)}
        if self.asked.others == "copy" and self.tree.output is not None:
            try:
                self._copy(item.place, Path(item.source))
            except BenchError as error:
                return replace(row, state="failed", error=error.to_dict(), code=error.exit_code)
            row.output, row.copied = escape(str(self.tree.target(item))), True
        return row

    # --- what is converted

    def _one(self, item: Item) -> Row:
        """Convert one model, in a thread that waits for its worker."""
        if self._stopped.is_set():
            raise _Stopped
        look, started = self._looks[item.place], time.monotonic()
        self.tell(self._summary, item.source)
        if look.error is not None:
            self._remove_stale(item)
            return Row(item.source, item.place, "failed", error=dict(look.error), code=look.code)
        content = digests.content(Path(item.source), look.data)
        try:
            answer = self._answer(item)
        except BenchError as error:
            return Row(item.source, item.place, "failed", error=error.to_dict(), code=error.exit_code)
        if self._stopped.is_set() and answer.state == "failed":
            raise _Stopped  # its worker was killed
        row = self._row(item, answer, time.monotonic() - started)
        if row.state != "failed":
            self.journal.finish(item.place, self._entry(item, answer, row, content))
        return row

    def _answer(self, item: Item) -> Answer:
        target, job = self.tree.target(item), self.asked.job
        is_ours = self.journal.owns(item.place)
        force = job.force or is_ours or self.tree.output is None
        if not force and target.exists():
            hint = "--force overwrites it"
            raise UsageError("OB202", f"{quote(str(target))} exists already, and no earlier run wrote it", hint=hint)
        make_folder(target.parent)
        self.journal.begin(item.place)
        options = replace(job.options, at_least=self.asked.raises(item))
        answer = self.convert(
            replace(job, source=item.source, output=str(target), options=options, force=force, one_of_many=True)
        )
        if not answer.wrote and is_ours and not self._stopped.is_set():
            target.unlink(missing_ok=True)  # of the model as it was, or of what was asked then
        return answer

    def _remove_stale(self, item: Item) -> None:
        if self.journal.owns(item.place):
            with contextlib.suppress(OSError):
                self.tree.target(item).unlink(missing_ok=True)

    def _row(self, item: Item, answer: Answer, seconds: float) -> Row:
        reason = answer.report.get("verification", {}).get("reason", "")
        row = Row(item.source, item.place, answer.state, reason, report=answer.report, error=answer.error)
        row.code, row.seconds = answer.code, seconds
        if answer.wrote:
            row.output = escape(answer.wrote[0])
        elif answer.state == "refused" and self.asked.others == "copy" and self.tree.output is not None:
            self._copy_refused(item, row)
        return row

    def _copy_refused(self, item: Item, row: Row) -> None:
        try:
            self._copy(item.place, Path(item.source))
            for name in self._data(item):
                self._copy(_beside(item, name), Path(item.source).parent / name)
        except BenchError as error:
            row.reason = f"{row.reason}; it could not be copied: {error.message}".removeprefix("; ")
            row.code = max(row.code, error.exit_code)
            return
        row.output, row.copied = escape(str(self.tree.target(item))), True

    def _entry(self, item: Item, answer: Answer, row: Row, content: Mapping[str, str]) -> Entry:
        wrote = [Path(name) for name in answer.wrote] or ([self.tree.target(item)] if row.copied else [])
        home = self.tree.output or Path()
        stamps = {path.relative_to(home).as_posix(): stamp(path) for path in wrote if path.is_relative_to(home)}
        return Entry(self.asked.digest(item), self.asked.others, content, stamps, row.kept())

    def _add(self, row: Row) -> None:
        self._summary.rows.append(row)
        self.tell(self._summary, "")


class _Stopped(Exception):
    """A model was not done because of an interrupt."""


def _beside(item: Item, name: str) -> str:
    return (Path(item.place).parent / name).as_posix()


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _spelled(opsets: Mapping[str, int]) -> dict[str, int]:
    return {domain or "ai.onnx": version for domain, version in opsets.items()}
