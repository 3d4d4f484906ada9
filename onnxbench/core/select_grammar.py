"""Read the selection language: terms combined by `and`, `or` (or a comma), `not` and parentheses.

either := both (("or" | ",") both)*      both := one ("and" one)*      one := "not" one | "(" either ")" | term
term   := [key "="] (word | 'quoted' | "quoted")
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from onnxbench.errors import UsageError, escape, quote

Key = Literal["name", "op", "scope", "dtype", "value", "node"]

_TOKEN = re.compile(
    r"""\s*(?:
        (?P<sign>[(),])
      | (?P<key>(?:op|scope|dtype|value|node)=)?
        (?: "(?P<double>(?:[^"\\]|\\.)*)" | '(?P<single>(?:[^'\\]|\\.)*)' | (?P<word>[^\s(),"'][^\s(),]*) )
    )""",
    re.VERBOSE | re.DOTALL,
)
_DEEPEST = 100


@dataclass(frozen=True, slots=True)
class Term:
    """One thing asked for; a quoted text is exact, whatever signs it holds."""

    key: Key
    text: str
    quoted: bool


@dataclass(frozen=True, slots=True)
class Combined:
    """Parts that all ("and") or any ("or") must hold, or the one that must not ("not")."""

    word: Literal["and", "or", "not"]
    parts: tuple[Expression, ...]


Expression = Term | Combined


def parse(text: str) -> Expression:
    """The expression in a text.

    Raises:
        UsageError: OB204 with the place where reading stopped.
    """
    parser = _Parser(text)
    expression = parser.either(0)
    if parser.at < len(parser.tokens):
        raise parser.error("expected and, or, or the end")
    return expression


@dataclass(frozen=True, slots=True)
class _Token:
    place: int
    sign: str  # a bracket, a comma, or a keyword; "" for a term
    term: Term | None


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.tokens = self._tokens()

    def _tokens(self) -> list[_Token]:
        found: list[_Token] = []
        place, end = 0, len(self.text.rstrip())
        while place < end:
            match = _TOKEN.match(self.text, place)
            start = place + len(self.text[place:]) - len(self.text[place:].lstrip())
            if match is None:
                raise _error(self.text, start, "a quote that is not closed, or a key without a text")
            found.append(_token(match, start))
            place = match.end()
        return found

    def error(self, what: str) -> UsageError:
        place = self.tokens[self.at].place if self.at < len(self.tokens) else len(self.text.rstrip())
        return _error(self.text, place, what)

    def _take(self, *signs: str) -> bool:
        if self.at < len(self.tokens) and self.tokens[self.at].sign in signs:
            self.at += 1
            return True
        return False

    def either(self, depth: int) -> Expression:
        parts = [self._both(depth)]
        while self._take("or", ","):
            parts.append(self._both(depth))
        return parts[0] if len(parts) == 1 else Combined("or", tuple(parts))

    def _both(self, depth: int) -> Expression:
        parts = [self._one(depth)]
        while self._take("and"):
            parts.append(self._one(depth))
        return parts[0] if len(parts) == 1 else Combined("and", tuple(parts))

    def _one(self, depth: int) -> Expression:
        if depth > _DEEPEST:
            raise self.error("too many levels")
        if self._take("not"):
            return Combined("not", (self._one(depth + 1),))
        if self._take("("):
            inner = self.either(depth + 1)
            if not self._take(")"):
                raise self.error("expected a closing parenthesis")
            return inner
        term = self.tokens[self.at].term if self.at < len(self.tokens) else None
        if term is None:
            raise self.error("expected a name, a pattern, or key=text")
        self.at += 1
        return term


def _token(match: re.Match[str], place: int) -> _Token:
    if match["sign"]:
        return _Token(place, match["sign"], None)
    quoted = match["double"] if match["double"] is not None else match["single"]
    if not match["key"] and quoted is None and match["word"] in ("and", "or", "not"):
        return _Token(place, match["word"], None)
    key: Key = (match["key"] or "name=")[:-1]  # type: ignore[assignment]  # the pattern allows no other
    text = match["word"] if quoted is None else re.sub(r"\\(.)", r"\1", quoted, flags=re.DOTALL)
    return _Token(place, "", Term(key, text, quoted is not None))


def _error(text: str, place: int, what: str) -> UsageError:
    marked = f"{escape(text[:place])} >>>here>>> {escape(text[place:])}".strip()
    hint = "put names with spaces, quotes or brackets in quotes; examples: op=Conv, '/layer3/*', not dtype=float16"
    return UsageError(
        "OB204", f"selection {quote(text)} cannot be read at character {place + 1}: {what}: {marked}", hint=hint
    )
