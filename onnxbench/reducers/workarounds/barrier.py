"""A node that changes nothing, between nodes that a runtime must not see as neighbours."""

from collections.abc import Mapping, Sequence

from onnx import ModelProto, NodeProto, TypeProto, helper

from onnxbench.reducers.workarounds import Spot, free_name, insert, rewrite


@rewrite("barrier", "a node that changes nothing (Concat of one, Max of one) stands between the nodes at fault")
def barrier(model: ModelProto, spots: Sequence[Spot], types: Mapping[str, TypeProto]) -> bool:
    """Concat-13 of one tensor is that tensor, and Max-13 of one too, which also takes scalars; no runtime that we know
    removes them, and the result is verified anyway.
    """
    made = {name: spot for spot in spots for name in spot.node.output if name}
    changed = False
    for spot in spots:
        for place, name in enumerate(spot.node.input):
            source = made.get(name)
            if source is None or source.holder is not spot.holder:
                continue
            between = free_name(spot.holder, f"{name}_barrier")
            insert(spot.holder, spot.node, _nothing(name, between, types.get(name)))
            spot.node.input[place] = between
            changed = True
    return changed


def _nothing(name: str, between: str, kind: TypeProto | None) -> NodeProto:
    tensor = kind.tensor_type if kind is not None else None
    if tensor is not None and tensor.HasField("shape") and not tensor.shape.dim:
        return helper.make_node("Max", [name], [between], name=between)
    return helper.make_node("Concat", [name], [between], name=between, axis=0)
