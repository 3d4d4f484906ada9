"""Make dims small: the inputs, the weights and whatever says the same size change together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from onnxbench.reducers.passes import shrink_pass
from onnxbench.reducers.shrink import Shrinker
from onnxbench.reducers.slots import Slot, Window, resized, slots, static, unwindowed

Sizes = Mapping[Slot, int]


@shrink_pass("dims", "make dims static and small: all of them, then those of one size together, then single ones", 40)
def run(shrinker: Shrinker) -> None:
    """Steep first: to 1 at once; gently only where the failure needs a size."""
    everything = dict.fromkeys(slots(shrinker.best), 1)
    if _try(shrinker, everything) or shrinker.consider(resized(unwindowed(shrinker.best), everything, "peak")):
        return
    shrinker.consider(static(shrinker.best))
    while any(_shrink_class(shrinker, size) for size in _distinct(shrinker)):
        pass
    left = slots(shrinker.best)
    for slot in sorted(left, key=left.__getitem__, reverse=True):
        if slot in slots(shrinker.best):
            _shrink_one(shrinker, slot)


def _distinct(shrinker: Shrinker) -> list[int]:
    """The sizes that are there, smallest first: a window has to shrink before what it slides over."""
    return sorted(set(slots(shrinker.best).values()))


def _shrink_class(shrinker: Shrinker, size: int) -> bool:
    """All slots of one size, then all its multiples: to 1, else to less by halves; whether anything went."""
    for target in _targets(size):
        here = slots(shrinker.best)
        same = {slot: target for slot, n in here.items() if n == size}
        multiples = {slot: n // size * target for slot, n in here.items() if n % size == 0}
        if same and _try(shrinker, same):
            return True
        if len(multiples) > len(same) and _try(shrinker, multiples):
            return True
    return False


def _shrink_one(shrinker: Shrinker, slot: Slot) -> None:
    size = slots(shrinker.best)[slot]
    for target in _targets(size):
        if _try(shrinker, {slot: target}):
            return


def _targets(size: int) -> Iterator[int]:
    """1, 2, and halves of the size, smallest first."""
    halves = {size // 2**i for i in range(1, 4)}
    yield from sorted(target for target in {1, 2, *halves} if 0 < target < size)


def _try(shrinker: Shrinker, sizes: Sizes) -> bool:
    """Cut where the numbers are largest; where the failure is gone then, where they are smallest."""
    windows: tuple[Window, ...] = ("peak", "low")
    for window in windows:
        if shrinker.consider(resized(shrinker.best, sizes, window)):
            return True
        if shrinker.verdict != "gone":
            return False
    return False
