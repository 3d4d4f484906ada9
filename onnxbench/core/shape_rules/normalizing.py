"""Normalizations: outputs like the first input, with statistics beside it."""

from __future__ import annotations

from collections.abc import Sequence

from onnxbench.core.shape_rules.facts import FLOAT, Dims, Fact, tensor
from onnxbench.core.shape_rules.registry import MICROSOFT, rule
from onnxbench.core.shape_rules.site import Site


@rule("BatchNormalization")
def batch_norm(site: Site) -> Sequence[Fact]:
    """Outputs beyond the first are per channel, of the type of the running mean (saved ones, before opset 14)."""
    before = site.dims(0)
    channels: Dims | None = site.dims(3)
    if channels is None and before is not None and len(before) > 1:
        channels = (before[1],)
    kind = site.element(3) if site.element(3) is not None else site.element()
    return [tensor(site.element(), before), *(tensor(kind, channels) for _ in range(4))]


@rule("InstanceNormalization", "GroupNormalization", "RMSNormalization")
@rule("GroupNorm", domain=MICROSOFT)
def like_first(site: Site) -> Sequence[Fact]:
    """Output like the first input."""
    return [tensor(site.element(), site.dims(0))]


@rule("LayerNormalization")
@rule("LayerNormalization", "SimplifiedLayerNormalization", domain=MICROSOFT)
@rule("SimplifiedLayerNormalization")
def layer_norm(site: Site) -> Sequence[Fact]:
    """Mean and inverse deviation have 1 for every normalized axis, in the type of `stash_type`."""
    before = site.dims(0)
    kind = site.integer("stash_type", FLOAT)
    if before is None:
        return [tensor(site.element()), tensor(kind), tensor(kind)]
    axis = site.axis(len(before), -1)
    statistics = tensor(kind, (*before[:axis], *[1] * (len(before) - axis)))
    return [tensor(site.element(), before), statistics, statistics]


@rule("SkipLayerNormalization", "SkipSimplifiedLayerNormalization", domain=MICROSOFT)
def skip_layer_norm(site: Site) -> Sequence[Fact]:
    """Output, mean, inverse deviation, and the sum of input and skip."""
    before = site.dims(0)
    statistics = tensor(FLOAT, None if before is None else (*before[:-1], 1))
    whole = tensor(site.element(), before)
    return [whole, statistics, statistics, whole]


@rule("EmbedLayerNormalization", domain=MICROSOFT)
def embed_layer_norm(site: Site) -> Sequence[Fact]:
    """(batch, sequence) ids and a word table (words, hidden) give (batch, sequence, hidden) and a mask of (batch)."""
    ids, words = site.dims(0), site.dims(2)
    if ids is None or len(ids) != 2:
        return [tensor(site.element(2), (None,) * 3)]
    whole = tensor(site.element(2), (*ids, words[1] if words is not None and len(words) == 2 else None))
    return [whole, tensor(6, ids[:1]), whole]
