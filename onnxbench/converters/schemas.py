"""The versions of an operator, and the steps between them, as the installed onnx knows them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from onnx import TensorProto, TypeProto
from onnx.defs import OpSchema, SchemaError, get_schema, onnx_opset_version

#: Newest opset whose steps this release was written for: what onnx adds later shows in a test first.
REVIEWED = {"": 28, "ai.onnx.ml": 5}


@dataclass(frozen=True, slots=True)
class Step:
    """From one version of an operator to the next, up or down.

    Attributes:
        old: where the node stands.
        new: where it goes; None below the operator's introduction.
        opset: the opset that nodes of the new form are valid at.
    """

    old: OpSchema
    new: OpSchema | None
    opset: int

    @property
    def key(self) -> tuple[str, str, int, int]:
        """Domain, operator, both versions; 0 stands for below the introduction."""
        return self.old.domain, self.old.name, self.old.since_version, self.new.since_version if self.new else 0

    @property
    def is_up(self) -> bool:
        return self.new is not None and self.new.since_version > self.old.since_version

    def sentence(self) -> str:
        """How reports name it."""
        target = self.new.since_version if self.new else self.opset
        return f"{self.old.name} {self.old.since_version} to {target}"


@cache
def schema(domain: str, op: str, opset: int) -> OpSchema | None:
    """The version of an operator that holds at an opset; None before its introduction, or if there is none."""
    try:
        return get_schema(op, opset, domain)
    except SchemaError:
        return None


@cache
def step(domain: str, op: str, start: int, end: int) -> Step | None:
    """The first step of an operator on the way from one opset to another; None if it is the same at both.

    The operator has to be there at the start.
    """
    old = schema(domain, op, start)
    assert old is not None
    if end < old.since_version:
        return Step(old, schema(domain, op, old.since_version - 1), old.since_version - 1)
    new = schema(domain, op, end)
    while new is not None and new.since_version > old.since_version:
        before = schema(domain, op, new.since_version - 1)
        if before is None or before.since_version == old.since_version:
            return Step(old, new, new.since_version)
        new = before
    return None


def experimental(op: str, opset: int) -> Step:
    """The step from an experiment to what came after it; no schema of the experiment is left."""
    after = schema("", "Identity", opset)
    assert after is not None
    return Step(OpSchema(op, "", 1), after, opset)


@cache
def newest(domain: str) -> int:
    """The newest opset of a domain that the installed onnx knows."""
    if not domain:
        return int(onnx_opset_version())
    from onnx.defs import get_all_schemas

    return max((entry.since_version for entry in get_all_schemas() if entry.domain == domain), default=0)


def is_operator(op: str) -> bool:
    """Whether any version of ai.onnx or ai.onnx.ml has an operator of this name."""
    return any(schema(domain, op, newest(domain)) is not None for domain in REVIEWED)


@cache
def element_of(text: str) -> int | None:
    """The element type that a schema's type string names: "tensor(float)" is 1; None for sequences and the like."""
    if not text.startswith("tensor(") or not text.endswith(")"):
        return None
    return _ELEMENTS.get(text[7:-1])


#: ONNX's spelling of element types in schemas.
_ELEMENTS = {
    {"float": "float", "double": "double"}.get(name.lower(), name.lower()): number
    for name, number in TensorProto.DataType.items()
}


@cache
def allowed(version: OpSchema, text: str) -> frozenset[str]:
    """The types that a formal parameter takes, as text; of a type variable those of its constraint."""
    for constraint in version.type_constraints:
        if constraint.type_param_str == text:
            return frozenset(constraint.allowed_type_strs)
    return frozenset({text})


def type_text(element: int) -> str:
    """An element type as schemas spell the tensor type of it; by number, if there is no such type."""
    if element not in TensorProto.DataType.values():
        return f"tensor({element})"
    return f"tensor({TensorProto.DataType.Name(element).lower()})"


def spelled(kind: TypeProto) -> str | None:
    """A type as schemas spell it; None if a part of it is not known."""
    match kind.WhichOneof("value"):
        case "tensor_type":
            return type_text(kind.tensor_type.elem_type) if kind.tensor_type.elem_type else None
        case "sequence_type":
            inner = spelled(kind.sequence_type.elem_type)
            return None if inner is None else f"seq({inner})"
        case "optional_type":
            inner = spelled(kind.optional_type.elem_type)
            return None if inner is None else f"optional({inner})"
    return None
