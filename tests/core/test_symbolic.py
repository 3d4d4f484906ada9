"""Arithmetic of sizes agrees with arithmetic of the numbers that they stand for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onnxbench.core.size_text import parse
from onnxbench.core.symbolic import ceildiv, evaluate, floordiv, largest, modulo, smallest, substitute, symbol

NAMES = ["N", "H", "seq"]
FUNCTIONS = {
    "add": (lambda a, b: a + b, lambda a, b: a + b),
    "sub": (lambda a, b: a - b, lambda a, b: a - b),
    "mul": (lambda a, b: a * b, lambda a, b: a * b),
    "floordiv": (lambda a, b: a // b, floordiv),
    "mod": (lambda a, b: a % b, modulo),
    "min": (min, smallest),
    "max": (max, largest),
}
values = st.fixed_dictionaries({name: st.integers(1, 50) for name in NAMES})
leaves = st.one_of(st.integers(-4, 9), st.sampled_from(NAMES))
trees = st.recursive(leaves, lambda inner: st.tuples(st.sampled_from(sorted(FUNCTIONS)), inner, inner), max_leaves=8)


def as_size(tree):
    """The size of a tree; None where it divides by something that could be zero."""
    if not isinstance(tree, tuple):
        return symbol(tree) if isinstance(tree, str) else tree
    name, left, right = tree[0], as_size(tree[1]), as_size(tree[2])
    if left is None or right is None or (name in ("floordiv", "mod") and right == 0):
        return None
    return FUNCTIONS[name][1](left, right)


def as_number(tree, env):
    if not isinstance(tree, tuple):
        return env[tree] if isinstance(tree, str) else tree
    left, right = as_number(tree[1], env), as_number(tree[2], env)
    if left is None or right is None or (tree[0] in ("floordiv", "mod") and right == 0):
        return None
    return FUNCTIONS[tree[0]][0](left, right)


@given(trees, values)
def test_a_size_is_worth_what_the_numbers_are_worth(tree, env):
    size, number = as_size(tree), as_number(tree, env)
    if size is not None and number is not None:
        assert evaluate(size, env) == number


@given(trees)
def test_what_is_printed_reads_back(tree):
    size = as_size(tree)
    if size is not None:
        assert parse(str(size)) == size


odd_names = st.one_of(
    st.text(min_size=1, max_size=6),
    st.text("ab -*+/%(),'\"\\\n\x1b", min_size=1, max_size=6),
    st.sampled_from(
        ["a-b", "2*N", "batch size", " N", "min", "lambda", "True", "None", "ﬁ", "fi", "'N'", "\udc80", "größe"]
    ),
)
odd_trees = st.recursive(
    st.one_of(st.integers(-4, 9), odd_names.map(symbol)),
    lambda inner: st.tuples(st.sampled_from(sorted(FUNCTIONS)), inner, inner),
    max_leaves=6,
)


@given(odd_trees)
def test_names_that_are_no_identifiers_read_back_too(tree):
    size = built(tree)
    if size is not None:
        assert parse(str(size)) == size


def built(tree):
    """The size of a tree whose leaves are sizes; None where it divides by something that could be zero."""
    if not isinstance(tree, tuple):
        return tree
    name, left, right = tree[0], built(tree[1]), built(tree[2])
    if left is None or right is None or (name in ("floordiv", "mod") and right == 0):
        return None
    return FUNCTIONS[name][1](left, right)


@pytest.mark.parametrize(
    "size, text",
    [
        (symbol("a-b"), "'a-b'"),
        (symbol("a-b") * symbol("2*N") * 2 - 1, "2*'2*N'*'a-b' - 1"),
        (ceildiv(symbol("batch size"), 2), "(('batch size' + 1)//2)"),
        (largest(symbol("it's"), 3), 'max("it\'s", 3)'),
        (symbol("True") + symbol("N"), "'True' + N"),
    ],
)
def test_names_that_are_no_identifiers_stand_in_quotes(size, text):
    assert str(size) == text
    assert parse(text) == size


@given(trees, trees, values)
def test_substitution_then_numbers_is_numbers_at_once(tree, inner, env):
    size, by = as_size(tree), as_size(inner)
    if size is None or by is None or as_number(tree, {**env, "N": as_number(inner, env) or 0}) is None:
        return
    number = as_number(inner, env)
    if number is None:
        return
    assert evaluate(substitute(size, {"N": by}), env) == as_number(tree, {**env, "N": number})


@pytest.mark.parametrize(
    "size, text",
    [
        (symbol("N") * 2 + 3 - symbol("N"), "N + 3"),
        ((symbol("N") + 1) * (symbol("N") - 1), "N**2 - 1"),
        (floordiv(symbol("N") * symbol("H") * 4, symbol("N") * 2), "2*H"),
        (floordiv((symbol("N") + 1) * (symbol("H") + 2), symbol("N") + 1), "H + 2"),
        (floordiv(symbol("N") * 4 + 5, 2), "2*N + 2"),
        (floordiv(symbol("N") * 2 + 2, 4), "((N + 1)//2)"),
        (ceildiv(symbol("N"), 2), "((N + 1)//2)"),
        (ceildiv(ceildiv(symbol("N"), 2), 2), "((N + 3)//4)"),
        (largest(symbol("N"), 1, symbol("H"), 3), "max(H, N, 3)"),
        (modulo(symbol("N") * 4, 2), "0"),
        (symbol("N") - symbol("N"), "0"),
    ],
)
def test_sizes_are_as_simple_as_they_get(size, text):
    assert str(size) == text


def test_equal_sizes_are_equal_however_they_came_about():
    n, h = symbol("N"), symbol("H")
    assert (n + h) * 2 == h * 2 + n + n
    assert hash((n + h) * 2) == hash(h * 2 + n + n)
    assert n != h
    assert isinstance(n * 0, int)


@pytest.mark.parametrize(
    "text", ["a.b-c", "", "N[0]", "__import__('os')", "1/0", "N//0", "f(x)", "((((", "2**-1", "9**999", "True", "b'N'"]
)
def test_what_is_no_arithmetic_is_not_read_as_such(text):
    assert parse(text) is None
