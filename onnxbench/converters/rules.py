"""What the schemas of two versions prove: a node that uses only what both have in common means the same in both.

ONNX versions an operator whenever its meaning changes (ONNX versioning, "Operator versioning"). What the schemas do not
show is the business of adapters.
"""

from __future__ import annotations

from functools import cache

from onnx import AttributeProto, NodeProto, helper
from onnx.defs import OpSchema

from onnxbench.converters import schemas
from onnxbench.converters.adapters import adapter_of, why_impossible
from onnxbench.converters.guess import element_made
from onnxbench.converters.schemas import Step
from onnxbench.converters.site import Open, Site, plain

_OPTIONAL, _VARIADIC = OpSchema.FormalParameterOption.Optional, OpSchema.FormalParameterOption.Variadic


@cache
def is_transparent(step: Step) -> bool:
    """Whether whatever is valid in the old version is valid, and means the same, in the new one."""
    old, new = step.old, step.new
    if new is None or new.deprecated or new.min_input > old.min_input or new.min_output > old.min_output:
        return False
    if new.max_input < old.max_input or new.max_output < old.max_output:
        return False
    for name, entry in new.attributes.items():
        before = old.attributes.get(name)
        if before is None:
            if entry.required:
                return False
        elif (
            before.type != entry.type
            or entry.required > before.required
            or _value(before.default_value) != _value(entry.default_value)
        ):
            return False
    if not set(old.attributes) <= set(new.attributes):
        return False
    for before_all, after_all in ((old.inputs, new.inputs), (old.outputs, new.outputs)):
        for before_one, after_one in zip(before_all, after_all, strict=False):
            if not schemas.allowed(old, before_one.type_str) <= schemas.allowed(new, after_one.type_str):
                return False
    return step.is_up


@cache
def stands(domain: str, op: str, start: int, end: int) -> bool:
    """Whether whatever is valid of an operator at one opset means the same at another: no node has to be looked at."""
    at = start
    while (step := schemas.step(domain, op, at, end)) is not None:
        if adapter_of(step.key) is not None or why_impossible(step.key) or not is_transparent(step):
            return False
        at = step.opset
    return True


@cache
def decides(step: Step) -> bool:
    """Whether the schemas decide for each node if it can stand as it is: `keep` finds everything that has changed.

    Not where an input has another meaning, or nodes that use nothing new would lack something the other version needs.
    """
    old, new = step.old, step.new
    if new is None or new.deprecated:
        return False
    for before_all, after_all in ((old.inputs, new.inputs), (old.outputs, new.outputs)):
        if any(one.name.lower() != other.name.lower() for one, other in zip(before_all, after_all, strict=False)):
            return False
        if any(formal.option not in (_OPTIONAL, _VARIADIC) for formal in before_all[len(after_all) :]):
            return False
        if any(formal.option not in (_OPTIONAL, _VARIADIC) for formal in after_all[len(before_all) :]):
            return False
    for name, entry in new.attributes.items():
        before = old.attributes.get(name)
        if entry.required and (before is None or not (before.required or before.default_value.name)):
            return False
        if before is not None and before.type != entry.type:
            return False
    gone = [entry for name, entry in old.attributes.items() if name not in new.attributes]
    return all(not entry.required for entry in gone)


def keep(site: Site) -> None:
    """Let the node stand as it is, with defaults that have changed made explicit.

    Raises:
        Refused: if the node uses something that the other version has not, or may use an element type it has not.
    """
    old, new = site.step.old, site.step.new
    if new is None:
        site.refuse(f"{old.name} was introduced in opset {old.since_version}")
    assert new is not None
    if new.deprecated:
        site.refuse(f"{new.name} was withdrawn in opset {new.since_version}")
    node = NodeProto()
    node.CopyFrom(site.node)
    _inputs(site, node, new)
    _attributes(site, node, old, new)
    _types(site, node, old, new)
    site.made.append(node)


def _inputs(site: Site, node: NodeProto, new: OpSchema) -> None:
    for kind, names, _formals, least, most in (
        ("input", node.input, new.inputs, new.min_input, new.max_input),
        ("output", node.output, new.outputs, new.min_output, new.max_output),
    ):
        count = len(names)
        while count and not names[count - 1]:
            count -= 1
        if count > most:
            extra = formals_name(site, kind, most)
            site.refuse(f"{new.name}-{new.since_version} has no {kind} {extra}")
        del names[max(count, min(least, len(names))) :]
        if count < least:
            site.refuse(f"{new.name}-{new.since_version} needs {least} {kind}s, and there are {count}")


def formals_name(site: Site, kind: str, place: int) -> str:
    """What the version where the node stands calls an input or output."""
    formals = site.step.old.inputs if kind == "input" else site.step.old.outputs
    return formals[min(place, len(formals) - 1)].name if formals else str(place)


