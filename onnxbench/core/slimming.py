"""Models without their weights: a slim copy refers to the file where the bytes lie already.

Candidates cut from a slim model share its weights, on disk and in the page cache, and are a few kilobytes each.
"""

from __future__ import annotations

import contextlib
import dataclasses
import mmap
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import numpy as np
from onnx import AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto, TensorProto

from onnxbench.core import formats, scratch, wire
from onnxbench.core.atomic import unwritable
from onnxbench.core.external import MARK, Weight, is_marked, locate, read, refer, stamp
from onnxbench.core.tensors import is_external, tensors
from onnxbench.errors import ModelError, escape

if TYPE_CHECKING:
    from onnxbench.core.model import Model

_Places = dict[tuple[int, bytes, bytes], list[int]]


def slim(model: Model, threshold: int = 1024) -> Model:
    """A copy whose embedded weights above `threshold` bytes are references into files; `fatten` is the inverse.

    References point into the model's own .onnx file where that still holds the same bytes, else into a temporary file
    that lives as long as the process. They stay valid while that file does not change; `locate` notices if it did. The
    copy's folder is the common parent of all files it refers to, free of links: ONNX Runtime opens each from there.

    Initializers and values of Constant nodes are slimmed; tensors in other attributes stay, for operators read those
    themselves.

    Raises:
        ModelError: OB304 if external data that the model had before is not to be had.
    """
    proto = ModelProto()
    proto.CopyFrom(model.proto)
    heavy = [tensor for tensor in _sharable(proto) if _is_heavy(tensor, threshold)]
    external = [tensor for tensor in tensors(proto) if is_external(tensor)]
    if not heavy and all(map(is_marked, external)):
        return dataclasses.replace(model, proto=proto)
    # Strictly before anything is rewritten: where the model's own external tensors lie.
    found = [(tensor, locate(model, tensor)) for tensor in external]
    seen = _stamps(model)
    found += zip(heavy, _find_or_write(model, heavy, threshold), strict=True)
    return _referring(model, proto, found, seen)


def load_slim(source: str | os.PathLike[str], *, stdin: BinaryIO | None = None, threshold: int = 1024) -> Model:
    """What `slim(load(source))` gives, without reading the weights of a .onnx file.

    Raises:
        ModelError: OB301 if there is no such file, OB302 if it holds no model, OB304 if its external data is not to be had.
    """
    from onnxbench.core.model import load

    try:
        made = _read_slim(Path(source), threshold)
    except (OSError, ValueError, ModelError):
        made = None
    return slim(load(source, stdin=stdin), threshold) if made is None else made


def _read_slim(given: Path, threshold: int) -> Model | None:
    """The slim copy of the model in a .onnx file; None if that cannot be made in passing, or there is something to tell."""
    from onnxbench.core.model import Model

    mark = os.urandom(16)
    if formats.of_suffix(given) != "protobuf" or not given.is_file() or given.stat().st_size > formats.LIMIT:
        return None
    path, file = given.absolute(), given.resolve()
    seen = stamp(file)
    with _mapped(file) as view:
        try:
            short, places = wire.without_payloads(view, threshold, mark)
        except (wire.Malformed, RecursionError):  # here, or it would keep views of what is to be closed
            return None
        proto = formats.parse(short, "protobuf", escape(given.name))
        heavy = [(tensor, _number(tensor)) for tensor in _sharable(proto) if _is_bare(tensor, mark)]
        for tensor, _ in heavy:
            tensor.ClearField("raw_data")
        for tensor in tensors(proto):  # those that operators read themselves
            if tensor.raw_data.startswith(mark):
                offset, length = places[_number(tensor)]
                tensor.raw_data = bytes(view[offset : offset + length])
    if mark in proto.SerializeToString() or stamp(file) != seen:  # where no tensor is looked for
        return None
    model = Model(proto, folder=path.parent, path=path, label=escape(given.name))
    if not heavy and not any(map(is_external, tensors(proto))):
        return model
    found = [(tensor, locate(model, tensor)) for tensor in tensors(proto) if is_external(tensor)]
    found += [(tensor, Weight(file, *places[number])) for tensor, number in heavy]
    return _referring(model, proto, found, {file: seen})


def _is_bare(tensor: TensorProto, mark: bytes) -> bool:
    return not is_external(tensor) and not tensor.external_data and tensor.raw_data.startswith(mark)


def _number(tensor: TensorProto) -> int:
    return int.from_bytes(tensor.raw_data[-4:], "big")


def _stamps(model: Model) -> dict[Path, str]:
    """The stamp of the file that a model was read from, if it is there yet."""
    with contextlib.suppress(OSError, ValueError):
        if model.path is not None:
            return {model.path.resolve(): stamp(model.path)}
    return {}


def _referring(
    model: Model, proto: ModelProto, found: list[tuple[TensorProto, Weight]], seen: Mapping[Path, str]
) -> Model:
    """The model with its tensors as references to where they lie. It takes over `proto`.

    Files that were read bear the stamp from before: what changes in between must be noticed.
    """
    folder = Path(os.path.commonpath([weight.file.parent for _, weight in found]))
    try:
        stamps = {file: seen.get(file) or stamp(file) for file in {weight.file for _, weight in found}}
    except OSError as error:
        raise ModelError("OB304", f"a file with weights of {model.label} has gone: {error.strerror}") from error
    for tensor, weight in found:
        if not is_external(tensor):
            _mark(tensor, stamps[weight.file])
        refer(tensor, weight, folder)
    # A message keeps the memory of fields it once had; a copy of it does not.
    lean = ModelProto()
    lean.CopyFrom(proto)
    return dataclasses.replace(model, proto=lean, folder=folder)


