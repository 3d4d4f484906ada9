"""A node that an adapter had a say in as two small models of one interface: as it stood, and as it stands now."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from onnx import IR_VERSION, FunctionProto, ModelProto, NodeProto, TensorProto, TypeProto, numpy_helper

from onnxbench.converters.facts import Facts
from onnxbench.converters.report import Rewrite
from onnxbench.core.graph import captures, plain_domain
from onnxbench.core.hoist import renamed

#: Elements up to which a stored constant is kept as it is; larger ones are inputs, of any value.
_FEW = 4096


@dataclass
class Rewritten:
    """A node and what took its place; that may be itself, if an adapter says that it still means the same.

    Attributes:
        before: the node as it stood.
        after: the nodes in its place.
        opsets: version of its domain before and after.
        facts: of its graph in the source.
        stored: constants that adapters stored in its graph.
        index: of the node in its graph.
        words: what reports say of it.
        by_body: whether a body that the specification gives took its place.
    """

    before: NodeProto
    after: list[NodeProto]
    opsets: tuple[int, int]
    facts: Facts
    stored: Mapping[str, TensorProto]
    index: int
    words: Rewrite
    by_body: bool = False


@dataclass
class Forms:
    """Both forms.

    Attributes:
        old, new: models with the same inputs and outputs.
        reason: why there are none, if so.
    """

    old: ModelProto = field(default_factory=ModelProto)
    new: ModelProto = field(default_factory=ModelProto)
    reason: str = ""


def likeness(entry: Rewritten) -> object:
    """What two rewritten nodes have in common if their forms differ in names only."""
    made = {name: place for place, name in enumerate(name for node in entry.after for name in node.output if name)}
    read: dict[str, int] = {}

    def known(name: str) -> object:
        if not name:
            return None
        if name in made:
            return made[name]
        if name in entry.stored:
            tensor = entry.stored[name]
            return tensor.data_type, tuple(tensor.dims), tensor.raw_data, tuple(tensor.string_data)
        place = read.setdefault(name, len(read))
        facts = entry.facts
        held = facts.value(name) if facts.is_stored(name) else None
        value = held.tobytes() if held is not None and held.size <= _FEW and held.dtype != object else None
        return place, facts.element(name), facts.dims(name), value

    def told(node: NodeProto) -> object:
        attributes = tuple(attribute.SerializeToString(deterministic=True) for attribute in node.attribute)
        inner = tuple(known(name) for name in captures(node)) if _holds(node) else ()
        return node.op_type, attributes, tuple(known(name) for name in node.input), inner, len(node.output)

    return tuple(told(node) for node in (entry.before, *entry.after)), entry.opsets


def _holds(node: NodeProto) -> bool:
    return any(attribute.HasField("g") for attribute in node.attribute)


def forms(entry: Rewritten, source: ModelProto, result: ModelProto, size: int | None, rank: int | None) -> Forms:
    """Both forms of a node.

    Args:
        entry: the node.
        source, result: the models, for functions and other opsets.
        size: of each dim that is not known.
        rank: of each tensor whose rank is not known.
    """
    node, after = entry.before, entry.after
    if any(_refers(one) for one in (node, *after)):
        bound = entry.facts.bind([node, *after])
        if bound is None:
            return Forms(reason="what its function is called with is not known")
        node, *after = bound
    inner = {name for made in after for name in made.output if name}
    read = dict.fromkeys(name for name in [*node.input, *captures(node)] if name)
    for made in after:
        read.update(dict.fromkeys(n for n in [*made.input, *captures(made)] if n and n not in inner))
    kept = {name for name in node.output if name in inner}
    names = {name: f"in_{place}" for place, name in enumerate(name for name in read if name not in entry.stored)}
    names |= {name: f"out_{place}" for place, name in enumerate(node.output) if name}
    found = Forms()
    kinds: dict[str, TypeProto] = {}
    for name in read:
        if name in entry.stored:
            continue
        tensor = _constant(entry.facts, name, names[name])
        if tensor is not None:
            for model in (found.old, found.new):
                model.graph.initializer.add().CopyFrom(tensor)
            continue
        kind = _type(entry.facts, name, size, rank)
        if kind is None:
            return Forms(reason=f"the type of {name} is not known")
        kinds[name] = kind
    for model, nodes, version, origin in (
        (found.old, [node], entry.opsets[0], source),
        (found.new, after, entry.opsets[1], result),
    ):
        _header(model, node, version, origin)
        for name, kind in kinds.items():
            model.graph.input.add(name=names[name]).type.CopyFrom(kind)
        for name in node.output:
            if name in kept:
                made = model.graph.output.add(name=names[name])
                output = _type(entry.facts, name, None, None)
                if output is not None:
                    made.type.CopyFrom(output)
        used = {name for inner_node in nodes for name in [*inner_node.input, *captures(inner_node)]}
        for name, tensor in entry.stored.items():
            if name in used:
                model.graph.initializer.add().CopyFrom(tensor)
        model.graph.node.extend(renamed(inner_node, names) for inner_node in nodes)
        for inner_node in model.graph.node:
            for told in ("name", "doc_string", "metadata_props"):
                inner_node.ClearField(told)
            inner_node.domain = inner_node.domain or ""  # as the parser of ONNX text has it: then text says all of it
    return found


def _header(model: ModelProto, node: NodeProto, version: int, origin: ModelProto) -> None:
    model.ir_version = min(IR_VERSION, max(10, origin.ir_version))
    model.graph.name = node.op_type
    domain = plain_domain(node.domain)
    model.opset_import.add(domain=domain, version=version)
    for entry in origin.opset_import:
        if plain_domain(entry.domain) != domain:
            model.opset_import.add(domain=entry.domain, version=entry.version)
    model.functions.extend(_called(node, origin.functions))


def _called(node: NodeProto, functions: Sequence[FunctionProto]) -> Iterable[FunctionProto]:
    """All functions, where the node holds graphs: they may call any."""
    return functions if _holds(node) else ()


def _refers(node: NodeProto) -> bool:
    from onnxbench.folding.constancy import refers

    return refers(node)


def _constant(facts: Facts, name: str, wish: str) -> TensorProto | None:
    """A small constant of the source under a new name."""
    if not facts.is_stored(name):
        return None
    value = facts.value(name)
    return None if value is None or value.size > _FEW else numpy_helper.from_array(value, wish)


def _type(facts: Facts, name: str, size: int | None, rank: int | None) -> TypeProto | None:
    """The type of a value, dims that are not known given a size; None if not even the element type is known."""
    whole = facts.whole_type(name)
    element = facts.element(name)
    if element is None:
        return whole
    made = TypeProto()
    made.tensor_type.elem_type = element
    dims = facts.dims(name)
    if dims is None:
        if rank is None:
            return made
        dims = (None,) * rank
    made.tensor_type.shape.SetInParent()
    for dim in dims:
        entry = made.tensor_type.shape.dim.add()
        if dim is not None:
            entry.dim_value = dim
        elif size is not None:
            entry.dim_value = size
    return made
