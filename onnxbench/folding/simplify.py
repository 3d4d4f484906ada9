"""Simplify a model: compute what is constant, remove what does nothing, until nothing is left to do."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from functools import cache

from onnx import GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto

from onnxbench.core.attributes import subgraphs
from onnxbench.core.counts import count_nodes
from onnxbench.core.model import Model
from onnxbench.core.shapes import Shapes, propagate
from onnxbench.folding import stored
from onnxbench.folding.changes import Changes, apply, set_nodes
from onnxbench.folding.options import FoldOptions
from onnxbench.folding.passes import passes
from onnxbench.folding.report import Folding, Removal
from onnxbench.folding.scope import Scope, is_constant, scopes
from onnxbench.folding.sweep import called_functions, drop_functions, sweep

#: Rounds that a model may take; each opens what the one before has uncovered, such as a branch in a branch.
_ROUNDS = 50
#: Operators with bodies; most models have none of them, and are asked in no time.
_HOLDERS = frozenset({"If", "Loop", "Scan", "SequenceMap"})


def simplify(model: Model, options: FoldOptions | None = None) -> tuple[Model, Folding]:
    """A model with fewer nodes that computes the same, and what was done.

    Nothing is verified here: `folding.run` does.

    Args:
        model: not changed.
        options: what may be done.
    """
    options = options or FoldOptions()
    proto = ModelProto()
    proto.CopyFrom(model.proto)
    folded = dataclasses.replace(model, proto=proto)
    report = Folding(model.label)
    report.nodes_before, report.all_nodes_before = count_nodes(proto)
    called = called_functions(proto)
    if options.freeze_initializers:
        report.removals += freeze(proto)
    report.removals += settle(folded, options)
    report.removals += drop_functions(proto, called)
    report.nodes_after, report.all_nodes_after = count_nodes(proto)
    return folded, report


def settle(model: Model, options: FoldOptions) -> list[Removal]:
    """Let passes do what they find, in place, until none finds anything; what was done."""
    found: list[Removal] = []
    failed: set[tuple[str, str]] = set()
    for _ in range(_ROUNDS):
        done = _round(model, options, failed) or _late(model, options, failed)
        found += done
        if not done:
            break
    return found


def _late(model: Model, options: FoldOptions, failed: set[tuple[str, str]]) -> list[Removal]:
    """What late passes find in the first graph in which they find anything: all others have something to do again then."""
    entries = [entry for entry in passes() if entry.late and entry.name not in options.skip]
    entries = [entry for entry in entries if _holds(model.proto, entry.late)]
    for scope in scopes(model, _walk(model, options), options, failed) if entries else ():
        for entry in entries:
            changes = Changes(scope)
            entry.propose(changes)
            if changes:
                apply(changes)
                return changes.removals
    return []


def _holds(proto: ModelProto, operator: str) -> bool:
    pending = [proto.graph.node, *(function.node for function in proto.functions)]
    while pending:
        for node in pending.pop():
            op_type = node.op_type
            if op_type == operator:
                return True
            if op_type in _HOLDERS:
                pending.extend(body.node for _, body in subgraphs(node))
    return False


def _round(model: Model, options: FoldOptions, failed: set[tuple[str, str]]) -> list[Removal]:
    done: list[Removal] = []

    for scope in scopes(model, _walk(model, options), options, failed):
        changes = _proposed(scope, options.skip)
        if changes:
            apply(changes)
            done += changes.removals
    if model.proto.ir_version >= 4 and "constants" not in options.skip:  # before, each initializer is an input
        done += _store_constants(model.proto.graph)
    if "unused" not in options.skip:
        told = {(removal.where, removal.name) for removal in done if removal.kind == "initializer"}
        done += [
            gone for gone in sweep(model.proto) if gone.kind != "initializer" or (gone.where, gone.name) not in told
        ]
    return done


def _walk(model: Model, options: FoldOptions) -> Callable[[], Shapes]:
    @cache
    def known() -> Shapes:
        return propagate(model, timeout=options.inference_time, memory=options.limits.memory)

    return known


def _proposed(scope: Scope, skip: Sequence[str]) -> Changes:
    changes = Changes(scope)
    for entry in passes():
        if not entry.late and entry.name not in skip:
            entry.propose(changes)
        if changes.hoists:
            break
    return changes


def _store_constants(graph: GraphProto) -> list[Removal]:
    """Turn Constant nodes into initializers, in bodies too; an output keeps the node that makes it."""
    outputs = {value.name for value in graph.output}
    kept: list[NodeProto] = []
    made: list[TensorProto] = []
    done: list[Removal] = []
    for node in graph.node:
        for _, body in subgraphs(node):
            done += _store_constants(body)
        tensor = stored.tensor_of(node) if is_constant(node) and node.output[0] not in outputs else None
        if tensor is None:
            kept.append(node)
        else:
            made.append(stored.named(tensor, node.output[0]))
            name = node.name or node.output[0]
            done.append(Removal("node", name, "Constant", "", "constants", "its value is stored as an initializer"))
    if made:
        set_nodes(graph, kept)
        graph.initializer.extend(made)
    return done


def freeze(proto: ModelProto) -> list[Removal]:
    """Let initializers that are inputs be nothing but initializers, in place; which inputs went."""
    if proto.ir_version < 4:
        return []
    defaults = {tensor.name for tensor in proto.graph.initializer}
    frozen = [value for value in proto.graph.input if value.name in defaults]
    kept = [value for value in proto.graph.input if value.name not in defaults]
    if frozen:
        copies = [ValueInfoProto.FromString(value.SerializeToString()) for value in kept]
        del proto.graph.input[:]
        proto.graph.input.extend(copies)
    return [Removal("input", value.name, "", "", "freeze", "its default was asked to be final") for value in frozen]
