"""Fused and extended operators of com.microsoft that stand in no other family."""

from __future__ import annotations

from collections.abc import Sequence

from onnxbench.core.shape_rules.facts import Fact, tensor
from onnxbench.core.shape_rules.registry import MICROSOFT, rule
from onnxbench.core.shape_rules.site import Site


@rule("Inverse", "RotaryEmbedding", "Trilu", domain=MICROSOFT)
def like_first(site: Site) -> Sequence[Fact]:
    """Output like the first input."""
    return [tensor(site.element(), site.dims(0))]


@rule("ExpandDims", domain=MICROSOFT)
def expand_dims(site: Site) -> Sequence[Fact]:
    """A dim of 1 more, at the axis that the second input says."""
    before, axis = site.dims(0), site.numbers(1)
    if before is None or not axis:
        return [tensor(site.element(), None if before is None else (None,) * (len(before) + 1))]
    place = axis[0] + len(before) + 1 if axis[0] < 0 else axis[0]
    return [tensor(site.element(), (*before[:place], 1, *before[place:]))]
