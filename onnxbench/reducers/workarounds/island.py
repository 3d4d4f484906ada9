"""The nodes at fault in float32, inside a model of narrower floats."""

from collections.abc import Mapping, Sequence

from onnx import ModelProto, NodeProto, TensorProto, TypeProto, helper

from onnxbench.reducers.workarounds import Spot, free_name, insert, rewrite

_NARROW = {TensorProto.FLOAT16, TensorProto.BFLOAT16}


@rewrite("island", "the nodes at fault compute in float32, with casts around them")
def island(model: ModelProto, spots: Sequence[Spot], types: Mapping[str, TypeProto]) -> bool:
    """Cast-13 to float32 before, and back after; exact on the way in, rounded once on the way out."""
    changed = False
    for spot in spots:
        narrow = {name: _element(types, name) for name in (*spot.node.input, *spot.node.output)}
        if not any(kind in _NARROW for kind in narrow.values()):
            continue
        for place, name in enumerate(spot.node.input):
            if name and narrow[name] in _NARROW:
                wide = free_name(spot.holder, f"{name}_float32")
                insert(spot.holder, spot.node, _cast(name, wide, TensorProto.FLOAT))
                spot.node.input[place] = wide
        for place, name in enumerate(spot.node.output):
            if name and narrow[name] in _NARROW:
                wide = free_name(spot.holder, f"{name}_float32")
                spot.node.output[place] = wide
                insert(spot.holder, spot.node, _cast(wide, name, narrow[name]), after=True)
        changed = True
    return changed


def _element(types: Mapping[str, TypeProto], name: str) -> int:
    kind = types.get(name)
    return kind.tensor_type.elem_type if kind is not None else 0


def _cast(source: str, target: str, to: int) -> NodeProto:
    return helper.make_node("Cast", [source], [target], name=f"{target}_cast", to=to)
