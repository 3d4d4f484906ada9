"""Whether a candidate makes sense, and what its outputs are: shape inference, before a runtime is asked."""

from __future__ import annotations

from dataclasses import dataclass

from onnx import ModelProto, TypeProto

from onnxbench.core.types import infer_strictly
from onnxbench.reducers.reproducer import Reproducer
from onnxbench.runtimes.base import Limits


@dataclass(slots=True)
class Settler:
    """Declares the outputs of candidates anew, and refuses those that an operator's own rule refuses.

    Attributes:
        limits: of one inference.
        strict: whether the original has types at all; where inference already refuses it, nothing is refused for that.
    """

    limits: Limits
    strict: bool = True

    def begin(self, start: Reproducer) -> None:
        """Look at the original, which may break the rules itself."""
        self.strict = self._infer(_undeclared(start.proto), start) is not None

    def settle(self, candidate: Reproducer) -> Reproducer | None:
        """The candidate with its outputs declared as inference has them; None if it makes no sense."""
        if not self.strict:
            return candidate
        found = self._infer(_undeclared(candidate.proto), candidate)
        if found is None:
            return None
        proto = candidate.draft()
        for output in proto.graph.output:
            inferred = found.get(output.name)
            if inferred is not None and not _agree(output.type, inferred):
                output.type.CopyFrom(_with_rank(inferred))
        return candidate.with_model(proto)

    def _infer(self, proto: ModelProto, like: Reproducer) -> dict[str, TypeProto] | None:
        limits = self.limits
        seconds = limits.timeout / 3 if limits.timeout is not None else None
        return infer_strictly(like.with_model(proto).model, timeout=seconds, memory=limits.memory)


def _undeclared(proto: ModelProto) -> ModelProto:
    """A copy whose outputs declare no shape, which might be one of before."""
    copy = ModelProto()
    copy.CopyFrom(proto)
    for output in copy.graph.output:
        if output.type.HasField("tensor_type"):
            output.type.tensor_type.ClearField("shape")
    return copy


def _agree(declared: TypeProto, inferred: TypeProto) -> bool:
    """Whether a declared type may stay: nothing that is inferred contradicts it, or makes it more exact."""
    if declared.WhichOneof("value") != "tensor_type" or inferred.WhichOneof("value") != "tensor_type":
        return declared == inferred
    ours, theirs = declared.tensor_type, inferred.tensor_type
    if theirs.elem_type not in (0, ours.elem_type):
        return False
    if not theirs.HasField("shape"):
        return True
    if not ours.HasField("shape") or len(ours.shape.dim) != len(theirs.shape.dim):
        return False
    pairs = zip(ours.shape.dim, theirs.shape.dim, strict=True)
    return all(not b.HasField("dim_value") or a.dim_value == b.dim_value for a, b in pairs)


def _with_rank(inferred: TypeProto) -> TypeProto:
    """The type without the names that inference makes up for what it does not know."""
    kind = TypeProto()
    kind.CopyFrom(inferred)
    for dim in kind.tensor_type.shape.dim:
        if dim.dim_param.startswith("unk__"):
            dim.ClearField("dim_param")
    return kind
