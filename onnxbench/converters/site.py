"""Where an adapter works: one node at one step, what is known of its values, and what it puts in the node's place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np
from onnx import AttributeProto, GraphProto, NodeProto, helper

from onnxbench.converters.facts import Dims, Facts, Known
from onnxbench.converters.guess import known_of
from onnxbench.converters.schemas import Step
from onnxbench.converters.storage import Storage
from onnxbench.core.values import Array


class Refused(Exception):
    """A node cannot take a step; the message says why, in a sentence."""


class Open(Refused):
    """What would have to be known is an attribute that each call of the function gives."""


@dataclass
class Site:
    """One node at one step.

    Attributes:
        node: the node as it stands before the step.
        step: the versions on both sides.
        target: opset that the whole graph goes to.
        facts: of the values of its graph.
        storage: of its graph.
        made: nodes in its place, in order.
        valid_at: the opset at which they are valid: `step.opset`, unless an adapter says a later one, up to the target.
    """

    node: NodeProto
    step: Step
    target: int
    facts: Facts
    storage: Storage
    made: list[NodeProto] = field(default_factory=list)
    valid_at: int = 0

    def __post_init__(self) -> None:
        self.valid_at = self.valid_at or self.step.opset

    # What is there.

    @property
    def opset(self) -> int:
        """Where new nodes have to be valid."""
        return self.step.opset

    @property
    def before(self) -> int:
        """An opset where the node is valid as it stands."""
        return self.step.opset - 1 if self.step.is_up else self.step.opset + 1

    def input(self, place: int) -> str:
        """The name of an input; empty if it is left out."""
        return self.node.input[place] if place < len(self.node.input) else ""

    def output(self, place: int = 0) -> str:
        """The name of an output; empty if it is left out."""
        return self.node.output[place] if place < len(self.node.output) else ""

    def has(self, name: str) -> bool:
        """Whether the node gives an attribute."""
        return any(attribute.name == name for attribute in self.node.attribute)

    def attr(self, name: str, default: Any = None) -> Any:
        """The value of an attribute; else the default of its version, else the one given here.

        Raises:
            Open: if each call of the function gives it.
        """
        for attribute in self.node.attribute:
            if attribute.name == name:
                if attribute.type == AttributeProto.INT and not attribute.ref_attr_name:
                    return attribute.i
                if attribute.ref_attr_name:
                    raise Open(f"{name} is an attribute of the function, and its calls do not agree on it")
                return plain(helper.get_attribute_value(attribute))
        declared = self.step.old.attributes.get(name)
        if declared is not None and declared.default_value.name:
            return plain(helper.get_attribute_value(declared.default_value))
        return default

    def element(self, name: str) -> int | None:
        """The element type of a value."""
        return self.facts.element(name)

    def needed_element(self, name: str) -> int:
        """The element type of a value.

        Raises:
            Refused: if it is not known.
        """
        found = self.facts.element(name)
        if found is None:
            self.refuse(f"the element type of {name} is not known")
        return found

    def rank(self, name: str) -> int | None:
        return self.facts.rank(name)

    def needed_rank(self, name: str) -> int:
        """The rank of a value.

        Raises:
            Refused: if it is not known.
        """
        found = self.facts.rank(name)
        if found is None:
            self.refuse(f"the rank of {name} is not known")
        return found

    def dims(self, name: str) -> Dims | None:
        return self.facts.dims(name)

    def is_used(self, name: str) -> bool:
        """Whether anybody may read a value that the node makes."""
        return self.facts.is_used(name)

    def value(self, name: str) -> Array | None:
        """The value of an input, if it is the same in every run."""
        return self.facts.value(name) if name else None

    def static(self, place: int, what: str) -> Array:
        """The value of an input that has to be a constant.

        Raises:
            Refused: if it is none.
        """
        found = self.value(self.input(place))
        if found is None:
            self.refuse(f"{what} would have to be an attribute, and it is only known at run time")
        return found

    def ints(self, place: int, what: str) -> list[int]:
        """`static`, as a list of integers."""
        return [int(number) for number in self.static(place, what).reshape(-1)]

    # What comes in its place.

    def const(self, value: Any, wish: str, dtype: Any = np.int64) -> str:
        """The name of a stored constant.

        Args:
            value: numbers.
            wish: what it may be called.
            dtype: its type; int64 if nothing is said.
        """
        given: object = None
        if isinstance(value, list):
            given = tuple(value), dtype
        elif isinstance(value, (int, float)) and value != 0:  # 0 has a sign, which keys do not tell
            given = value, dtype
        if given is not None and given in self.storage.quick:
            name = self.storage.quick[given]
            if name in self.storage.tensors:
                return name
        array = np.asarray(value, dtype)
        if not self.storage.holds(array):
            self.refuse("before opset 9 a function can hold no constant of such numbers")
        name = self.storage.store(array, f"{self.output() or self.node.name or self.node.op_type}_{wish}")
        dims = array.shape
        element = helper.np_dtype_to_tensor_dtype(array.dtype)
        self.facts.made[name] = Known(element, len(dims), dims, array)
        if given is not None:
            self.storage.quick[given] = name
        return name

    def scalar_like(self, value: float, like: str, wish: str) -> str:
        """A constant without dims, in the element type of another value."""
        dtype = helper.tensor_dtype_to_np_dtype(self.needed_element(like))
        return self.const(value, wish, dtype)

    def from_attribute(self, name: str, wish: str, dtype: Any = np.int64) -> str:
        """An attribute as a value; one that the calls of the function give becomes a Constant that refers to it.

        Raises:
            Open: if it is given by calls, and no Constant can refer to it.
        """
        for attribute in self.node.attribute:
            if attribute.name == name and attribute.ref_attr_name:
                kind = _REFERRED.get((attribute.type, np.dtype(dtype).name))
                if kind is None or self.target < 12:  # Constant-12 has them
                    raise Open(f"{name} is an attribute of the function, and its calls do not agree on it")
                return self._refer(attribute, kind, wish)
        return self.const(self.attr(name), wish, dtype)

    def _refer(self, attribute: AttributeProto, kind: str, wish: str) -> str:
        made = NodeProto(op_type="Constant", output=[self.fresh(wish)])
        held = made.attribute.add()
        held.name, held.type, held.ref_attr_name = kind, attribute.type, attribute.ref_attr_name
        self.made.append(made)
        lists = attribute.type in (AttributeProto.INTS, AttributeProto.FLOATS)
        self.facts.made[made.output[0]] = Known(rank=1 if lists else 0)
        return str(made.output[0])

    def fresh(self, wish: str) -> str:
        """A new name for a value."""
        return self.storage.fresh(f"{self.output() or self.node.name or self.node.op_type}_{wish}")

    def add(self, op: str, *inputs: str, wish: str = "", outputs: int = 1, **attributes: Any) -> str:
        """Add a node in front; the name of its first output (`add_many` gives all)."""
        return self.add_many(op, inputs, outputs, wish, **attributes)[0]

    def add_many(self, op: str, inputs: Sequence[str], outputs: int, wish: str = "", **attributes: Any) -> list[str]:
        """Add a node in front; the names of its outputs."""
        names = [self.fresh(wish or op.lower()) for _ in range(outputs)]
        node = NodeProto(op_type=op, input=_trimmed(inputs), output=names)
        if self.node.domain:
            node.domain = self.node.domain
        if attributes:
            node.attribute.extend(_given(attributes))
        if self.node.name:
            node.name = self.storage.fresh(f"{self.node.name}_{wish or op.lower()}")
        self._keep(node)
        return names

    def put(self, op: str, inputs: Sequence[str], outputs: Sequence[str] | None = None, **attributes: Any) -> None:
        """Add the node that makes what the old one made: it has its name, docs and metadata."""
        node = NodeProto()
        node.CopyFrom(self.node)
        node.op_type = op
        del node.input[:]
        node.input.extend(_trimmed(inputs))
        if outputs is not None:
            del node.output[:]
            node.output.extend(outputs)
        del node.attribute[:]
        node.attribute.extend(_given(attributes))
        self._keep(node)

    def same(
        self,
        inputs: Sequence[str] | None = None,
        outputs: Sequence[str] | None = None,
        drop: Sequence[str] = (),
        op: str = "",
        **attributes: Any,
    ) -> None:
        """Add the node itself, with other inputs, outputs or attributes; attributes that are references stay."""
        node = NodeProto()
        node.CopyFrom(self.node)
        if op:
            node.op_type = op
        if inputs is not None:
            del node.input[:]
            node.input.extend(_trimmed(inputs))
        if outputs is not None:
            del node.output[:]
            node.output.extend(outputs)
        given = _given(attributes)
        replaced = {*drop, *(attribute.name for attribute in given)}
        kept = [attribute for attribute in self.node.attribute if attribute.name not in replaced]
        del node.attribute[:]
        node.attribute.extend([*kept, *given])
        self._keep(node)

    def _keep(self, node: NodeProto) -> None:
        self.made.append(node)
        own = self.node.output
        names = [name for name in node.output if name not in own]
        if names:
            opset, facts = self.opset, self.facts
            facts.made.later(names, lambda: known_of(node, opset, facts))

    def body(self, node: NodeProto, name: str) -> GraphProto:
        """A graph that a node holds."""
        held: GraphProto = next(attribute.g for attribute in node.attribute if attribute.name == name)
        return held

    def refuse(self, reason: str) -> NoReturn:
        """End the step: the node cannot take it.

        Raises:
            Refused: always.
        """
        raise Refused(reason)


_REFERRED: Mapping[tuple[int, str], str] = {
    (AttributeProto.INTS, "int64"): "value_ints",
    (AttributeProto.INT, "int64"): "value_int",
    (AttributeProto.FLOAT, "float32"): "value_float",
    (AttributeProto.FLOATS, "float32"): "value_floats",
}


def _given(attributes: Mapping[str, Any]) -> list[AttributeProto]:
    """Attributes of those values that are not None; lists that may be empty are lists of integers."""
    return [
        helper.make_attribute(name, value, attr_type=AttributeProto.INTS if value == [] else None)
        for name, value in attributes.items()
        if value is not None
    ]


def _trimmed(inputs: Sequence[str]) -> list[str]:
    names = list(inputs)
    while names and not names[-1]:
        names.pop()
    return names


def plain(value: Any) -> Any:
    """The value of an attribute with text for bytes, and lists for what repeats."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    if isinstance(value, (list, tuple)) or type(value).__name__.startswith("Repeated"):
        return [plain(entry) for entry in value]
    return value
