"""Products of atoms with powers: what the terms of a polynomial are made of.

An atom is anything hashable that prints differently from every other.
"""

from __future__ import annotations

import keyword
import unicodedata
from functools import lru_cache
from typing import Any

Monomial = tuple[tuple[Any, int], ...]  # atoms with their powers, sorted by what they print


@lru_cache(4096)
def spell(name: str) -> str:
    """A symbol as it stands in an expression: plain if it is an identifier, else in quotes, as Python writes text.

    Names that Python would read as another one (keywords, letters that it folds) are no plain ones.
    """
    plain = name.isidentifier() and not keyword.iskeyword(name) and unicodedata.normalize("NFKC", name) == name
    return name if plain else repr(name)


def _spelled(atom: Any) -> str:
    return spell(atom) if isinstance(atom, str) else str(atom)


def times(left: Monomial, right: Monomial) -> Monomial:
    """The product."""
    powers = dict(left)
    for atom, power in right:
        powers[atom] = powers.get(atom, 0) + power
    return tuple(sorted(powers.items(), key=lambda item: _spelled(item[0])))


def over(left: Monomial, right: Monomial) -> Monomial | None:
    """The quotient; None if it is no product of atoms."""
    powers = dict(left)
    for atom, power in right:
        powers[atom] = powers.get(atom, 0) - power
    if any(power < 0 for power in powers.values()):
        return None
    return tuple(sorted(((a, p) for a, p in powers.items() if p), key=lambda item: _spelled(item[0])))


def degree(monomial: Monomial) -> tuple[int, str]:
    """A key by which the leading term of a division is the largest."""
    return sum(power for _, power in monomial), str(monomial)


def sort_key(monomial: Monomial) -> tuple[int, str]:
    """A key for printing: higher powers first, then by name."""
    return -sum(power for _, power in monomial), str([_spelled(atom) for atom, _ in monomial])
