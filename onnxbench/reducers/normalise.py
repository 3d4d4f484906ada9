"""Failure messages without what differs from one candidate to the next: numbers, addresses, paths, names.

A bundle's repro.py carries a copy of this file: standard library only, Python 3.8 syntax.
"""

import re
from typing import Iterable  # noqa: UP035 -- Python 3.8

_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]+\b")
_PATH = re.compile(r"(?:[A-Za-z]:)?(?:[\\/][\w.+@~-]+){2,}[\\/]?(?::\d+)?")
_QUOTED = re.compile(r"'[^'\n]*'|\"[^\"\n]*\"|`[^`\n]*`")
#: OpenVINO says which operator makes an input, `(opset1::Abs i[0]:f32[3])`: another one where a candidate is cut.
_MAKER = re.compile(r"\b\w+::\w+ (?=\S+\[\d+\]:)")
#: Also the counter at the end of a name that a runtime made up, such as `Add_10718`.
_NUMBER = re.compile(r"(?<=[A-Za-z]_)\d+\b|[-+]?\b\d+(?:\.\d+)?(?:[eE][-+]?\d+)?\b")
#: Characters of a message that are read, and of the result that are kept: a runtime may print a whole tensor into it.
_READ, _KEPT = 1 << 16, 2000
_TOKEN = re.compile(r"[^\s'\"`(),;:\[\]{}<>=]+")


def normalise(message: str, names: "Iterable[str]" = ()) -> str:
    """The message with placeholders for the names of the model's nodes and values, paths, addresses and numbers."""
    known, message = {name for name in names if not _NUMBER.fullmatch(name)}, message[:_READ]  # 808 may be 808 ms
    for name in sorted((n for n in known if n and not _TOKEN.fullmatch(n)), key=len, reverse=True):
        message = message.replace(name, "<name>")
    message = _TOKEN.sub(lambda found: _placeholder(found.group(), known), message)
    message = _MAKER.sub("", message)
    for pattern, placeholder in ((_ADDRESS, "<address>"), (_PATH, "<path>"), (_QUOTED, "<name>"), (_NUMBER, "<n>")):
        message = pattern.sub(placeholder, message)
    return " ".join(message.split())[:_KEPT]


def _placeholder(token: str, known: "set[str]") -> str:
    stripped = token.rstrip(".!?")
    return "<name>" + token[len(stripped) :] if stripped in known else token
