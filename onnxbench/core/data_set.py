"""Read and write values as protobuf files: the layout of ONNX test data sets."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from google.protobuf.message import DecodeError
from onnx import OptionalProto, SequenceProto, TensorProto, TypeProto, numpy_helper

from onnxbench.core.graph import GraphView
from onnxbench.core.sizes import fed_inputs
from onnxbench.core.values import Value, with_str
from onnxbench.errors import ModelError, UsageError, quote

_Proto = TensorProto | SequenceProto | OptionalProto


def write_data_set(
    folder: Path, inputs: Mapping[str, Value], outputs: Mapping[str, Value] | None, view: GraphView
) -> None:
    """Write `input_i.pb` and `output_i.pb` in graph order; each file also holds its name.

    Files of an earlier data set in the folder are removed: a stale `input_7.pb` would be read back.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for stale in folder.iterdir():
        if re.fullmatch(r"(in|out)put_\d+\.pb", stale.name):
            stale.unlink()
    _write(folder, "input", inputs, view.inputs, view)
    _write(folder, "output", outputs or {}, view.outputs, view)


def _write(folder: Path, stem: str, values: Mapping[str, Value], order: Iterable[str], view: GraphView) -> None:
    names = [name for name in order if name in values]
    names += [name for name in values if name not in names]
    for i, name in enumerate(names):
        proto = to_proto(values[name], view.types.get(name), name)
        (folder / f"{stem}_{i}.pb").write_bytes(proto.SerializeToString())


def read_data_set(folder: Path, view: GraphView, stem: str = "input") -> dict[str, Value]:
    """The inputs of a data set: by the names in the files if all are inputs, else by their numbers in graph order.

    Raises:
        ModelError: OB307 for a file that cannot be read.
        UsageError: OB206 if there are more files than inputs.
    """
    files = sorted(
        (int(m[1]), path) for path in folder.iterdir() if (m := re.fullmatch(rf"{stem}_(\d+)\.pb", path.name))
    )
    named = [name for _, path in files if (name := _stored_name(path)) in view.inputs]
    if len(set(named)) == len(files):
        return {name: read_pb(path, view.inputs[name].type) for name, (_, path) in zip(named, files, strict=True)}
    order = list(fed_inputs(view))
    if files and files[-1][0] >= len(order):
        raise UsageError("OB206", f"{quote(files[-1][1].name)} is one too many: the model has {len(order)} {stem}s")
    return {order[i]: read_pb(path, view.inputs[order[i]].type) for i, path in files}


def read_pb(path: Path, declared: TypeProto) -> Value:
    """The value in a file, which must be of the declared kind.

    Raises:
        ModelError: OB307 if it is not, or is damaged.
    """
    proto: _Proto = TensorProto()
    if declared.HasField("sequence_type"):
        proto = SequenceProto()
    elif declared.HasField("optional_type"):
        proto = OptionalProto()
    try:
        proto.ParseFromString(path.read_bytes())
        value = from_proto(proto)
    except (DecodeError, ValueError, TypeError, KeyError, OSError) as fault:
        text = f"{quote(str(path))} is no readable {type(proto).__name__}: {fault}"
        raise ModelError("OB307", text) from None
    return value


def to_proto(value: Value, declared: TypeProto | None, name: str = "") -> _Proto:
    """The protobuf of a value; the declared type tells an optional from what it holds."""
    if value is None or (declared is not None and declared.WhichOneof("value") == "optional_type"):
        return _optional(value, declared, name)
    if isinstance(value, list):
        return _sequence(value, name)
    return numpy_helper.from_array(with_str(value), name)


def _sequence(items: list[Value], name: str) -> SequenceProto:
    nested = bool(items) and isinstance(items[0], list)
    made = SequenceProto(name=name, elem_type=SequenceProto.SEQUENCE if nested else SequenceProto.TENSOR)
    for item in items:
        proto = to_proto(item, None)
        field: Any = made.sequence_values if isinstance(proto, SequenceProto) else made.tensor_values
        field.append(proto)
    return made


def _optional(value: Value, declared: TypeProto | None, name: str) -> OptionalProto:
    """An empty one keeps the kind of its element and holds none of it."""
    inner = declared.optional_type.elem_type if declared is not None and declared.HasField("optional_type") else None
    listed = isinstance(value, list) or (inner is not None and inner.HasField("sequence_type"))
    made = OptionalProto(name=name, elem_type=OptionalProto.SEQUENCE if listed else OptionalProto.TENSOR)
    if isinstance(value, list):
        made.sequence_value.CopyFrom(_sequence(value, ""))
    elif value is not None:
        made.tensor_value.CopyFrom(numpy_helper.from_array(with_str(value)))
    return made


def from_proto(proto: _Proto) -> Value:
    """The value that a protobuf holds."""
    if isinstance(proto, TensorProto):
        if proto.data_location == TensorProto.EXTERNAL:
            raise ValueError("its data lies in another file")
        return with_str(numpy_helper.to_array(proto))
    if isinstance(proto, SequenceProto):
        nested = proto.elem_type == SequenceProto.SEQUENCE
        return [from_proto(item) for item in (proto.sequence_values if nested else proto.tensor_values)]
    readers: dict[str, Callable[[], Value]] = {
        "tensor_value": lambda: from_proto(proto.tensor_value),
        "sequence_value": lambda: from_proto(proto.sequence_value),
        "optional_value": lambda: from_proto(proto.optional_value),
    }
    return next((read() for field, read in readers.items() if proto.HasField(field)), None)


def _stored_name(path: Path) -> str:
    """The name inside a file, whatever kind it is; "" if there is none to be had."""
    data = path.read_bytes()
    for kind in (TensorProto, SequenceProto, OptionalProto):
        try:
            name = str(kind.FromString(data).name)
        except (DecodeError, ValueError):
            continue
        if name:
            return name
    return ""
