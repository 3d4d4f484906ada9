"""Einsum before opset 12: sums and products of one or two tensors that are one product of matrices at most.

Source: ai.onnx Einsum-12. An index of both operands that is not in the output is summed over, which is what MatMul does with one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

from onnxbench.converters import schemas
from onnxbench.converters.adapters import adapter
from onnxbench.converters.adapters._masks import reduced
from onnxbench.converters.site import Site
from onnxbench.errors import quote


@dataclass(frozen=True, slots=True)
class _Term:
    """A tensor with a letter for each of its dims; None stands for one of size 1."""

    name: str
    letters: tuple[str | None, ...]


def _down(site: Site) -> None:
    terms, output = _equation(site)
    if schemas.type_text(site.needed_element(site.input(0))) not in _types():
        site.refuse("before opset 12 there is no product of matrices of its element type")
    operands = [_Term(name, letters) for name, letters in zip(site.node.input, terms, strict=True)]
    summed = [_summed(site, term, operands, output) for term in operands]
    if len(summed) == 1:
        _finish(site, summed[0], output)
        return
    one, other = summed
    inner = [letter for letter in one.letters if letter in other.letters and letter not in output]
    if not inner:
        _by_product(site, one, other, output)
    elif len(inner) == 1:
        _refuse_broadcast(site, one, other, str(inner[0]))
        _by_matrices(site, one, other, str(inner[0]), output)
    else:
        _give_up(site)


def _equation(site: Site) -> tuple[list[tuple[str, ...]], tuple[str, ...]]:
    """The letters of each operand and of the output, each once."""
    given = site.attr("equation")
    if given is None:
        site.refuse("its equation is missing")
    text = str(given).replace(" ", "")
    left, arrow, right = text.partition("->")
    terms = left.split(",")
    if not arrow:
        right = "".join(sorted(letter for letter in set(left) - {","} if left.count(letter) == 1))
    plain = all(re.fullmatch(r"[A-Za-z]*", term) and len(set(term)) == len(term) for term in (*terms, right))
    if not plain or len(terms) > 2 or len(terms) != len(site.node.input) or not set(right) <= set(left):
        _give_up(site)
    for term, name in zip(terms, site.node.input, strict=True):
        if site.rank(name) not in (None, len(term)):
            site.refuse(f"its equation has {len(term)} letters for {name}, which has rank {site.rank(name)}")
    return [tuple(term) for term in terms], tuple(right)


def _refuse_broadcast(site: Site, one: _Term, other: _Term, inner: str) -> None:
    """Einsum broadcasts a dim of 1 that it sums over, too."""
    dims = (site.dims(term.name) for term in (one, other))
    sizes = [
        known[term.letters.index(inner)] if known else None for term, known in zip((one, other), dims, strict=True)
    ]
    if sizes[0] != sizes[1] and (1 in sizes or None not in sizes):
        shown = " and ".join("?" if size is None else str(size) for size in sizes)
        site.refuse(f"it has sizes {shown} for {inner}, which MatMul does not broadcast")


def _give_up(site: Site) -> NoReturn:
    equation = quote(str(site.attr("equation")))
    site.refuse(f"Einsum was introduced in opset 12, and {equation} is more than one product of two tensors' matrices")


def _types() -> set[str]:
    version = schemas.schema("", "MatMul", 11)
    assert version is not None
    return set(schemas.allowed(version, "T"))


def _summed(site: Site, term: _Term, operands: Sequence[_Term], output: Sequence[str]) -> _Term:
    """Without the dims that only this operand has, and the output has not."""
    others = {letter for other in operands if other is not term for letter in other.letters}
    gone = [place for place, letter in enumerate(term.letters) if letter not in others and letter not in output]
    if not gone:
        return term
    left = tuple(letter for place, letter in enumerate(term.letters) if place not in gone)
    return _Term(reduced(site, "ReduceSum", term.name, gone), left)


def _laid_out(site: Site, term: _Term, wanted: Sequence[str | None]) -> _Term:
    """With its dims in an order, and dims of size 1 where it has none of them."""
    there = [letter for letter in wanted if letter is not None and letter in term.letters]
    name = term.name
    if there != list(term.letters):
        name = site.add("Transpose", name, perm=[term.letters.index(letter) for letter in there], wish="turned")
    ones = [place for place, letter in enumerate(wanted) if letter is None or letter not in term.letters]
    if ones:
        name = site.add("Unsqueeze", name, axes=ones, wish="spread")
    return _Term(name, tuple(wanted))


def _by_product(site: Site, one: _Term, other: _Term, output: Sequence[str]) -> None:
    """Nothing is summed over: dims of size 1 broadcast."""
    names = [_laid_out(site, term, output).name for term in (one, other)]
    site.put("Mul", names)


def _by_matrices(site: Site, one: _Term, other: _Term, inner: str, output: Sequence[str]) -> None:
    """All dims but two are a batch, in which MatMul broadcasts those of size 1."""
    rows = [letter for letter in output if letter in one.letters and letter not in other.letters]
    columns = [letter for letter in output if letter in other.letters and letter not in one.letters]
    row, column = (letters.pop() if letters else None for letters in (rows, columns))
    batch = [letter for letter in output if letter not in (row, column)]
    left = _laid_out(site, one, [*batch, row, inner])
    right = _laid_out(site, other, [*batch, inner, column])
    made = site.add("MatMul", left.name, right.name, wish="product")
    _finish(site, _Term(made, (*batch, row, column)), output)


def _finish(site: Site, term: _Term, output: Sequence[str]) -> None:
    """Drop dims of size 1 that stand for nothing, and put the rest into order."""
    ones = [place for place, letter in enumerate(term.letters) if letter is None]
    letters = [letter for letter in term.letters if letter is not None]
    name = site.add("Squeeze", term.name, axes=ones, wish="bare") if ones else term.name
    if letters == list(output):
        site.put("Identity", [name])
    else:
        site.put("Transpose", [name], perm=[letters.index(letter) for letter in output])


adapter("Einsum", 12, 0)(_down)
