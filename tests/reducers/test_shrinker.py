"""The engine of shrinking by itself: what it asks, what it keeps, and the order of size."""

import numpy as np
import pytest
from onnx import numpy_helper

from onnxbench.core.difference import Difference
from onnxbench.errors import ModelError
from onnxbench.reducers.measure import digits, oddness, size
from onnxbench.reducers.oracle import Answer
from onnxbench.reducers.passes import Pass, catalogue, operands
from onnxbench.reducers.reproducer import Reproducer
from onnxbench.reducers.settle import Settler
from onnxbench.reducers.shrink import Shrinker
from onnxbench.runtimes.base import Limits

from .conftest import model

SAME = Answer("same")
RELU = "agraph (float[4, 6] x) => (float[4, 6] y) { [relu] y = Relu(x) }"


def reproducer(text=RELU, **feeds):
    feeds = feeds or {"x": np.full((4, 6), 0.25, np.float32)}
    planted = model(text)
    return Reproducer(planted, feeds, tuple(node.name for node in planted.proto.graph.node))


def shrinker(ask=lambda candidate: SAME, start=SAME, text=RELU, **feeds):
    return Shrinker(reproducer(text, **feeds), start, ask, Settler(Limits(10)))


def fed(value):
    """The start with other numbers."""
    base = reproducer()
    return base.with_model(base.draft(), {"x": value})


def off(tolerances):
    return Answer("same", differences=[Difference("y", "values", max_abs=1.0, tolerances=tolerances)])


def test_what_is_not_smaller_or_was_asked_before_is_not_asked():
    asked = []
    one = shrinker(lambda candidate: asked.append(candidate) or Answer("gone"))
    assert not one.consider(one.best)
    assert not one.consider(fed(np.full((4, 6), 0.125, np.float32)))
    assert not asked
    for _ in range(2):
        assert not one.consider(fed(np.ones((4, 6), np.float32)))
    assert len(asked) == 1


def test_what_inference_refuses_is_not_asked():
    text = "agraph (float[4, 6] x, float[6, 2] z) => (float[4, 2] y) { y = MatMul(x, z) }"
    one = shrinker(text=text, x=np.ones((4, 6), np.float32), z=np.ones((6, 2), np.float32))
    proto = one.best.draft()
    proto.graph.input[0].type.tensor_type.shape.dim[1].dim_value = 1
    assert not one.consider(one.best.with_model(proto, {**one.best.feeds, "x": np.ones((4, 1), np.float32)}))
    assert one.verdict is None


@pytest.mark.parametrize("before, after, taken", [(90.0, 9.0, False), (90.0, 10.0, True), (3.0, 2.0, True)])
def test_a_clear_difference_stays_clear(before, after, taken):
    one = shrinker(lambda candidate: off(after), off(before))
    assert one.consider(fed(np.ones((4, 6), np.float32))) == taken


@pytest.mark.parametrize("number", [np.nan, np.inf, 1e-40])
def test_odd_numbers_are_not_brought_in(number):
    one = shrinker()
    value = np.ones((1, 1), np.float32) * np.float32(number)
    assert not one.consider(fed(value))
    assert one.verdict is None


def test_an_interrupt_leaves_the_best_so_far():
    answers = [SAME, KeyboardInterrupt()]

    def ask(candidate):
        answer = answers.pop(0)
        if isinstance(answer, KeyboardInterrupt):
            raise answer
        return answer

    one = shrinker(ask)
    with pytest.raises(KeyboardInterrupt):
        one.run(list(catalogue().values()))
    assert one.best.feeds["x"].shape == (1, 1)
    assert [record.name for record in one.records.values() if record.accepted] == ["dims"]


def test_no_time_is_no_question():
    asked = []
    one = shrinker(lambda candidate: asked.append(candidate) or SAME)
    one.deadline = 0.0
    one.run(list(catalogue().values()))
    assert not asked
    assert len(one.notes) == 1


def test_a_pass_that_gives_up_costs_nothing_else():
    def broken(one):
        raise ModelError("OB304", "the weights are gone")

    one = shrinker()
    one.run([Pass("broken", "", 1, broken), catalogue()["values"]])
    assert one.notes == ["the pass broken gave up: the weights are gone"]
    assert one.best.feeds["x"].max() == 1


def test_keys_go_by_halves():
    asked = []
    one = shrinker()

    def edit(best, keys):
        asked.append(list(keys))
        made = best.feeds["x"].copy()
        made.reshape(-1)[list(keys)] = 1
        return fed(made) if 5 not in keys else None

    one.lump(list(range(8)), edit)
    assert asked[:3] == [list(range(8)), [0, 1, 2, 3], [4, 5, 6, 7]]
    assert (one.best.feeds["x"].reshape(-1)[:8] == 1).tolist() == [i != 5 for i in range(8)]


@pytest.mark.parametrize(
    "larger, smaller",
    [
        ("y = Relu(x)", "y = Identity(x)"),
        ("h = Relu(x) y = Relu(h)", "y = Relu(x)"),
        ("y = LeakyRelu <alpha = 0.5> (x)", "y = LeakyRelu (x)"),
        ("y = Add(x, x)", "y = Relu(x)"),
        ("long_name = Relu(x) y = Relu(long_name)", "h0 = Relu(x) y = Relu(h0)"),
    ],
)
def test_the_order_of_size(larger, smaller):
    sizes = [size(reproducer(f"agraph (float[4, 6] x) => (float[4, 6] y) {{ {text} }}")) for text in (larger, smaller)]
    assert sizes[0] > sizes[1]


def test_plain_numbers_are_smaller_than_odd_ones():
    numbers = [1, 0, -1, 2, -2, 12, 0.5, -0.25, 0.333333]
    costs = [digits(number) for number in numbers]
    assert costs == sorted(costs)
    assert oddness(np.array([1, 1, 1, 7.0])) < oddness(np.array([7.0, 7.0, 7.0, 7.5]))


def test_a_broken_weight_has_a_size_too():
    base = reproducer()
    tensor = numpy_helper.from_array(np.ones(3, np.float32), "w")
    tensor.raw_data = tensor.raw_data[:5]
    proto = base.draft()
    proto.graph.initializer.append(tensor)
    assert size(base.with_model(proto)) > size(base)


def test_every_pass_is_found_once_and_says_what_it_does():
    passes = list(catalogue().values())
    assert len({entry.name for entry in passes}) == len(passes) >= 13
    assert all(entry.sentence and entry.sentence[0].islower() and entry.sentence[-1] != "." for entry in passes)
    assert [entry.name for entry in passes if entry.last] == ["scramble", "metadata", "names"]


@pytest.mark.parametrize("version", [2**31, 2**62, -(2**40)])
def test_operands_of_an_opset_that_no_operator_can_have(version):
    planted = model(RELU).proto
    planted.opset_import[0].version = version
    assert not list(operands._optional(planted))
