"""How far a node, or all nodes that were refused, can go."""

from __future__ import annotations

from onnx import NodeProto

from onnxbench.converters import header, schemas
from onnxbench.converters.engine import Engine, is_experiment
from onnxbench.converters.facts import Facts
from onnxbench.converters.names import copied
from onnxbench.converters.site import Refused
from onnxbench.converters.storage import Storage
from onnxbench.core.graph import plain_domain


def reaches(engine: Engine, node: NodeProto, start: int, end: int, index: int, facts: Facts) -> bool:
    """Whether a node of an opset has a form in another."""
    try:
        engine.walk(copied(node), start, end, facts, Storage(True, engine.names), index)
    except Refused:
        return False
    return True


def furthest(engine: Engine) -> dict[str, int]:
    """The opsets nearest to the targets that every node has a form in, by domain, without those that stay where they are."""
    before = header.opsets_of(engine.source.proto)
    found = {}
    for domain, target in engine.options.targets.items():
        start = before.get(domain, target)
        stuck = [entry for entry in engine.stuck if plain_domain(entry[0].domain) == domain]
        if start == target or any(not _may_move(engine, node, opsets) for node, _, _, opsets in stuck):
            continue
        reached, back = target, 1 if target < start else -1
        for node, index, facts, opsets in stuck:
            while reached != start and not reaches(engine, node, opsets[domain], reached, index, facts):
                reached += back
        if reached != start:
            found[domain] = reached
    return found


def _may_move(engine: Engine, node: NodeProto, opsets: dict[str, int]) -> bool:
    """Not a call of a function that has the name of an operator, nor one of no operator at all."""
    domain, op = plain_domain(node.domain), node.op_type
    start = opsets[domain]
    return not engine.is_call(node) and (
        schemas.schema(domain, op, start) is not None or is_experiment(domain, op, start)
    )
