"""Let a Loop that runs exactly once be an If that is always taken; `branches` puts that in its place."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import GraphProto, NodeProto, TensorProto, ValueInfoProto, helper

from onnxbench.core.attributes import subgraphs
from onnxbench.core.sizes import lone_shape
from onnxbench.folding import stored
from onnxbench.folding.changes import Changes
from onnxbench.folding.constancy import refers
from onnxbench.folding.naming import free_name
from onnxbench.folding.passes import fold_pass
from onnxbench.folding.scope import Scope, is_default_domain


@fold_pass("loops", "open a Loop that runs exactly once", rank=4)
def loops(changes: Changes) -> None:
    """Loop-1: with a trip count of 1 and a condition that holds at first, the body runs once, in iteration 0.

    What the body carries is what the node returns, and each scan output gets a first axis of size 1.
    """
    scope = changes.scope
    for node in scope.view.nodes:
        if node.proto.op_type != "Loop" or not is_default_domain(node.proto) or not changes.is_open(node):
            continue
        if refers(node.proto) or not _runs_once(scope, node.proto):
            continue
        (_, body), *_ = subgraphs(node.proto)
        carried = list(node.proto.input[2:])
        if len(body.input) != 2 + len(carried) or any(scope.element(name) is None for name in carried):
            continue  # Identity takes sequences only from opset 14 on
        taken = scope.names_in_use()
        truth = f"{node.outputs[0]}_once"
        if truth in taken or not all(
            scope.can_hold(truth, element) for element in (TensorProto.INT64, TensorProto.BOOL)
        ):
            continue
        branch = _branch(body, carried, scope.opset(), taken)
        opened = helper.make_node("If", [truth], node.proto.output, name=node.proto.name)
        opened.doc_string = node.proto.doc_string
        opened.metadata_props.extend(node.proto.metadata_props)
        opened.attribute.extend(helper.make_attribute(name, branch) for name in ("then_branch", "else_branch"))
        changes.store(truth, stored.tensor(np.asarray(True), truth))
        changes.replace(node, opened, "loops", "runs exactly once")


def _runs_once(scope: Scope, node: NodeProto) -> bool:
    if len(node.input) < 2 or not node.input[0] or scope.numbers(node.input[0]) != [1]:
        return False
    return not node.input[1] or scope.numbers(node.input[1]) == [1]


def _branch(body: GraphProto, carried: Sequence[str], opset: int, taken: set[str]) -> GraphProto:
    """The body as a branch, which has no inputs: what they would be is made in it."""
    branch = GraphProto()
    branch.CopyFrom(body)
    del branch.input[:], branch.output[:], branch.node[:]
    iteration, condition, *states = body.input
    names = (value.name for value in states)
    branch.node.append(_first(iteration, 0, np.int64))
    branch.node.append(_first(condition, 1, np.bool_))
    branch.node.extend(
        helper.make_node("Identity", [source], [name]) for source, name in zip(carried, names, strict=True)
    )
    branch.node.extend(body.node)
    for place, output in enumerate(body.output[1:]):
        name = free_name(output.name, taken)  # one value may be returned twice, and an outer one handed on as it is
        is_carried = place < len(carried)
        made = [helper.make_node("Identity", [output.name], [name])]
        branch.node.extend(made if is_carried else _unsqueeze(output.name, name, opset, taken))
        branch.output.append(ValueInfoProto(name=name))
    return branch


def _first(declared: ValueInfoProto, value: int, dtype: type[np.generic]) -> NodeProto:
    return stored.node(stored.tensor(np.full(lone_shape(declared.type), value, dtype), ""), declared.name)


def _unsqueeze(source: str, target: str, opset: int, taken: set[str]) -> list[NodeProto]:
    if opset < 13:
        return [helper.make_node("Unsqueeze", [source], [target], axes=[0])]
    axes = free_name(f"{target}_axes", taken)
    held = stored.node(stored.tensor(np.asarray([0], np.int64), ""), axes)
    return [held, helper.make_node("Unsqueeze", [source, axes], [target])]
