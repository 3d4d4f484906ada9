"""Values that cannot be told from any others: what a failure does not need of weights and feeds, nobody should see."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from onnxbench.core.values import Array, is_float
from onnxbench.errors import quote
from onnxbench.reducers.passes import shrink_pass
from onnxbench.reducers.reproducer import LARGEST, Reproducer, held, payload_bytes, replaced, values_of
from onnxbench.reducers.shrink import Shrinker

#: Fewer different numbers than this tell nothing of a model.
_FEW = 3


@shrink_pass(
    "scramble",
    "with --anonymize only: put random numbers of the same scale in the place of weights and feeds",
    85,
    last=True,
    anonymizes=True,
    optional=True,
)
def run(shrinker: Shrinker) -> None:
    """All at once, then one by one; a note names what could not be replaced."""
    weights = _weights(shrinker.best)
    feeds = {name: array for name, array in shrinker.best.arrays().items() if _tells(array)}
    if not weights and not feeds:
        return
    scrambled = {place: _scrambled(array) for place, array in weights.items()}
    if shrinker.consider(replaced(shrinker.best, _all_scrambled(feeds), scrambled), larger=True):
        return
    for place, array in scrambled.items():
        if not shrinker.consider(replaced(shrinker.best, {}, {place: array}), larger=True):
            dims = "x".join(map(str, array.shape)) or "scalar"
            shrinker.notes.append(f"the failure needs the values of a weight ({array.dtype} {dims}), which stay in it")
    for name, array in feeds.items():
        if not shrinker.consider(replaced(shrinker.best, {name: _scrambled(array)}, {}), larger=True):
            at = list(shrinker.best.feeds).index(name)
            shrinker.notes.append(f"the failure needs the values that input {quote(str(at))} is fed, which stay")


def _weights(best: Reproducer) -> dict[int, Array]:
    found = {}
    for place, tensor in held(best.proto):
        if payload_bytes(tensor) > LARGEST:
            continue
        value = values_of(best, tensor)
        if _tells(value):
            found[place] = value
    return found


def _all_scrambled(arrays: Mapping[str, Array]) -> dict[str, Array]:
    return {name: _scrambled(array) for name, array in arrays.items()}


def _tells(array: Array) -> bool:
    return is_float(array.dtype) and len(np.unique(array.astype(np.float64))) > _FEW


def _scrambled(array: Array) -> Array:
    """Random numbers of the same mean and spread."""
    wide = array.astype(np.float64)
    finite = wide[np.isfinite(wide)]
    random = np.random.default_rng(0)
    made = random.normal(finite.mean() if finite.size else 0.0, finite.std() if finite.size else 1.0, array.shape)
    return np.asarray(np.clip(made, finite.min(initial=0), finite.max(initial=1))).astype(array.dtype)
