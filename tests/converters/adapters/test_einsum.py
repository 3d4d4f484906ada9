"""Einsum below opset 12, where it is one product of matrices."""

import numpy as np
import pytest

from tests.converters.judging import assert_same, convert, drawn, model_of, ops

SIZES = {"b": 2, "h": 3, "i": 4, "j": 5, "k": 6, "d": 7}


def source(equation, element="float", opset=12):
    left = equation.partition("->")[0].replace(" ", "").split(",")
    inputs = [f"{element}[{','.join(map(str, (SIZES[c] for c in term)))}] x{n}" for n, term in enumerate(left)]
    names = ", ".join(f"x{n}" for n in range(len(left)))
    shapes = [drawn(*(SIZES[c] for c in term)) for term in left]
    out = np.einsum(equation.replace(" ", ""), *shapes).shape
    body = f'y = Einsum <equation = "{equation}"> ({names})'
    text = f"g ({', '.join(inputs)}) => ({element}[{','.join(map(str, out))}] y) {{ {body} }}"
    dtype = {"float": np.float32, "double": np.float64, "int32": np.int32}[element]
    return model_of(text, opset), {f"x{n}": (shape * 4).astype(dtype) for n, shape in enumerate(shapes)}


EQUATIONS = [
    "ij,jk->ik",
    "ij,kj->ik",
    "ij,kj->ki",
    "bij,bjk->bik",
    "bhid,bhjd->bhij",
    "bihd,bjhd->bhij",
    "bhij,bjhd->bihd",
    "bij,jk->bik",
    "bhi,ikd->bhkd",
    "ij,jk",
    "i,i->",
    "i,j->ij",
    "bi,bi->b",
    "bij,bj->bi",
    "bij,bij->bij",
    "bi , bj -> bij",
    "ij,k->jk",
    "bhi,bj->hij",
    "ij->ji",
    "ij->j",
    "bij->",
    "ji",
]


@pytest.mark.parametrize("equation", EQUATIONS)
def test_products_of_matrices(equation):
    model, feeds = source(equation)
    result, report = convert(model, 11)
    assert report.state == "verified"
    assert "Einsum" not in ops(result)
    assert_same(model, result, feeds, {name: np.zeros_like(value) for name, value in feeds.items()})


@pytest.mark.parametrize(("element", "to"), [("double", 7), ("int32", 9), ("float", 5)])
def test_element_types_and_older_opsets(element, to):
    model, feeds = source("bihd,bjhd->bhij", element)
    result, report = convert(model, to, verify=to > 6)
    assert report.state in ("verified", "unverified")
    assert "Einsum" not in ops(result)
    if to > 6:
        assert_same(model, result, feeds)


def test_empty_sums_are_zeros():
    text = 'g (float[N,K] x, float[K,M] w) => (float[N,M] y) { y = Einsum <equation = "ij,jk->ik"> (x, w) }'
    model = model_of(text, 12)
    result, _ = convert(model, 11)
    for sizes in ((2, 0, 3), (0, 2, 3), (1, 1, 1), (3, 2, 4)):
        assert_same(model, result, {"x": drawn(*sizes[:2]), "w": drawn(*sizes[1:])})


@pytest.mark.parametrize("equation", ["ij,ij->", "ii->i", "...ij,...jk->...ik", "ij,jk,kd->id", "iij,jk->ik"])
def test_more_than_that_is_refused_with_the_equation(equation):
    names = ", ".join(f"x{n}" for n in range(equation.count(",") + 1))
    inputs = ", ".join(
        f"float[{','.join('4' * len(term.replace('.', '')))}] x{n}"
        for n, term in enumerate(equation.partition("->")[0].split(","))
    )
    text = f'g ({inputs}) => (float[*] y) {{ y = Einsum <equation = "{equation}"> ({names}) }}'.replace(
        "float[*] y", "float[] y"
    )
    result, report = convert(model_of(text, 12), 11)
    assert result is None
    assert f"'{equation}'" in report.refusals[0].reason


@pytest.mark.parametrize(
    ("x", "w", "equation", "reason"),
    [
        ("2,1", "3,4", "ij,jk->ik", "sizes 1 and 3 for j, which MatMul does not broadcast"),
        ("2,1", "K,4", "ij,jk->ik", "sizes 1 and ? for j, which MatMul does not broadcast"),
        ("2,3", "3,4,5", "ij,jk->ik", "its equation has 2 letters for x1, which has rank 3"),
        ("2,3", "3,4", "", "its equation is missing"),
    ],
)
def test_what_the_equation_does_not_say_is_refused(x, w, equation, reason):
    how = f'<equation = "{equation}">' if equation else ""
    text = f"g (float[{x}] x0, float[{w}] x1) => (float[A,B] y) {{ y = Einsum {how} (x0, x1) }}"
    result, report = convert(model_of(text, 12), 11)
    assert result is None
    assert reason in report.refusals[0].reason


def test_letters_that_stay_are_broadcast():
    text = 'g (float[1,2,3] x, float[4,3,5] w) => (float[4,2,5] y) { y = Einsum <equation = "bij,bjk->bik"> (x, w) }'
    model = model_of(text, 12)
    result, _ = convert(model, 11)
    assert_same(model, result, {"x": drawn(1, 2, 3), "w": drawn(4, 3, 5)})
