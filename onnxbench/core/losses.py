"""What a text format would lose, found by writing, reading and comparing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import onnx.helper
import onnx.numpy_helper
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from onnx import GraphProto, ModelProto, TensorProto

from onnxbench.core.formats import Format, dump, parse
from onnxbench.core.tensors import is_external, tensors, type_name
from onnxbench.errors import ModelError

#: How to say in words what a field holds; other fields are named as they are.
_WORDS = {
    "NodeProto.doc_string": "doc strings of nodes",
    "GraphProto.doc_string": "doc strings of graphs",
    "ValueInfoProto.doc_string": "doc strings of values",
    "TensorProto.doc_string": "doc strings of tensors",
    "AttributeProto.doc_string": "doc strings of attributes",
    "FunctionProto.doc_string": "doc strings of functions",
    "NodeProto.metadata_props": "metadata of nodes",
    "GraphProto.metadata_props": "metadata of graphs",
    "ValueInfoProto.metadata_props": "metadata of values",
    "TensorProto.metadata_props": "metadata of tensors",
    "FunctionProto.metadata_props": "metadata of functions",
    "ModelProto.metadata_props": "metadata of the model",
    "GraphProto.quantization_annotation": "quantization annotations",
    "GraphProto.sparse_initializer": "sparse initializers",
    "TypeProto.denotation": "denotations of types",
    "Dimension.denotation": "denotations of dimensions",
    "ModelProto.training_info": "training graphs",
    "GraphProto.name": "names of graphs",
}


def losses(proto: ModelProto, form: Format, label: str) -> list[str]:
    """What would be gone or changed after writing `proto` in a format and reading it back; empty if nothing.

    Tensors count by their values: raw bytes and typed lists are the same.
    """
    if form == "protobuf":
        return []
    try:
        back = parse(dump(proto, form, label), form, label)
    except ModelError as error:
        kinds = _unreadable_types(proto, form)
        if kinds:
            return [f"values of {kind} tensors" for kind in kinds]
        return [f"everything, for it does not read back ({error.message})"]
    found = Counter(_differences(proto, back))
    return [_WORDS.get(key, key) + (f" ({count})" if count > 1 else "") for key, count in sorted(found.items())]


def _differences(before: Message, after: Message) -> Iterator[str]:
    """The fields, as 'Message.field', in which two messages differ. One that is absent equals its default."""
    if isinstance(before, TensorProto) and isinstance(after, TensorProto) and _same_values(before, after):
        before, after = _without_values(before), _without_values(after)
    for field in before.DESCRIPTOR.fields:
        ours, theirs = getattr(before, field.name), getattr(after, field.name)
        if field.type != FieldDescriptor.TYPE_MESSAGE:
            if ours != theirs and repr(ours) != repr(theirs):  # a NaN equals none, but reads as "nan"
                yield f"{before.DESCRIPTOR.name}.{field.name}"
        elif not field.is_repeated:
            if before.HasField(field.name) and not after.HasField(field.name):
                yield f"{before.DESCRIPTOR.name}.{field.name}"
            elif before.HasField(field.name):
                yield from _differences(ours, theirs)
        elif len(ours) != len(theirs):
            yield f"{before.DESCRIPTOR.name}.{field.name}"
        else:
            for one, other in zip(ours, theirs, strict=True):
                yield from _differences(one, other)


def _same_values(before: TensorProto, after: TensorProto) -> bool:
    if is_external(before) or is_external(after) or before.dims != after.dims or before.data_type != after.data_type:
        return False
    try:
        ours, theirs = onnx.numpy_helper.to_array(before), onnx.numpy_helper.to_array(after)
    except (ValueError, TypeError):  # invalid tensors: their fields are compared as they are
        return False
    return bool((ours == theirs).all()) if ours.dtype == object else ours.tobytes() == theirs.tobytes()


def _without_values(tensor: TensorProto) -> TensorProto:
    kept = TensorProto()
    kept.CopyFrom(tensor)
    for field in ("raw_data", "float_data", "int32_data", "string_data", "int64_data", "double_data", "uint64_data"):
        kept.ClearField(field)
    return kept


def _unreadable_types(proto: ModelProto, form: Format) -> list[str]:
    """The element types among a model's tensors that a format writes but cannot read."""
    types = sorted({tensor.data_type for tensor in tensors(proto) if not is_external(tensor)})
    return [type_name(kind) for kind in types if _is_unreadable(kind, form)]


def _is_unreadable(data_type: int, form: Format) -> bool:
    try:
        count = 2 if data_type in (TensorProto.COMPLEX64, TensorProto.COMPLEX128) else 1
        tensor = TensorProto(name="w", data_type=data_type, dims=[1])
        values = [b"a"] if data_type == TensorProto.STRING else [0] * count
        getattr(tensor, onnx.helper.tensor_dtype_to_field(data_type)).extend(values)
        small = ModelProto(ir_version=10, graph=GraphProto(name="g", initializer=[tensor]))
        small.opset_import.add(domain="", version=21)
        parse(dump(small, form, "a probe"), form, "a probe")
    except (ModelError, KeyError, TypeError):
        return True
    return False
