"""Weights without what the failure does not need of them."""

from __future__ import annotations

from collections.abc import Mapping

from onnxbench.core.values import Array
from onnxbench.reducers.filling import simplify
from onnxbench.reducers.passes import shrink_pass
from onnxbench.reducers.reproducer import Reproducer, held, payload_bytes, replaced, values_of
from onnxbench.reducers.shrink import Shrinker
from onnxbench.reducers.slots import says_a_shape

#: Weights up to this size are rewritten.
_SMALL = 1 << 20


@shrink_pass("weights", "make weights all equal, zeros, ones, or round numbers", 50)
def run(shrinker: Shrinker) -> None:
    """All weights alike, then each by itself."""
    simplify(shrinker, _values, _replace)


def _values(reproducer: Reproducer) -> Mapping[int, Array]:
    return {
        place: values_of(reproducer, tensor)
        for place, tensor in held(reproducer.proto)
        if payload_bytes(tensor) <= _SMALL and not says_a_shape(tensor)
    }


def _replace(reproducer: Reproducer, values: Mapping[int, Array]) -> Reproducer | None:
    return replaced(reproducer, {}, values)
