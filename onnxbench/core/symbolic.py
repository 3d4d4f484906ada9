"""Sizes that are not known as numbers: polynomials over the symbols of a model, kept exact.

A *size* is an int where it is known and an `Expr` where it is not. Arithmetic with plain operators gives a size again, as simple
as it gets: `Expr` stands only where a symbol is left. What no polynomial says (a quotient that does not come out even, a maximum)
is an atom of its own, so that equal sizes still compare equal.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import total_ordering
from math import gcd
from typing import TypeAlias

from onnxbench.core.monomials import Monomial, degree, over, sort_key, spell, times

Size: TypeAlias = "int | Expr"
Atom: TypeAlias = "str | Call"


@dataclass(frozen=True, slots=True)
class Call:
    """A function of sizes that is no polynomial: floordiv, mod, min or max."""

    function: str
    arguments: tuple[Size, ...]

    def __str__(self) -> str:
        if self.function in ("min", "max"):
            return f"{self.function}({', '.join(map(str, self.arguments))})"
        left, right = (_in_brackets(argument) for argument in self.arguments)
        return f"{left}{'//' if self.function == 'floordiv' else '%'}{right}"


@total_ordering
class Expr:
    """An integer polynomial with at least one atom; immutable, hashable, compared by what it is (not by size)."""

    __slots__ = ("_hash", "terms")

    def __init__(self, terms: Mapping[Monomial, int]) -> None:
        self.terms = dict(terms)
        self._hash: int | None = None

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(frozenset(self.terms.items()))
        return self._hash

    def __reduce__(self) -> tuple[type[Expr], tuple[dict[Monomial, int]]]:
        return Expr, (self.terms,)  # hashes of text differ from process to process

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Expr) and self.terms == other.terms

    def __lt__(self, other: Expr) -> bool:
        return str(self) < str(other)

    def __repr__(self) -> str:
        return f"Expr({self})"

    def __str__(self) -> str:
        text = ""
        for monomial, factor in sorted(self.terms.items(), key=lambda term: sort_key(term[0])):
            sign = ("-" if factor < 0 else "") if not text else (" - " if factor < 0 else " + ")
            text += sign + _term(monomial, abs(factor))
        return text

    def __add__(self, other: Size) -> Size:
        if other == 0:
            return self
        terms = dict(self.terms)
        for monomial, factor in _terms(other).items():
            terms[monomial] = terms.get(monomial, 0) + factor
        return _tidy(terms)

    def __mul__(self, other: Size) -> Size:
        if isinstance(other, int):
            return Expr({monomial: factor * other for monomial, factor in self.terms.items()}) if other else 0
        terms: dict[Monomial, int] = {}
        for left, a in self.terms.items():
            for right, b in _terms(other).items():
                product = times(left, right)
                terms[product] = terms.get(product, 0) + a * b
        return _tidy(terms)

    def __neg__(self) -> Size:
        return self * -1

    def __sub__(self, other: Size) -> Size:
        if other == 0:
            return self
        return self + other * -1

    def __rsub__(self, other: int) -> Size:
        return -self + other

    __radd__ = __add__
    __rmul__ = __mul__

    def __floordiv__(self, other: Size) -> Size:
        return floordiv(self, other)

    def __rfloordiv__(self, other: int) -> Size:
        return floordiv(other, self)

    def __mod__(self, other: Size) -> Size:
        return modulo(self, other)

    @property
    def symbols(self) -> frozenset[str]:
        """The names in it."""
        return frozenset(_symbols(self))


class Total:
    """A sum of many sizes: adding in place is cheaper than making an `Expr` for each step."""

    def __init__(self) -> None:
        self._terms: dict[Monomial, int] = {}

    def add(self, size: Size, sign: int = 1) -> None:
        """Add a size, or take it away."""
        for monomial, factor in _terms(size).items():
            self._terms[monomial] = self._terms.get(monomial, 0) + sign * factor

    @property
    def size(self) -> Size:
        """The sum so far."""
        return _tidy(self._terms)


def symbol(name: str) -> Expr:
    """The size that a name stands for."""
    return Expr({((name, 1),): 1})


def lone(size: Size | None) -> str:
    """The name of a size that is one symbol; empty for any other."""
    if isinstance(size, Expr) and len(size.terms) == 1:
        ((monomial, factor),) = size.terms.items()
        if factor == 1 and len(monomial) == 1 and monomial[0][1] == 1 and isinstance(monomial[0][0], str):
            return monomial[0][0]
    return ""


def floordiv(left: Size, right: Size) -> Size:
    """Rounded down, as Python and `Div` of sizes (never negative) have it; exact quotients come out as polynomials."""
    if isinstance(left, int) and isinstance(right, int):
        return left // right
    exact = _exact_quotient(left, right)
    if exact is not None:
        return exact
    whole, rest = _split(left, right) if isinstance(right, int) else (0, left)
    if whole != 0:  # (4*N + x) // 2 is 2*N + x // 2
        return whole + floordiv(rest, right)
    common = _content(left, right)
    if common > 1:  # (2*N + 2) // 4 is (N + 1) // 2
        return floordiv(floordiv(left, common), floordiv(right, common))
    inner = _lone_quotient(left)
    if inner is not None and isinstance(right, int) and right > 0:  # ((N + 1)//2 + 1)//2 is (N + 3)//4
        return floordiv(inner[0] + inner[1] * inner[2], inner[1] * right)
    return _call("floordiv", left, right)


def _lone_quotient(size: Size) -> tuple[Size, int, int] | None:
    """(a, b, c) of a//b + c with numbers b > 0 and c; None if it is nothing like that."""
    terms = dict(_terms(size))
    rest = terms.pop((), 0)
    if len(terms) != 1:
        return None
    ((monomial, factor),) = terms.items()
    atom = monomial[0][0]
    if factor != 1 or len(monomial) != 1 or monomial[0][1] != 1 or not isinstance(atom, Call):
        return None
    if atom.function != "floordiv" or not isinstance(atom.arguments[1], int) or atom.arguments[1] <= 0:
        return None
    return atom.arguments[0], atom.arguments[1], rest


