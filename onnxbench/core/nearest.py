"""The name that somebody probably meant."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from onnxbench.errors import NameNotFound, quote


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name most like `name`: equal but for case, else one that ends with or holds it, else spelt alike."""
    names = [other for other in known if other]
    folded = name.casefold()
    for alike in (str.__eq__, str.endswith, str.__contains__):
        found = [other for other in names if folded and alike(other.casefold(), folded)]
        if found:
            return min(found, key=len)
    close = get_close_matches(name, names, n=1)
    return close[0] if close else None


def not_found(kind: str, name: str, known: Iterable[str], *, where: str = "the model") -> NameNotFound:
    """The error OB303 for a name, with the nearest known one as its hint."""
    close = nearest(name, known)
    hint = f"did you mean {quote(close)}?" if close is not None else ""
    return NameNotFound("OB303", f"no {kind} named {quote(name)} in {where}", hint=hint)
