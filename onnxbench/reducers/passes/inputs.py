"""Feed less: an input whose value does not change may as well be in the model."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import numpy_helper

from onnxbench.reducers.edits import tidied
from onnxbench.reducers.passes import shrink_pass
from onnxbench.reducers.reproducer import Reproducer
from onnxbench.reducers.shrink import Shrinker

#: Values up to this size go into the model.
_SMALL = 64 << 10


_SENTENCE = (
    "drop inputs that nothing reads, fix initializers that inputs may override, and make initializers of small inputs; "
    "one input stays"
)


@shrink_pass("inputs", _SENTENCE, 30)
def run(shrinker: Shrinker) -> None:
    """All but the largest input at once; a model without any would be computed by an optimizer before it runs."""
    shrinker.consider(tidied(shrinker.best, shrinker.best.draft()))
    shrinker.consider(_fixed(shrinker.best))
    arrays = shrinker.best.arrays()
    held = {tensor.name for tensor in shrinker.best.proto.graph.initializer}
    names = [value.name for value in shrinker.best.proto.graph.input if value.name not in held]
    if shrinker.best.proto.ir_version < 4 or len(names) < 2:  # before, initializers were inputs too
        return
    largest = max(names, key=lambda name: arrays[name].size if name in arrays else -1)
    small = [name for name in names if name != largest and name in arrays and arrays[name].nbytes <= _SMALL]
    shrinker.lump(small, _with_constants)


def _fixed(best: Reproducer) -> Reproducer | None:
    """The reproducer with initializers that nothing can override; None if that would leave no input."""
    held = {tensor.name for tensor in best.proto.graph.initializer}
    fed = [value for value in best.proto.graph.input if value.name not in held]
    if best.proto.ir_version < 4 or not fed:
        return None
    proto = best.draft()
    del proto.graph.input[:]
    proto.graph.input.extend(fed)
    return best.with_model(proto)


def _with_constants(best: Reproducer, names: Sequence[str]) -> Reproducer:
    proto, arrays = best.draft(), best.arrays()
    kept = [value for value in best.proto.graph.input if value.name not in names]
    del proto.graph.input[:]
    proto.graph.input.extend(kept)
    for name in names:
        proto.graph.initializer.append(numpy_helper.from_array(np.asarray(arrays[name]), name))
    return best.with_model(proto, {name: value for name, value in best.feeds.items() if name not in names})