def ceildiv(left: Size, right: Size) -> Size:
    """Rounded up."""
    return floordiv(left + right - 1, right)


def modulo(left: Size, right: Size) -> Size:
    """What `left // right` leaves over."""
    if isinstance(left, int) and isinstance(right, int):
        return left % right
    if _exact_quotient(left, right) is not None:
        return 0
    return _call("mod", _split(left, right)[1] if isinstance(right, int) else left, right)


def smallest(*sizes: Size) -> Size:
    """The minimum; a number where only numbers are left."""
    return _extreme("min", min, sizes)


def largest(*sizes: Size) -> Size:
    """The maximum; a number where only numbers are left."""
    return _extreme("max", max, sizes)


def evaluate(size: Size, values: Mapping[str, int]) -> Size:
    """The size with symbols replaced by numbers; symbols without a value stay."""
    return substitute(size, dict(values))


def substitute(size: Size, by: Mapping[str, Size]) -> Size:
    """The size with symbols replaced by other sizes."""
    if isinstance(size, int):
        return size
    total: Size = 0
    for monomial, factor in size.terms.items():
        product: Size = factor
        for atom, power in monomial:
            value = _replaced(atom, by)
            for _ in range(power):
                product = product * value
        total = total + product
    return total


def _replaced(atom: Atom, by: Mapping[str, Size]) -> Size:
    if isinstance(atom, str):
        return by.get(atom, symbol(atom))
    arguments = [substitute(argument, by) for argument in atom.arguments]
    match atom.function:
        case "floordiv":
            return floordiv(*arguments) if arguments[1] != 0 else _call("floordiv", *arguments)
        case "mod":
            return modulo(*arguments) if arguments[1] != 0 else _call("mod", *arguments)
        case "min":
            return smallest(*arguments)
    return largest(*arguments)


