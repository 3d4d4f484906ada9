"""Return less: a failure rarely needs every output."""

from __future__ import annotations

from collections.abc import Sequence

from onnxbench.core.attributes import all_nodes
from onnxbench.reducers.edits import tidied
from onnxbench.reducers.passes import shrink_pass
from onnxbench.reducers.reproducer import Reproducer
from onnxbench.reducers.shrink import Shrinker


@shrink_pass("outputs", "drop outputs of the graph, and optional outputs of nodes that nothing reads", 10)
def run(shrinker: Shrinker) -> None:
    """Keep one output if that is enough, else drop one after the other."""
    names = [value.name for value in shrinker.best.proto.graph.output]
    if len(names) > 1:
        kept = any(shrinker.consider(_without(shrinker.best, [n for n in names if n != name])) for name in names[:4])
        if not kept:
            shrinker.lump(names[1:], _without)
            shrinker.lump(names[:1], _without)
    _drop_unread(shrinker)


def _without(best: Reproducer, names: Sequence[str]) -> Reproducer | None:
    """Without some outputs; a graph returns one at least."""
    proto = best.draft()
    kept = [value for value in best.proto.graph.output if value.name not in names]
    if not kept:
        return None
    del proto.graph.output[:]
    proto.graph.output.extend(kept)
    return tidied(best, proto)


def _drop_unread(shrinker: Shrinker) -> None:
    """Trailing outputs of nodes that nobody reads are left out, where the operator lets them."""
    proto = shrinker.best.draft()
    read = {name for node in all_nodes(proto) for name in node.input} | {v.name for v in proto.graph.output}
    changed = False
    for node in proto.graph.node:
        while len(node.output) > 1 and node.output[-1] not in read:
            del node.output[-1]
            changed = True
    if changed:
        shrinker.consider(tidied(shrinker.best, proto))
