"""Forget what is declared of inner values: changes of shape would make it wrong."""

from __future__ import annotations

from onnxbench.reducers.edits import forget_shapes
from onnxbench.reducers.passes import shrink_pass
from onnxbench.reducers.shrink import Shrinker


@shrink_pass("declarations", "drop the declared types of inner values and the declared shapes of bodies", 5)
def run(shrinker: Shrinker) -> None:
    """One candidate."""
    proto = shrinker.best.draft()
    forget_shapes(proto)
    shrinker.consider(shrinker.best.with_model(proto))
