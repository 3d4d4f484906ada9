import math

from hypothesis import given
from hypothesis import strategies as st

from onnxbench.reducers.search import minimise, narrow, sweep


class Asked:
    """Whether a subset holds all culprits, counting the questions."""

    def __init__(self, culprits):
        self.culprits, self.count = set(culprits), 0

    def __call__(self, subset):
        self.count += 1
        return self.culprits <= set(subset)


@st.composite
def searches(draw):
    length = draw(st.integers(1, 200))
    return length, draw(st.sets(st.integers(0, length - 1), min_size=1, max_size=6))


@given(searches())
def test_exactly_the_culprits_are_left(search):
    length, culprits = search
    assert minimise(range(length), Asked(culprits)) == sorted(culprits)


@given(st.integers(2, 5000), st.data())
def test_one_culprit_takes_log2_n_and_one_questions(length, data):
    asked = Asked({data.draw(st.integers(0, length - 1))})
    narrow(range(length), asked)
    assert asked.count <= math.ceil(math.log2(length)) + 1


@given(searches())
def test_scattered_culprits_take_log2_n_and_one_questions_each_after_the_halving(search):
    length, culprits = search
    asked = Asked(culprits)
    narrow(range(length), asked)
    halving = math.ceil(math.log2(length)) + 1 if length > 1 else 1
    assert asked.count <= halving * (1 + len(culprits))


@given(st.integers(1, 40), st.data())
def test_the_answer_fails_and_is_one_minimal_even_if_supersets_may_pass(length, data):
    """A fault that an exposed value hides: whether a set fails depends on each set for itself."""
    table = {}

    def fails(subset):
        key = tuple(subset)
        if key not in table:
            table[key] = len(subset) == length or data.draw(st.booleans())
        return table[key]

    left = minimise(range(length), fails)
    assert fails(left)
    assert not any(fails(left[:i] + left[i + 1 :]) for i in range(len(left)) if len(left) > 1)


def test_the_order_is_kept():
    seen = []
    sweep([3, 1, 2], lambda subset: seen.append(list(subset)) or {3, 2} <= set(subset))
    assert all(subset == [i for i in [3, 1, 2] if i in subset] for subset in seen)


def test_nothing_is_never_asked_about():
    assert minimise([7], lambda subset: bool(subset) or 1 / 0) == [7]
