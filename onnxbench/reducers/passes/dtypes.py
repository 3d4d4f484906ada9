"""Common element types in the place of rare ones, in the whole model at once."""

from __future__ import annotations

from collections.abc import Mapping

from onnx import AttributeProto, ModelProto, TensorProto, TypeProto

from onnxbench.core.attributes import all_graphs, all_nodes
from onnxbench.core.values import dtype_of, tensor_type
from onnxbench.reducers.passes import shrink_pass
from onnxbench.reducers.reproducer import LARGEST, Reproducer, held, payload_bytes, put, values_of
from onnxbench.reducers.shrink import Shrinker

_FLOATS: dict[int, int] = dict.fromkeys(
    (TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.BFLOAT16), TensorProto.FLOAT
)
_WHOLES: dict[int, int] = dict.fromkeys((TensorProto.INT32, TensorProto.INT16), TensorProto.INT64)
#: Attributes that name an element type.
_NAMING = frozenset({"to", "dtype", "output_dtype", "stash_type"})


@shrink_pass("dtypes", "make float64, float16 and bfloat16 float32, and int32 int64, in the whole model", 80)
def run(shrinker: Shrinker) -> None:
    """Both at once, then one."""
    for change in ({**_FLOATS, **_WHOLES}, _FLOATS, _WHOLES):
        shrinker.consider(_converted(shrinker.best, change))


def _converted(best: Reproducer, change: Mapping[int, int]) -> Reproducer | None:
    proto = best.draft()
    for _, tensor in held(proto):
        if tensor.data_type in change:
            if payload_bytes(tensor) > LARGEST:
                return None
            put(tensor, values_of(best, tensor).astype(dtype_of(change[tensor.data_type])))
    for kind in _types(proto):
        tensor_kind = tensor_type(kind)
        if tensor_kind is not None:
            tensor_kind.elem_type = change.get(tensor_kind.elem_type, tensor_kind.elem_type)
    for node in all_nodes(proto):
        for attribute in node.attribute:
            if attribute.name in _NAMING and attribute.type == AttributeProto.INT:
                attribute.i = change.get(attribute.i, attribute.i)
    dtypes = {dtype_of(old): dtype_of(new) for old, new in change.items()}
    feeds = {name: array.astype(dtypes[array.dtype]) for name, array in best.arrays().items() if array.dtype in dtypes}
    return best.with_model(proto, {**best.feeds, **feeds})


def _types(proto: ModelProto) -> list[TypeProto]:
    found = [v.type for graph in all_graphs(proto) for v in (*graph.input, *graph.output, *graph.value_info)]
    return found + [value.type for function in proto.functions for value in function.value_info]
