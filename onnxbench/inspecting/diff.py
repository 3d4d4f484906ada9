"""What differs between two models: nodes, attributes, wiring, types, weights, versions."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from onnx import FunctionProto, TensorProto

from onnxbench.core.compare import Tolerance, differ
from onnxbench.core.graph import GraphView, Node
from onnxbench.core.model import Model
from onnxbench.core.shapes import Shapes
from onnxbench.core.weights import array
from onnxbench.inspecting.look import attribute_text, type_text
from onnxbench.inspecting.matching import attribute_key, match


@dataclass(slots=True)
class Change:
    """One thing that differs: where, what kind, and how it was before and is now (None: it is not there)."""

    where: str
    what: str
    before: str | None
    after: str | None


@dataclass(slots=True)
class WeightChange:
    """An initializer that differs in type, shape, numbers or strings; `max_abs` is None where the shapes differ."""

    before: str
    after: str
    what: str
    max_abs: float | None = None


@dataclass(slots=True)
class Diff:
    """Two models, the first taken as the older."""

    before: str
    after: str
    head: list[Change] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    added: list[str] = field(default_factory=list)
    renamed: int = 0
    changed: list[Change] = field(default_factory=list)
    types: list[Change] = field(default_factory=list)
    weights: list[WeightChange] = field(default_factory=list)
    matched: int = 0

    @property
    def same(self) -> bool:
        """Whether nothing differs but the order in the files and the names of nodes and inner values."""
        return not (self.head or self.removed or self.added or self.changed or self.types or self.weights)

    @property
    def exit_code(self) -> int:
        return 0 if self.same else 1

    def to_dict(self) -> dict[str, Any]:
        return {"schema": "onnxbench.diff/1", "same": self.same, **asdict(self)}


def diff(before: Model, after: Model, shapes: Callable[[Model], Shapes]) -> Diff:
    """Compare two models by their structure; the order of nodes in the files does not matter.

    Weights are read one at a time. `shapes` gives a model's types.
    """
    one, other = (GraphView(model.proto, model.proto.graph) for model in (before, after))
    pairs = match(one, other)
    found = Diff(*_names(before, after), matched=len(pairs))
    found.head = list(_head(before, after))
    found.removed = [node.label for node in one.nodes if node.index not in pairs]
    taken = set(pairs.values())
    found.added = [node.label for node in other.nodes if node.index not in taken]
    values = _paired_values(one, other, pairs)
    for left, right in sorted(pairs.items()):
        a, b = one.nodes[left], other.nodes[right]
        found.renamed += a.proto.name != b.proto.name
        found.changed += [*_attributes(a, b), *_wiring(a, b, values)]
    found.types = list(_types(one, other, values, shapes(before), shapes(after)))
    found.weights = list(_weights(before, after, one, other, values))
    return found


def _names(before: Model, after: Model) -> tuple[str, str]:
    """What the two are called: their paths if the files have one name."""
    if before.label == after.label and before.path is not None and after.path is not None:
        return str(before.path), str(after.path)
    return before.label, after.label


def _head(before: Model, after: Model) -> Iterator[Change]:
    a, b = before.proto, after.proto
    for what in ("ir_version", "producer_name", "producer_version", "domain", "model_version", "doc_string"):
        if getattr(a, what) != getattr(b, what):
            yield Change("model", what, str(getattr(a, what)), str(getattr(b, what)))
    yield from _mapping(
        "opset",
        {e.domain or "ai.onnx": str(e.version) for e in a.opset_import},
        {e.domain or "ai.onnx": str(e.version) for e in b.opset_import},
    )
    yield from _mapping(
        "metadata", {e.key: e.value for e in a.metadata_props}, {e.key: e.value for e in b.metadata_props}
    )
    functions = [{_call_name(f): _digest(f) for f in m.functions} for m in (a, b)]
    for change in _mapping("function", *functions):
        yield _without_digests(change)
    for what in ("quantization_annotation", "sparse_initializer"):
        held = [sorted(_digest(item) for item in getattr(m.graph, what)) for m in (a, b)]
        if held[0] != held[1]:
            yield Change("graph", what, f"{len(held[0])} of them", f"{len(held[1])} of them, not the same")
    if [_digest(t) for t in a.training_info] != [_digest(t) for t in b.training_info]:
        yield Change("model", "training_info", str(len(a.training_info)), f"{len(b.training_info)}, not the same")


def _call_name(function: FunctionProto) -> str:
    return "::".join(filter(None, (function.domain, function.name, function.overload)))


def _digest(message: Any) -> str:
    return hashlib.sha256(message.SerializeToString(deterministic=True)).hexdigest()


def _without_digests(change: Change) -> Change:
    if change.before is not None and change.after is not None:
        return Change(change.where, change.what, "one body", "another body")
    return Change(change.where, change.what, change.before and "there", change.after and "there")


def _mapping(what: str, before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[Change]:
    for key in dict.fromkeys([*before, *after]):
        if before.get(key) != after.get(key):
            yield Change(key, what, before.get(key), after.get(key))


def _paired_values(one: GraphView, other: GraphView, pairs: Mapping[int, int]) -> dict[str, str]:
    """The second graph's name of each value of the first that has one: by name at the border, by the pairs inside."""
    values = {name: name for name in one.inputs if name in other.inputs}
    for left, right in pairs.items():
        values.update(zip(one.nodes[left].outputs, other.nodes[right].outputs, strict=False))
    for left, right in pairs.items():  # an initializer under another name, read at the same place
        for a, b in zip(one.nodes[left].inputs, other.nodes[right].inputs, strict=False):
            if a in one.initializers and b in other.initializers and a not in other.initializers:
                values.setdefault(a, b)
    values.update((name, name) for name in one.initializers if name in other.initializers)
    return values


