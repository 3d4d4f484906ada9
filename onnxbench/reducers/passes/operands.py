"""Give operators less to read: optional inputs, and inputs beyond the first of those that take any number."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from onnx import ModelProto, NodeProto, defs

from onnxbench.core.attributes import all_nodes
from onnxbench.core.graph import opset_imports, plain_domain
from onnxbench.reducers.edits import node_at, tidied
from onnxbench.reducers.passes import shrink_pass
from onnxbench.reducers.reproducer import Reproducer
from onnxbench.reducers.shrink import Shrinker

Operand = tuple[int, int]


@shrink_pass("operands", "drop optional inputs of nodes, such as a bias, and all but one of any number", 20)
def run(shrinker: Shrinker) -> None:
    """All at once, then by halves."""
    shrinker.lump(list(_optional(shrinker.best.proto)), _without)


def _optional(proto: ModelProto) -> Iterator[Operand]:
    """Place of the node and of the input."""
    opsets = opset_imports(proto.opset_import)
    for place, node in enumerate(all_nodes(proto)):
        schema = schema_of(node, opsets.get(plain_domain(node.domain), 1))
        if schema is None:
            continue
        for i, name in enumerate(node.input):
            formal = schema.inputs[min(i, len(schema.inputs) - 1)] if schema.inputs else None
            if formal is None or not name:
                continue
            variadic = formal.option == defs.OpSchema.FormalParameterOption.Variadic and i >= len(schema.inputs)
            if variadic or formal.option == defs.OpSchema.FormalParameterOption.Optional:
                yield place, i


def schema_of(node: NodeProto, version: int) -> defs.OpSchema | None:
    """The operator's definition; None for one that this onnx does not know."""
    try:
        return defs.get_schema(node.op_type, version, plain_domain(node.domain))
    except (defs.SchemaError, TypeError):  # TypeError: an opset that is no C int
        return None


def _without(best: Reproducer, operands: Sequence[Operand]) -> Reproducer:
    proto = best.draft()
    for place in {place for place, _ in operands}:
        node = node_at(proto, place)
        gone = {i for at, i in operands if at == place}
        node.input[:] = ["" if i in gone else name for i, name in enumerate(node.input)]
        while node.input and not node.input[-1]:
            del node.input[-1]
    return tidied(best, proto)