def fatten(model: Model) -> Model:
    """A copy that holds its weights itself again; tensors that were external before `slim` stay external.

    Raises:
        ModelError: OB304 if the file that a reference points into has changed or gone.
    """
    proto = ModelProto()
    proto.CopyFrom(model.proto)
    for tensor in tensors(proto):
        if is_external(tensor) and is_marked(tensor):
            embed(tensor, read(locate(model, tensor)))
    return dataclasses.replace(model, proto=proto)


def embed(tensor: TensorProto, payload: bytes) -> None:
    """Put a referenced tensor's bytes into it, leaving nothing of the reference."""
    marks = [entry for entry in tensor.metadata_props if entry.key == MARK]
    had_location = any(entry.value.endswith(":explicit") for entry in marks)
    for entry in marks:
        tensor.metadata_props.remove(entry)
    del tensor.external_data[:]
    tensor.ClearField("data_location")
    if had_location:
        tensor.data_location = TensorProto.DEFAULT
    tensor.raw_data = payload


def _mark(tensor: TensorProto, value: str) -> None:
    explicit = ":explicit" if tensor.HasField("data_location") else ""
    tensor.ClearField("raw_data")
    tensor.metadata_props.add(key=MARK, value=value + explicit)


def _is_heavy(tensor: TensorProto, threshold: int) -> bool:
    return not is_external(tensor) and not tensor.external_data and len(tensor.raw_data) > threshold


def _sharable(model: ModelProto) -> Iterator[TensorProto]:
    """Initializers and Constant values, bodies and functions included: what runtimes accept as external."""
    graphs: list[GraphProto | FunctionProto] = [model.graph, *model.functions]
    while graphs:
        graph = graphs.pop()
        if isinstance(graph, GraphProto):
            yield from graph.initializer
        for node in graph.node:
            for attribute in node.attribute:
                kind = attribute.type
                if kind == AttributeProto.TENSOR and _is_constant(node):
                    yield attribute.t
                elif kind == AttributeProto.GRAPH:
                    graphs.append(attribute.g)
                elif kind == AttributeProto.GRAPHS:
                    graphs.extend(attribute.graphs)


def _is_constant(node: NodeProto) -> bool:
    return node.op_type == "Constant" and node.domain in ("", "ai.onnx")


def _find_or_write(model: Model, heavy: Sequence[TensorProto], threshold: int) -> list[Weight]:
    """Where each tensor's bytes lie: in the model's file if it still holds them, else in a temporary one."""
    found = _find_in_file(model, heavy, threshold)
    missing = [tensor for tensor, weight in zip(heavy, found, strict=True) if weight is None]
    written = iter(_write_temporary(missing) if missing else [])
    return [weight or next(written) for weight in found]


def _find_in_file(model: Model, heavy: Sequence[TensorProto], threshold: int) -> list[Weight | None]:
    nowhere: list[Weight | None] = [None] * len(heavy)
    if model.path is None or not heavy or formats.of_suffix(model.path) != "protobuf" or not model.path.is_file():
        return nowhere
    file = model.path.resolve()
    with contextlib.suppress(OSError, ValueError), _mapped(file) as view:  # it may go meanwhile
        places = _places(view, threshold)
        return [_find(view, places, file, tensor.raw_data) for tensor in heavy]
    return nowhere


@contextlib.contextmanager
def _mapped(file: Path) -> Iterator[memoryview]:
    """The bytes of a file that is not empty."""
    with (
        file.open("rb") as opened,
        mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as mapped,
        memoryview(mapped) as view,
    ):
        yield view


def _places(view: memoryview, threshold: int) -> _Places:
    """The payloads in a serialized model, by length and both ends; none if it is no model any more."""
    places: _Places = {}
    try:
        for offset, length in wire.payloads(view, threshold):
            places.setdefault(_key(view[offset : offset + length]), []).append(offset)
    except wire.Malformed:
        return {}
    return places


def _find(view: memoryview, places: _Places, file: Path, payload: bytes) -> Weight | None:
    """The place whose bytes equal `payload`: names may repeat and the model may have been changed, bytes do not lie."""
    wanted = np.frombuffer(payload, np.uint8)
    for offset in places.get(_key(memoryview(payload)), [])[:64]:
        if np.array_equal(np.frombuffer(view, np.uint8, len(payload), offset), wanted):
            return Weight(file, offset, len(payload))
    return None


def _key(payload: memoryview) -> tuple[int, bytes, bytes]:
    return len(payload), bytes(payload[:32]), bytes(payload[-32:])


def _write_temporary(heavy: Sequence[TensorProto]) -> list[Weight]:
    file = scratch.until_exit() / "weights.data"
    places: list[tuple[int, int]] = []
    try:
        with file.open("wb") as opened:
            for tensor in heavy:
                opened.seek(-opened.tell() % 64, os.SEEK_CUR)
                places.append((opened.tell(), opened.write(tensor.raw_data)))
    except OSError as error:
        raise unwritable(file, error) from None
    return [Weight(file, offset, length) for offset, length in places]
