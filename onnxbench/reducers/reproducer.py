"""A model that fails, with the values to feed it: what the shrinking passes change."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from onnx import ModelProto, TensorProto, numpy_helper

from onnxbench.core import weights
from onnxbench.core.counts import referred_bytes
from onnxbench.core.model import Model
from onnxbench.core.subgraph import Piece
from onnxbench.core.tensors import is_external, tensors
from onnxbench.core.values import Array, Value

#: A tensor up to this size is written into a candidate when it changes; a larger one stays a reference or stays away.
LARGEST = 16 << 20


@dataclass(frozen=True, slots=True)
class Reproducer:
    """A model that fails, and the values to feed it.

    Attributes:
        model: large weights in it are references into files.
        feeds: a value for each of its inputs.
        origin: the original name of each node of the main graph, which may have another one by now.
    """

    model: Model
    feeds: Mapping[str, Value]
    origin: tuple[str, ...]

    @property
    def proto(self) -> ModelProto:
        return self.model.proto

    def draft(self) -> ModelProto:
        """A copy of the model to change."""
        proto = ModelProto()
        proto.CopyFrom(self.model.proto)
        return proto

    def with_model(self, proto: ModelProto, feeds: Mapping[str, Value] | None = None) -> Reproducer:
        """The same reproducer with another model, and other values if they are given."""
        model = dataclasses.replace(self.model, proto=proto)
        return Reproducer(model, self.feeds if feeds is None else feeds, self.origin)

    def arrays(self) -> dict[str, Array]:
        """The fed tensors by name; sequences and optionals are left out."""
        return {name: value for name, value in self.feeds.items() if isinstance(value, np.ndarray)}

    def fed(self) -> Iterator[tuple[str, int, Array]]:
        """The fed tensors, those in sequences too: the input, the place in its sequence or 0, the tensor."""
        for name, value in self.feeds.items():
            for place, item in enumerate(value if isinstance(value, list) else [value]):
                if isinstance(item, np.ndarray):
                    yield name, place, item

    def piece(self) -> Piece:
        """What an oracle asks about; where its nodes come from is not told."""
        return Piece(self.model, dict(self.feeds), (), ())

    def key(self) -> bytes:
        """What two reproducers of the same content have in common."""
        digest = hashlib.sha256(self.proto.SerializeToString(deterministic=True))
        for name in sorted(self.feeds):
            digest.update(name.encode("utf-8", "surrogateescape") + b"\0")
            _digest(digest.update, self.feeds[name])
        return digest.digest()


def _digest(update: object, value: Value) -> None:
    assert callable(update)
    if isinstance(value, list):
        update(b"[%d]" % len(value))
        for item in value:
            _digest(update, item)
    elif value is None:
        update(b"-")
    else:
        update(f"{value.dtype}{value.shape}".encode())
        update(repr(value.tolist()).encode() if value.dtype == object else np.ascontiguousarray(value).tobytes())


def payload_bytes(tensor: TensorProto) -> int:
    """Bytes of a tensor's elements, about: as many as it has, or refers to."""
    if is_external(tensor):
        return referred_bytes(tensor)
    size: int = tensor.ByteSize()
    return size


def held(proto: ModelProto) -> Iterator[tuple[int, TensorProto]]:
    """The tensors of a model with their place in `core.tensors.tensors`, which outlives changes of their content."""
    return enumerate(tensors(proto))


def put(tensor: TensorProto, value: Array) -> None:
    """Give a tensor other values, in itself, under the name that it has."""
    made = numpy_helper.from_array(np.ascontiguousarray(value).reshape(value.shape), tensor.name)
    made.doc_string = tensor.doc_string
    tensor.CopyFrom(made)


def values_of(reproducer: Reproducer, tensor: TensorProto) -> Array:
    """A tensor's values."""
    return weights.array(reproducer.model, tensor)


def replaced(reproducer: Reproducer, feeds: Mapping[str, Array], held_values: Mapping[int, Array]) -> Reproducer | None:
    """The reproducer with other values for some feeds and, by place, some tensors; None if those would be too large.

    Their shapes stay.
    """
    if any(value.nbytes > LARGEST for value in held_values.values()):
        return None
    proto = reproducer.draft()
    places = list(tensors(proto))
    for place, value in held_values.items():
        put(places[place], value)
    return reproducer.with_model(proto, {**reproducer.feeds, **feeds})


def declare_dims(kind: object, shape: Sequence[int]) -> None:
    """Declare a tensor type's dims."""
    kind.shape.ClearField("dim")  # type: ignore[attr-defined]
    for size in shape:
        kind.shape.dim.add().dim_value = size  # type: ignore[attr-defined]
