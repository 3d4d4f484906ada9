"""Feed simpler numbers."""

from __future__ import annotations

from collections.abc import Mapping

from onnxbench.core.values import Array
from onnxbench.reducers.filling import simplify
from onnxbench.reducers.passes import shrink_pass
from onnxbench.reducers.reproducer import Reproducer, replaced
from onnxbench.reducers.shrink import Shrinker

#: Inputs up to this size are rewritten.
_SMALL = 1 << 20


@shrink_pass("values", "feed ones, zeros, one number only, small integers, or round numbers", 60)
def run(shrinker: Shrinker) -> None:
    """All inputs alike, then each by itself."""
    simplify(shrinker, _values, _replace)


def _values(reproducer: Reproducer) -> Mapping[str, Array]:
    return {name: array for name, array in reproducer.arrays().items() if array.nbytes <= _SMALL}


def _replace(reproducer: Reproducer, values: Mapping[str, Array]) -> Reproducer | None:
    return replaced(reproducer, values, {})
