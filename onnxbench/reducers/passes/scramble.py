"""Values that cannot be told from any others: what a failure does not need of weights and feeds, nobody should see."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from onnxbench.core.tensors import type_name
from onnxbench.core.values import Array, is_float, is_integer
from onnxbench.errors import quote
from onnxbench.reducers.passes import shrink_pass
from onnxbench.reducers.reproducer import LARGEST, held, payload_bytes, replaced, values_of
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
    weights = _weights(shrinker)
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


def _weights(shrinker: Shrinker) -> dict[int, Array]:
    best, found = shrinker.best, {}
    for place, tensor in held(best.proto):
        if payload_bytes(tensor) > LARGEST:
            dims = "x".join(map(str, tensor.dims))
            shrinker.notes.append(
                f"a weight ({type_name(tensor.data_type)} {dims}) is too large to be replaced, and stays"
            )
            continue
        value = values_of(best, tensor)
        if _tells(value):
            found[place] = value
    return found


def _all_scrambled(arrays: Mapping[str, Array]) -> dict[str, Array]:
    return {name: _scrambled(array) for name, array in arrays.items()}


def _tells(array: Array) -> bool:
    number = is_float(array.dtype) or is_integer(array.dtype)
    return number and array.size > _FEW and len(np.unique(array.astype(np.float64))) > _FEW


def _scrambled(array: Array) -> Array:
    """Random numbers of the same mean and spread."""
    if is_integer(array.dtype):
        whole = array.astype(np.int64)
        drawn = np.random.default_rng(0).integers(whole.min(), whole.max(), array.shape, endpoint=True)
        return np.asarray(drawn).astype(array.dtype)
    wide = array.astype(np.float64)
    finite = wide[np.isfinite(wide)]
    random = np.random.default_rng(0)
    made = random.normal(finite.mean() if finite.size else 0.0, finite.std() if finite.size else 1.0, array.shape)
    low, high = (finite.min(), finite.max()) if finite.size else (0.0, 1.0)
    return np.asarray(np.clip(made, low, high)).astype(array.dtype)
