"""Drop nodes where the node search cannot reach: in bodies of If, Loop and Scan, and in functions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import FunctionProto, GraphProto, ModelProto, TypeProto, numpy_helper

from onnxbench.core.attributes import all_graphs
from onnxbench.core.graph import captures
from onnxbench.core.types import infer_strictly
from onnxbench.core.values import dtype_of
from onnxbench.reducers.edits import renamed_reads, tidied
from onnxbench.reducers.passes import shrink_pass
from onnxbench.reducers.reproducer import Reproducer
from onnxbench.reducers.shrink import Shrinker


@shrink_pass("bodies", "drop nodes inside bodies and functions, and return a constant where a body may", 15)
def run(shrinker: Shrinker) -> None:
    """Empty whole bodies first, then take out single nodes."""
    scopes = _scopes(shrinker.best.proto)
    if not scopes:
        return
    for at, scope in enumerate(scopes):
        if isinstance(scope, GraphProto) and scope.node:
            shrinker.consider(_emptied(shrinker, at))
    progress = True
    while progress:
        progress = any(_thin(shrinker, at) for at in range(len(_scopes(shrinker.best.proto))))


def _scopes(proto: ModelProto) -> list[GraphProto | FunctionProto]:
    return [*proto.functions, *list(all_graphs(proto))[1:]]


def _thin(shrinker: Shrinker, at: int) -> bool:
    """Take nodes out of one body, last first; whether any went."""
    found = False
    scopes = _scopes(shrinker.best.proto)
    if at >= len(scopes):  # it went with the node that held it
        return False
    for i in reversed(range(len(scopes[at].node))):
        scopes = _scopes(shrinker.best.proto)
        if at < len(scopes) and i < len(scopes[at].node):
            found |= shrinker.consider(_bypassed(shrinker.best, at, i))
            found = found or shrinker.consider(_constant(shrinker, at, i))
    return found


def _bypassed(best: Reproducer, at: int, i: int) -> Reproducer | None:
    """Without a node; its readers read what it read first."""
    proto = best.draft()
    scope = _scopes(proto)[at]
    node = scope.node[i]
    source, outputs = next((name for name in node.input if name), ""), [name for name in node.output if name]
    del scope.node[i]
    returned = _returned(scope)
    for name in outputs:
        if not source and (name in returned or any(name in reader.input for reader in scope.node)):
            return None
        renamed_reads(scope.node, name, source)
        if isinstance(scope, FunctionProto):
            scope.output[:] = [source if output == name else output for output in scope.output]
        else:
            for output in scope.output:
                output.name = source if output.name == name else output.name
    _drop_dead(scope)
    return tidied(best, proto)


def _constant(shrinker: Shrinker, at: int, i: int) -> Reproducer | None:
    """With zeros in a node's place, if its type is known."""
    best = shrinker.best
    proto = best.draft()
    scope = _scopes(proto)[at]
    if isinstance(scope, FunctionProto):
        return None
    outputs = [name for name in scope.node[i].output if name]
    del scope.node[i]
    if not _fill(shrinker, scope, outputs):
        return None
    return tidied(best, proto)


def _emptied(shrinker: Shrinker, at: int) -> Reproducer | None:
    """A body that returns zeros."""
    best = shrinker.best
    proto = best.draft()
    scopes = _scopes(proto)
    if at >= len(scopes):
        return None
    scope = scopes[at]
    assert isinstance(scope, GraphProto)
    made = {name for node in scope.node for name in node.output}
    del scope.node[:]
    wanted = [value.name for value in scope.output if value.name in made]
    return tidied(best, proto) if _fill(shrinker, scope, wanted) else None


def _fill(shrinker: Shrinker, scope: GraphProto, names: Sequence[str]) -> bool:
    """Zeros as initializers; False if the type of one of them is not known."""
    limits = shrinker.settler.limits
    types = infer_strictly(shrinker.best.model, timeout=limits.timeout, memory=limits.memory) or {}
    for name in names:
        value = _zeros(types.get(name))
        if value is None:
            return False
        scope.initializer.append(numpy_helper.from_array(value, name))
    return True


def _zeros(kind: TypeProto | None) -> np.ndarray | None:
    if kind is None or not kind.tensor_type.HasField("shape"):
        return None
    dtype = dtype_of(kind.tensor_type.elem_type)
    dims = [dim.dim_value if dim.HasField("dim_value") else 1 for dim in kind.tensor_type.shape.dim]
    if dtype is None or dtype.kind == "O" or np.prod(dims) > 4096:
        return None
    return np.zeros(dims, dtype)


def _drop_dead(scope: GraphProto | FunctionProto) -> None:
    """Drop nodes whose outputs nobody reads, as often as that frees others."""
    while True:
        read = _returned(scope) | {name for node in scope.node for name in (*node.input, *captures(node))}
        dead = [i for i, node in enumerate(scope.node) if not read & set(node.output)]
        if not dead:
            return
        for i in reversed(dead):
            del scope.node[i]


def _returned(scope: GraphProto | FunctionProto) -> set[str]:
    return {value if isinstance(value, str) else value.name for value in scope.output}