def _attributes(a: Node, b: Node) -> Iterator[Change]:
    left, right = ({attribute.name: attribute for attribute in node.proto.attribute} for node in (a, b))
    for name in dict.fromkeys([*left, *right]):
        before, after = left.get(name), right.get(name)
        if before is not None and after is not None and attribute_key(before) == attribute_key(after):
            continue
        yield Change(
            a.label,
            f"attribute {name}",
            attribute_text(before) if before is not None else None,
            attribute_text(after) if after is not None else None,
        )


def _wiring(a: Node, b: Node, values: Mapping[str, str]) -> Iterator[Change]:
    for i in range(max(len(a.proto.input), len(b.proto.input))):
        before = a.proto.input[i] if i < len(a.proto.input) else None
        after = b.proto.input[i] if i < len(b.proto.input) else None
        if before is not None and after is not None and values.get(before, before) == after:
            continue
        if (before or "") != (after or ""):
            yield Change(a.label, f"input {i}", before, after)


def _types(
    one: GraphView, other: GraphView, values: Mapping[str, str], left: Shapes, right: Shapes
) -> Iterator[Change]:
    for name in one.values():
        partner = values.get(name)
        if partner is None or name in one.initializers:
            continue
        before, after = type_text(left, name), type_text(right, partner)
        if before != after:
            yield Change(name, "type", before, after)
    for kind, a, b in (("input", list(one.inputs), list(other.inputs)), ("output", one.outputs, other.outputs)):
        for name in dict.fromkeys([*a, *b]):
            if (name in a) != (name in b):
                yield Change(name, kind, "there" if name in a else None, "there" if name in b else None)
        ours, theirs = [name for name in a if name in b], [name for name in b if name in a]
        if ours != theirs:
            yield Change("model", f"order of {kind}s", ", ".join(ours), ", ".join(theirs))


def _weights(
    before: Model, after: Model, one: GraphView, other: GraphView, values: Mapping[str, str]
) -> Iterator[WeightChange]:
    partners: set[str] = set()
    for name, tensor in one.initializers.items():
        partner = values.get(name)
        if partner is None or partner not in other.initializers:
            yield WeightChange(name, "", "removed")
            continue
        partners.add(partner)
        change = _weight(before, after, tensor, other.initializers[partner])
        if change is not None:
            yield WeightChange(name, partner, *change)
    yield from (WeightChange("", name, "added") for name in other.initializers if name not in partners)


def _weight(before: Model, after: Model, a: TensorProto, b: TensorProto) -> tuple[str, float | None] | None:
    if a.data_type != b.data_type or list(a.dims) != list(b.dims):
        return "type or shape", None
    if a.raw_data and a.raw_data == b.raw_data:
        return None
    if a.data_type == TensorProto.STRING:  # bytes, which need not be text
        return None if list(a.string_data) == list(b.string_data) else ("strings", None)
    difference = differ(array(before, a), array(after, b), Tolerance(0.0, 0.0))
    if difference is None:
        return None
    return "numbers", difference.max_abs if math.isfinite(difference.max_abs) else None