def _attributes(site: Site, node: NodeProto, old: OpSchema, new: OpSchema) -> None:
    for attribute in list(node.attribute):
        known = new.attributes.get(attribute.name)
        if known is not None:
            if not attribute.ref_attr_name and _kind(known) != attribute.type:
                site.refuse(f"{attribute.name} has another type in {new.name}-{new.since_version}")
            refers = attribute.ref_attr_name
            if refers and _needs_value(old.attributes.get(attribute.name), known) and not site.facts.gives(refers):
                raise Open(f"{attribute.name} is an attribute of the function, which not all of its calls give")
            continue
        before = old.attributes.get(attribute.name)
        if before is None:
            continue  # nobody knows it: it means nothing in either version
        if attribute.ref_attr_name:
            raise Open(f"{new.name}-{new.since_version} has no {attribute.name}, which calls of the function give")
        if not _is_default(attribute, before):
            site.refuse(f"{new.name}-{new.since_version} has no {attribute.name} ({_shown(attribute)})")
        node.attribute.remove(attribute)
    given = {attribute.name for attribute in node.attribute}
    for name, entry in new.attributes.items():
        if name in given:
            continue
        before = old.attributes.get(name)
        if before is None:
            if entry.required:
                site.refuse(f"{new.name}-{new.since_version} needs {name}")
            continue
        if before.default_value.name and _value(before.default_value) != _value(entry.default_value):
            made = AttributeProto()
            made.CopyFrom(before.default_value)
            made.name = name
            node.attribute.append(made)
        elif entry.required:
            site.refuse(f"{new.name}-{new.since_version} needs {name}")


def _needs_value(old: OpSchema.Attribute | None, new: OpSchema.Attribute) -> bool:
    """Whether a node that leaves an attribute out means something else in the other version."""
    return new.required or (old is not None and _value(old.default_value) != _value(new.default_value))


def _kind(declared: OpSchema.Attribute) -> int:
    number: int = getattr(declared.type, "value")  # noqa: B009 - onnx's stubs do not have it
    return number


def _value(attribute: AttributeProto) -> object:
    return (attribute.type, helper.get_attribute_value(attribute)) if attribute.name else None


#: Attributes without a default in the schema, and what one element of them means as much as nothing.
_NEUTRAL = {"dilations": 1, "strides": 1, "pads": 0}


def _is_default(attribute: AttributeProto, declared: OpSchema.Attribute) -> bool:
    value = helper.get_attribute_value(attribute)
    if not declared.default_value.name:
        return attribute.name in _NEUTRAL and all(number == _NEUTRAL[attribute.name] for number in value)
    return bool(value == helper.get_attribute_value(declared.default_value))


def _shown(attribute: AttributeProto) -> str:
    text = str(plain(helper.get_attribute_value(attribute)))
    return text if len(text) < 40 else "set"


def _types(site: Site, node: NodeProto, old: OpSchema, new: OpSchema) -> None:
    places = [(name, number, "inputs") for number, name in enumerate(node.input) if name]
    places += [(name, number, "outputs") for number, name in enumerate(node.output) if name]
    for name, number, side in places:
        formals, others = getattr(old, side), getattr(new, side)
        before = schemas.allowed(old, formals[min(number, len(formals) - 1)].type_str)
        after = schemas.allowed(new, others[min(number, len(others) - 1)].type_str)
        if before <= after:
            continue
        element = site.element(name)
        if element is None and side == "outputs":
            element = element_made(site.node, old, number, site.facts)
        if element is None:
            if all(kind.startswith("tensor") for kind in before):
                lost = ", ".join(sorted(before - after)[:3])
                site.refuse(
                    f"the element type of {name} is not known, and {new.name}-{new.since_version} has no {lost}"
                )
            element_text = _container(site, name, before)
        else:
            element_text = schemas.type_text(element)
        if element_text not in after:
            site.refuse(f"{new.name}-{new.since_version} does not take {element_text}")
    _agreeing(site, node, new)


def _container(site: Site, name: str, before: frozenset[str]) -> str:
    kind = site.facts.kind(name)
    return kind if kind is not None else sorted(before)[0]


def _agreeing(site: Site, node: NodeProto, new: OpSchema) -> None:
    """Inputs that share a type variable in the new version only have to have one type."""
    if site.step.is_up:
        return
    bound: dict[str, tuple[int, str]] = {}
    for number, name in enumerate(node.input):
        if not name:
            continue
        formal = new.inputs[min(number, len(new.inputs) - 1)]
        if formal.option == _VARIADIC and not formal.is_homogeneous:
            continue
        if len(schemas.allowed(new, formal.type_str)) < 2 or not _parted(site.step.old, new, number):
            continue
        element = site.element(name)
        if element is None:
            site.refuse(f"the element type of {name} is not known")
        other = bound.setdefault(formal.type_str, (element, name))
        if other[0] != element:
            site.refuse(f"{other[1]} and {name} would have to have one element type")


def _parted(old: OpSchema, new: OpSchema, number: int) -> bool:
    """Whether the old version has more type variables than the new."""
    return len({p.type_str for p in old.inputs}) > len({p.type_str for p in new.inputs})


def refuse_lacking(site: Site) -> None:
    """Adapters take for granted that what has to be there is there."""
    count, least = len(site.node.input), site.step.old.min_input
    if count < least:
        name = f"{site.step.old.name}-{site.step.old.since_version}"
        site.refuse(f"it has {count} input{'s' * (count != 1)}, and {name} takes {least} at least")


def refuse_unset(site: Site) -> None:
    """A reference to an attribute that a call leaves out is no attribute in that call, and one in others."""
    for attribute in site.node.attribute:
        if attribute.ref_attr_name and not site.facts.gives(attribute.ref_attr_name):
            raise Open(f"{attribute.name} is an attribute of the function, which not all of its calls give")