def _extreme(name: str, function: object, sizes: tuple[Size, ...]) -> Size:
    numbers = [size for size in sizes if isinstance(size, int)]
    others = sorted({size for size in sizes if isinstance(size, Expr)}, key=str)
    if numbers:
        best = (min if name == "min" else max)(numbers)
        if not others:
            return best
        return _call(name, *others, best)
    return others[0] if len(others) == 1 else _call(name, *others)


def _call(function: str, *arguments: Size) -> Expr:
    return Expr({((Call(function, arguments), 1),): 1})


def term_count(size: Size) -> int:
    """Of how many products it is a sum."""
    return len(_terms(size))


def _terms(size: Size) -> dict[Monomial, int]:
    return size.terms if isinstance(size, Expr) else {(): size}


def _tidy(terms: Mapping[Monomial, int]) -> Size:
    kept = {monomial: factor for monomial, factor in terms.items() if factor}
    if not kept.keys() - {()}:
        return kept.get((), 0)
    return Expr(kept)


def _exact_quotient(left: Size, right: Size) -> Size | None:
    """The quotient if it has no remainder: by one term, or by a polynomial that `left` is a multiple of."""
    divisor = _terms(right)
    if len(divisor) == 1:
        ((monomial, factor),) = divisor.items()
        if factor == 0:
            return None
        quotient = {over(m, monomial): f // factor for m, f in _terms(left).items() if f % factor == 0}
        return _tidy({m: f for m, f in quotient.items() if m is not None}) if _fits(left, monomial, factor) else None
    return _long_quotient(left, right)


def _fits(left: Size, monomial: Monomial, factor: int) -> bool:
    return all(f % factor == 0 and over(m, monomial) is not None for m, f in _terms(left).items())


def _long_quotient(left: Size, right: Size) -> Size | None:
    """Polynomial division, leading terms first; None unless it comes out even."""
    quotient: Size = 0
    rest = left
    lead, factor = max(_terms(right).items(), key=lambda term: degree(term[0]))
    for _ in range(len(_terms(left)) + 4):
        if rest == 0:
            return quotient
        top, top_factor = max(_terms(rest).items(), key=lambda term: degree(term[0]))
        step_by = over(top, lead)
        if step_by is None or top_factor % factor:
            return None
        step = _tidy({step_by: top_factor // factor})
        quotient = quotient + step
        rest = rest - step * right
    return None


def _split(left: Size, divisor: int) -> tuple[Size, Size]:
    """(quotient, rest) with the terms that the divisor divides in the quotient, and the constant reduced."""
    whole, rest = {}, {}
    for monomial, factor in _terms(left).items():
        whole[monomial], rest[monomial] = (
            divmod(factor, divisor) if monomial == () or factor % divisor == 0 else (0, factor)
        )
    return _tidy(whole), _tidy(rest)


def _content(*sizes: Size) -> int:
    return gcd(*(factor for size in sizes for factor in _terms(size).values()))


def _symbols(size: Size) -> Iterator[str]:
    for monomial in _terms(size):
        for atom, _ in monomial:
            if isinstance(atom, str):
                yield atom
            else:
                for argument in atom.arguments:
                    yield from _symbols(argument)


def _term(monomial: Monomial, factor: int) -> str:
    parts = [f"{_factor(atom)}**{power}" if power > 1 else _factor(atom) for atom, power in monomial]
    return "*".join([str(factor)] * (factor != 1 or not parts) + parts)


def _factor(atom: Atom) -> str:
    if isinstance(atom, str):
        return spell(atom)
    return f"({atom})" if atom.function in ("floordiv", "mod") else str(atom)


def _in_brackets(size: Size) -> str:
    simple = isinstance(size, int) or (
        len(size.terms) == 1 and next(iter(size.terms.values())) == 1 and len(next(iter(size.terms))) == 1
    )
    return str(size) if simple else f"({size})"
