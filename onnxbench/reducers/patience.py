"""How long a candidate is waited for."""

from __future__ import annotations

import dataclasses

from onnxbench.reducers.prove import Proof
from onnxbench.runtimes.base import Limits

#: A candidate of a hanging model waits this share of the timeout, at least so many seconds; the confirmation waits it all.
_HANG_SHARE, _HANG_S = 1 / 12, 2.0
#: Another candidate waits so many times what the original took to fail, and at least so many seconds: machines have bad moments.
_PATIENCE, _PATIENCE_S = 10, 10.0


def impatient(limits: Limits) -> Limits:
    """What a candidate of a model that hangs is given."""
    if limits.timeout is None:
        return dataclasses.replace(limits, timeout=_HANG_S)
    return dataclasses.replace(limits, timeout=min(limits.timeout, max(_HANG_S, limits.timeout * _HANG_SHARE)))


def patience(limits: Limits, proof: Proof) -> Limits | None:
    """What the suspect is given for a candidate, which has less to do than the original; None for no less than `limits`."""
    seconds = max(_PATIENCE_S, _PATIENCE * proof.slowest)
    known = proof.slowest > 0 and not proof.hangs
    if not known or (limits.timeout is not None and limits.timeout <= seconds):
        return None
    return dataclasses.replace(limits, timeout=seconds)


def third(limits: Limits) -> float | None:
    """Seconds for what is only good to know."""
    return limits.timeout / 3 if limits.timeout is not None else None
