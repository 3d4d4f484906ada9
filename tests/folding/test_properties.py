"""Whatever the model, a fold preserves what it computes and how it is called, and has nothing left to do."""

import numpy as np
import onnx
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from .growing import models
from .judging import assert_same, bare, interface, random, runs

SETTINGS = settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))


@SETTINGS
@given(models(), st.integers(0, 3))
def test_a_fold_computes_the_same(model, seed):
    folded = bare(model)
    for size in (0, 1, 3):
        feeds = {"x": np.round(random(size, 4, seed=seed) * 3)}
        if not runs(model, feeds):
            continue
        assert_same(model, folded, feeds)
        if len(model.graph.input) > 1:
            assert_same(model, folded, {**feeds, "w": random(4, seed=seed + 1)})


@SETTINGS
@given(models())
def test_a_fold_keeps_the_interface_and_validity(model):
    folded = bare(model)
    assert interface(folded) == interface(model)
    if _is_valid(model):
        onnx.checker.check_model(folded, full_check=True)


@SETTINGS
@given(models())
def test_a_fold_leaves_nothing_to_do_and_is_the_same_each_time(model):
    folded = bare(model)
    assert bare(model).SerializeToString(deterministic=True) == folded.SerializeToString(deterministic=True)
    assert bare(folded).SerializeToString(deterministic=True) == folded.SerializeToString(deterministic=True)


def _is_valid(model):
    try:
        onnx.checker.check_model(model, full_check=True)
    except Exception:
        return False
    return True
