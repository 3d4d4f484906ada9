"""What goes on, on standard error: one line that is drawn anew on a terminal, plain lines elsewhere."""

from __future__ import annotations

import os
import sys
import time
import unicodedata
from typing import TYPE_CHECKING

from onnxbench.errors import escape

if TYPE_CHECKING:
    from onnxbench.reducers.course import Progress as State

#: Seconds between two drawings: more of them nobody sees, and each costs.
_PAUSE = 0.1
#: Cells of a bar, with a space on each side of it where there is room.
_BAR = 8
#: Seconds without any improvement after which that is worth telling.
_LONG_IDLE = 5.0


class Progress:
    """Lines on standard error: on a terminal the latest in place, with -v every one, with -q none."""

    def __init__(self, quiet: bool, verbose: bool) -> None:
        self._on = not quiet
        self._every = verbose
        self._live = self._on and not verbose and sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self._began = self._drawn = time.monotonic()
        self._last = ""

    def step(self, line: str) -> None:
        """Something new has begun."""
        line = escape(line)
        if line == self._last:
            return
        self._last = line
        if self._live:
            self._draw(line)
        elif self._on:
            print(line, file=sys.stderr, flush=True)

    def tick(self, line: str) -> None:
        """Something goes on: in a log that is worth a line only with -v."""
        if self._live or self._every:
            self.step(line)

    def state(self, state: State) -> None:
        """How far a reduction is: two bars on a terminal; in a log a line only with -v."""
        if not self._live:
            if self._on and self._every:
                self.step(sentence(state))
        elif time.monotonic() - self._drawn >= _PAUSE:
            self._draw(bars(state, time.monotonic() - self._began, self._width(), _is_plain()))

    def close(self) -> None:
        """Leave no half-written line behind."""
        if self._live and self._last:
            print("\r\x1b[2K", end="", file=sys.stderr, flush=True)

    def _draw(self, line: str) -> None:
        self._last, self._drawn = line, time.monotonic()
        print(f"\r\x1b[2K{_cut(line, self._width())}", end="", file=sys.stderr, flush=True)

    def _width(self) -> int:
        """Cells that a line may take: one less than there are, for a full line wraps."""
        try:
            columns = os.get_terminal_size(sys.stderr.fileno()).columns
        except (OSError, ValueError):
            columns = 80
        return max(1, (columns or 80) - 1)


def _cut(line: str, width: int) -> str:
    """The line up to so many cells; some characters take two."""
    if line.isascii():
        return line[:width]
    kept = 0
    for character in line:
        width -= 2 if unicodedata.east_asian_width(character) in "WF" else 1
        if width < 0:
            break
        kept += 1
    return line[:kept]


def sentence(state: State) -> str:
    """How far a reduction is, for a log."""
    if state.phase == "recording":
        return f"recorded {state.done} of {state.total} nodes"
    known = f", {state.remembered} of them remembered" if state.remembered else ""
    left = f"{state.nodes} nodes left after {state.checks} checks{known}"
    return f"shrinking, {state.at}: {size(state.bytes)}, {left}" if state.phase == "shrinking" else left


def bars(state: State, elapsed: float, width: int, plain: bool) -> str:
    """The same in a line of that many cells; where it is narrow, what matters less is left out."""
    if state.phase == "recording":
        head = [f"recording {bar(state.done, state.total, plain)} {state.done} of {state.total} nodes"]
        return _fitting([*head, clock(elapsed)], width)
    nodes = f"nodes {bar(state.nodes, state.nodes_before, plain)} {state.nodes}"
    held = f"bytes {bar(state.bytes, state.bytes_before, plain)} {size(state.bytes)}"
    known = f" ({state.remembered} remembered)" if state.remembered else ""
    parts = [state.at or state.phase, nodes, held, clock(elapsed), f"{state.checks} checks{known}"]
    if state.idle >= _LONG_IDLE:
        parts.append(f"smaller {clock(state.idle)} ago")
    return _fitting(parts, width)


def _fitting(parts: list[str], width: int) -> str:
    """As many of the parts, from the first on, as fit."""
    line = parts[0]
    for part in parts[1:]:
        if len(line) + len(part) + 2 > width:
            break
        line += f"  {part}"
    return line[:width]


def bar(part: int, whole: int, plain: bool = False) -> str:
    """A bar of eight cells that is filled by so much; anything at all fills a bit."""
    share = min(1.0, part / whole) if whole > 0 else 0.0
    eighths = max(int(part > 0), round(share * _BAR * 8))
    if plain:
        return ("#" * -(-eighths // 8)).ljust(_BAR, ".")
    full, rest = divmod(eighths, 8)
    return ("\u2588" * full + ("" if rest == 0 else chr(0x2590 - rest))).ljust(_BAR, "\u00b7")


def clock(seconds: float) -> str:
    """Seconds, then minutes, then hours."""
    minutes, left = divmod(int(seconds), 60)
    if minutes < 60:
        return f"{minutes}:{left:02d}" if minutes else f"{left} s"
    return f"{minutes // 60}:{minutes % 60:02d}:{left:02d}"


def size(count: int) -> str:
    """Bytes as people read them."""
    amount, units = float(count), ["B", "KB", "MB", "GB", "TB"]
    while amount >= 999.5 and len(units) > 1:
        amount, units = amount / 1000, units[1:]
    return f"{amount:.0f} {units[0]}" if amount >= 10 or units[0] == "B" else f"{amount:.1f} {units[0]}"


def _is_plain() -> bool:
    """Whether standard error cannot show blocks."""
    try:
        "\u2588\u00b7".encode(sys.stderr.encoding or "ascii")
    except (UnicodeError, LookupError):
        return True
    return False
