"""Time-outs that are learned from the original."""

import numpy as np
import pytest

from onnxbench import Limits, Request, find, reduce
from onnxbench.reducers import patience
from onnxbench.reducers.prove import Proof
from onnxbench.reducers.signature import Signature
from onnxbench.runtimes.command import Command

from .conftest import chain


@pytest.mark.parametrize(
    "timeout, took, waits",
    [(60.0, 0.1, 10.0), (60.0, 3.0, 30.0), (60.0, 6.0, None), (5.0, 0.1, None), (None, 2.0, 20.0), (60.0, 0.0, None)],
)
def test_a_candidate_waits_by_what_the_original_took(timeout, took, waits):
    proof = Proof(Signature("error"), slowest=took)
    found = patience.patience(Limits(timeout, 7), proof)
    assert found == (None if waits is None else Limits(waits, 7))


def test_a_hang_is_waited_for_as_before():
    assert patience.patience(Limits(60.0), Proof(Signature("timeout"), slowest=1.0)) is None


def test_candidates_that_hang_do_not_cost_the_whole_timeout_each(monkeypatch, tmp_path):
    """The original fails at once; what has no culprit in it never ends."""
    monkeypatch.setattr(patience, "_PATIENCE_S", 0.5)
    command = """sh -c 'grep -q Softsign "$1" && exit 3; sleep 1000' sh"""
    bundle = tmp_path / "bundle"
    request = Request(
        chain(6, {3: "Softsign"}), {}, Command(command), [], limits=Limits(30.0), passes=(), bundle=bundle
    )
    report = reduce(request)
    assert ([culprit.name for culprit in report.culprits], report.by_products) == (["n3"], {})
    assert report.seconds < 25


@pytest.mark.parametrize("deed", ["load", "raise", "exit"])
def test_a_run_that_fails_tells_how_long_it_took(deed):
    planted = chain(2, {1: "Softsign"})
    outcome = find(f"misbehaving:ops=Softsign,do={deed}").run(planted, {"t0": np.ones((1, 4), np.float32)})
    assert not outcome.ok
    assert 0 < outcome.seconds < 60
