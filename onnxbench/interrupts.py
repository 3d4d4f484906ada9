"""Ctrl-C, SIGTERM and a terminal that closes: all are a `KeyboardInterrupt` with the signal's number."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from types import FrameType
from typing import Any

_NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def hear() -> None:
    """Take SIGTERM and SIGHUP as Python takes Ctrl-C."""
    signal.signal(signal.SIGTERM, _raise)
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:  # nohup ignores it
        signal.signal(signal.SIGHUP, _raise)


def _raise(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt(number)


@contextlib.contextmanager
def held() -> Iterator[None]:
    """Let interrupts wait until the block has ended: one that strikes while a native module is imported may crash it.

    Not by a mask of signals, which other threads would not heed.
    """
    noted: list[int] = []
    before: dict[int, Any] = {number: signal.getsignal(number) for number in _NUMBERS}
    try:
        for number in _heard(before):
            signal.signal(number, lambda number, frame: noted.append(number))
        yield
    finally:
        for number in _heard(before):
            signal.signal(number, before[number])
        if noted:
            raise KeyboardInterrupt(noted[0])


def ignore() -> None:
    """Hear nothing any more: all is said, and what cleans up must not be stopped."""
    for number in _NUMBERS:
        signal.signal(number, signal.SIG_IGN)


def _heard(handlers: Mapping[int, Any]) -> list[int]:
    """Those that nobody ignores, as nohup does."""
    return [number for number, handler in handlers.items() if callable(handler)]


def number_of(stop: KeyboardInterrupt) -> int:
    """The signal of an interrupt."""
    return stop.args[0] if stop.args and isinstance(stop.args[0], int) else int(signal.SIGINT)


def behind(error: BaseException) -> KeyboardInterrupt | None:
    """The interrupt that an error was made of: what an import or a C function raises when one strikes it may be anything."""
    seen: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in seen:
        if isinstance(link, KeyboardInterrupt):
            return link
        seen.add(id(link))
        link = link.__cause__ or link.__context__
    return None


class Heard:
    """The signal that came meanwhile; 0 if none did."""

    def __init__(self) -> None:
        self.number = 0


@contextlib.contextmanager
def finishing(tell: Callable[[str], None]) -> Iterator[Heard]:
    """Let the first interrupt wait until the block has ended; a second one stops it."""
    heard = Heard()
    if threading.current_thread() is not threading.main_thread():
        yield heard
        return

    def note(number: int, frame: FrameType | None) -> None:
        if heard.number:
            raise KeyboardInterrupt(number)
        heard.number = number
        with contextlib.suppress(OSError, RuntimeError):  # RuntimeError: it struck while something was being said
            tell("interrupted: writing what was found; once more to leave at once")

    before: dict[int, Any] = {number: signal.getsignal(number) for number in _NUMBERS}
    try:
        for number in _heard(before):
            signal.signal(number, note)
        yield heard
    finally:
        for number in _heard(before):
            signal.signal(number, before[number])
