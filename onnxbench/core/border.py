"""What a piece of a graph takes in from around it: inputs with types and values, constants."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import onnx
from onnx import TypeProto, helper, numpy_helper

from onnxbench.core import weights
from onnxbench.core.graph import GraphView
from onnxbench.core.model import Model
from onnxbench.core.types import type_of, value_info
from onnxbench.core.values import Value
from onnxbench.errors import AnswerIsNo, quote

#: "open" is an input that nobody feeds, even if the file holds a value for it: that is not read then.
How = Literal["input", "constant", "open"]

#: Bytes up to which the recorded value of a constant cut edge is written into the piece; larger ones become inputs.
LARGEST_CONSTANT = 1 << 20


@dataclass(slots=True)
class Border:
    """What a piece takes in: declarations in order, constants, and the values that are fed."""

    inputs: list[onnx.ValueInfoProto] = field(default_factory=list)
    initializers: list[onnx.TensorProto] = field(default_factory=list)
    sparse: list[onnx.SparseTensorProto] = field(default_factory=list)
    feeds: dict[str, Value] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Types:
    """The types of values of a view: declared, inferred, or told by a value that is known."""

    view: GraphView
    inferred: Mapping[str, TypeProto]
    known: Mapping[str, Value]
    static: bool

    def of(self, name: str) -> TypeProto | None:
        inferred = None if self._is_in_function() else self.inferred.get(name)
        for kind in (self.view.types.get(name), inferred):
            if kind is not None and is_complete(kind):
                return kind
        if name in self.known and (told := type_of(self.known[name], static=self.static)) is not None:
            return told
        return self.view.types.get(name) or inferred or self._stored(name)

    def _stored(self, name: str) -> TypeProto | None:
        tensor = self.view.initializers.get(name)
        return None if tensor is None else helper.make_tensor_type_proto(tensor.data_type, list(tensor.dims))

    def _is_in_function(self) -> bool:
        """Whether names mean nothing outside: inference tells of the main graph and its bodies."""
        scope: GraphView | None = self.view
        while scope is not None:
            if scope.isolated:
                return True
            scope = scope.parent
        return False


def is_complete(kind: TypeProto) -> bool:
    """Whether a type says all that a recorded value would: the rank too."""
    which = kind.WhichOneof("value")
    if which == "tensor_type":
        return kind.tensor_type.elem_type != 0 and kind.tensor_type.HasField("shape")
    return which is not None


def bring_in(
    border: Border,
    model: Model,
    view: GraphView,
    name: str,
    known: Mapping[str, Value],
    kinds: Types,
    how: How | None,
) -> None:
    """Let a piece have a value that its nodes read: as the initializer that it is, as a constant, or as an input.

    Raises:
        AnswerIsNo: OB102 if no graph makes the value.
    """
    home = home_of(view, name)
    if home is None:
        raise AnswerIsNo("OB102", f"no graph of {model.label} makes {quote(name)}, which the piece reads")
    if how is None and _copy_initializer(border, home, name, known):
        return
    if how == "open":
        border.inputs.append(value_info(name, Types(home, kinds.inferred, {}, kinds.static).of(name)))
        border.missing.append(name)
        return
    values = known
    if name in home.initializers and name not in known:
        values = {name: weights.array(model, home.initializers[name])}
    if _enters_as_constant(home, name, values, how):
        _add_constant(border, home, name, values[name])
        return
    border.inputs.append(value_info(name, Types(home, kinds.inferred, values, kinds.static).of(name)))
    if name in values:
        border.feeds[name] = values[name]
    else:
        border.missing.append(name)


def home_of(view: GraphView, name: str) -> GraphView | None:
    """The view that defines a value: this one, or one that a body can see out to."""
    return next((scope for scope in view.outward() if scope.defines(name)), None)


def _copy_initializer(border: Border, home: GraphView, name: str, known: Mapping[str, Value]) -> bool:
    if name in home.initializers:
        border.initializers.append(home.initializers[name])
        if name in home.inputs:  # overridable, or IR 3, where every initializer is an input too
            border.inputs.append(home.inputs[name])
            if home.is_overridable(name) and name in known:
                border.feeds[name] = known[name]
        elif home.model.ir_version < 4:  # of a body, where it need not be an input
            tensor = home.initializers[name]
            border.inputs.append(helper.make_tensor_value_info(name, tensor.data_type, list(tensor.dims)))
        return True
    if name in home.sparse:
        border.sparse.append(home.sparse[name])
        return True
    return False


def _enters_as_constant(home: GraphView, name: str, known: Mapping[str, Value], how: How | None) -> bool:
    value = known.get(name)
    if how == "input" or not isinstance(value, np.ndarray):
        return False
    return how == "constant" or (name in home.constants and value.nbytes <= LARGEST_CONSTANT)


def _add_constant(border: Border, home: GraphView, name: str, value: Value) -> None:
    assert isinstance(value, np.ndarray)
    border.initializers.append(numpy_helper.from_array(np.asarray(value), name))
    if home.model.ir_version < 4:
        border.inputs.append(value_info(name, type_of(value)))
