"""Which of infinity and NaN comes out where infinity went in: sums end in either, by the order in which they are made."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from onnxbench.converters.believed import Ran
from onnxbench.core.values import Value, is_float


def without_lost_ends(one: Ran, other: Ran) -> tuple[Ran, Ran]:
    """Two runs with zeros wherever one has NaN and the other infinity; the runs themselves if nothing can be compared."""
    if not (one.outcome.ok and other.outcome.ok) or one.outcome.outputs.keys() != other.outcome.outputs.keys():
        return one, other
    pairs = {name: _levelled(value, other.outcome.outputs[name]) for name, value in one.outcome.outputs.items()}
    first, second = ({name: pair[side] for name, pair in pairs.items()} for side in (0, 1))
    return (
        replace(one, outcome=replace(one.outcome, outputs=first)),
        replace(other, outcome=replace(other.outcome, outputs=second)),
    )


def _levelled(one: Value, other: Value) -> tuple[Value, Value]:
    if not isinstance(one, np.ndarray) or not isinstance(other, np.ndarray):
        return one, other
    if one.shape != other.shape or not (is_float(one.dtype) and is_float(other.dtype)):
        return one, other
    wide, twin = one.astype(np.float64), other.astype(np.float64)
    lost = (np.isnan(wide) & np.isinf(twin)) | (np.isinf(wide) & np.isnan(twin))
    zero = np.zeros((), one.dtype)
    return np.where(lost, zero, one), np.where(lost, zero.astype(other.dtype), other)
