"""Ctrl-C, SIGTERM and a terminal that closes: all are a `KeyboardInterrupt` with the signal's number."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType


def hear() -> None:
    """Take SIGTERM and SIGHUP as Python takes Ctrl-C."""
    signal.signal(signal.SIGTERM, _raise)
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:  # nohup ignores it
        signal.signal(signal.SIGHUP, _raise)


def ignore() -> None:
    """Let none strike any more: the command has ended, and what is left tidies up behind it."""
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)


def _raise(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt(number)


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

    before = {}
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        handler = signal.getsignal(getattr(signal, name, signal.SIGINT))
        if callable(handler):  # those that somebody ignores stay so
            before[getattr(signal, name)] = handler
    try:
        for number in before:
            signal.signal(number, note)
        yield heard
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
