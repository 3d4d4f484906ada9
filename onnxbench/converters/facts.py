"""What is known of the values of one graph, asked for by adapters and found out only then."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

import numpy as np
from onnx import FunctionProto, NodeProto, TypeProto

from onnxbench.converters.elements import element_in
from onnxbench.converters.schemas import spelled, type_text
from onnxbench.core.attributes import bind
from onnxbench.core.graph import GraphView
from onnxbench.core.values import Array
from onnxbench.folding.evaluate import Evaluator
from onnxbench.folding.scope import Scope
from onnxbench.folding.stored import filled

Dims = tuple[int | None, ...]
_T = TypeVar("_T")


@dataclass(slots=True)
class Known:
    """Facts of a value that an adapter made; what is None is not known.

    Attributes:
        element: its element type.
        rank: the number of its dims.
        dims: its dims.
        value: of a constant.
    """

    element: int | None = None
    rank: int | None = None
    dims: Dims | None = None
    value: Array | None = None


class Made(dict[str, Known]):
    """Facts of made values by name; those that a node makes are found out when they are asked for."""

    def __init__(self) -> None:
        super().__init__()
        self._pending: dict[str, Callable[[], dict[str, Known]]] = {}

    def later(self, names: Iterable[str], tell: Callable[[], dict[str, Known]]) -> None:
        """Let facts of some values be told by a function, once they are asked for."""
        for name in names:
            if name:
                self._pending[name] = tell
                self.pop(name, None)

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or name in self._pending

    def __missing__(self, name: str) -> Known:
        tell = self._pending.get(name)
        if tell is None:
            raise KeyError(name)
        for told, known in tell().items():
            if self._pending.get(told) is tell:
                del self._pending[told]
                self[told] = known
        return self[name]

    def forget(self, name: str) -> None:
        """Know nothing of a name: it is a value of the source after all."""
        self._pending.pop(name, None)
        self.pop(name, None)


@dataclass
class Facts:
    """What is known of the values of a graph, or of a function in all its calls together.

    Attributes:
        places: gives the graph once for each way to reach it: a function has one for each call, and what is known of it is
            what all agree on.
        gives: whether no call of the function leaves an attribute out.
        made: facts of values that adapters made.
    """

    places: Callable[[], Sequence[Scope]]
    gives: Callable[[str], bool] = lambda name: True
    made: Made = field(default_factory=lambda: Made())
    _values: dict[str, Array | None] = field(default_factory=dict)

    @cached_property
    def scopes(self) -> Sequence[Scope]:
        return self.places()

    @cached_property
    def walked(self) -> Sequence[Scope]:
        """The scopes whose values are known by themselves: of calls that are alike, shapes are told once."""
        if len(self.scopes) < 2:
            return self.scopes
        return [scope for scope in self.scopes if scope.known().covers(scope.view)]

    def element(self, name: str) -> int | None:
        """The element type of a tensor."""
        if name in self.made and (self.made[name].element is not None or not self._is_own(name)):
            return self.made[name].element
        return self._agreed(lambda scope: _element(scope, name))

    def is_used(self, name: str) -> bool:
        """Whether a node, a body or the outside reads a value; true if that is not known."""
        views = [scope.view for scope in self.scopes]
        if not views or name in self.made:
            return True
        return any(name in view.outputs or view.consumers.get(name) for view in views)

    def kind(self, name: str) -> str | None:
        """The type of a value as schemas spell it, "seq(tensor(float))"; None if it is not known."""
        if name in self.made:
            element = self.made[name].element
            return None if element is None else type_text(element)
        return self._agreed(lambda scope: _kind(scope, name))

    def rank(self, name: str) -> int | None:
        """The number of dims of a tensor."""
        if name in self.made and self.made[name].rank is not None:
            return self.made[name].rank
        dims = self.dims(name)
        return None if dims is None else len(dims)

    def dims(self, name: str) -> Dims | None:
        """The dims of a tensor; None for each that is not a number."""
        if name in self.made and (self.made[name].dims is not None or not self._is_own(name)):
            return self.made[name].dims
        found = [_dims(scope, name) for scope in self.walked]
        if not found or any(dims is None for dims in found):
            return None
        known = [dims for dims in found if dims is not None]
        if len({len(dims) for dims in known}) != 1:
            return None
        return tuple(sizes[0] if len(set(sizes)) == 1 else None for sizes in zip(*known, strict=True))

    def repeats(self, shape: str, data: str) -> bool:
        """Whether each element of a shape is a number but 0, or the size of that axis of a tensor, whatever it is."""
        return bool(self.walked) and all(_repeats(scope, shape, data) for scope in self.walked)

    def of_one_shape(self, names: Sequence[str]) -> bool:
        """Whether some tensors have the same dims, by number or by symbol."""
        if any(name in self.made for name in names):
            found = [self.dims(name) for name in names]
            return None not in found and len(set(found)) == 1 and None not in (found[0] or ())
        return bool(self.scopes) and all(_is_one_shape(scope, names) for scope in self.scopes)

    def value(self, name: str) -> Array | None:
        """The value of a tensor that is the same in every run."""
        if name in self.made:
            return self.made[name].value
        if name not in self._values:
            found = [_value(scope, name) for scope in self.scopes]
            same = bool(found) and all(_is_same(found[0], other) for other in found)
            self._values[name] = found[0] if same else None
        return self._values[name]

    def whole_type(self, name: str) -> TypeProto | None:
        """The type of a value that is no tensor, if all places agree on it."""
        return self.scopes[0].shapes.type(name) if len(self.scopes) == 1 else None

    def is_stored(self, name: str) -> bool:
        """Whether a value is a constant that the model holds, or that an adapter has looked at."""
        if self._values.get(name) is not None:
            return True
        return bool(self.scopes) and all(
            name in scope.constants and scope.value(name) is not None for scope in self.scopes
        )

    def bound(self, index: int) -> NodeProto | None:
        """A node of a function with the attributes of its calls, if all give it the same."""
        nodes = [scope.view.nodes[index].proto for scope in self.scopes if index < len(scope.view.nodes)]
        if not nodes or any(node.SerializeToString() != nodes[0].SerializeToString() for node in nodes):
            return None
        return nodes[0]

    def bind(self, nodes: Sequence[NodeProto]) -> list[NodeProto] | None:
        """Nodes of a function with the attributes of its first call; None if nothing calls it."""
        view: GraphView | None = self.scopes[0].view if self.scopes else None
        while view is not None and not view.isolated:
            view = view.parent
        if view is None or view.owner is None or view.parent is None:
            return None
        function = FunctionProto()
        called = view.parent.function_of(view.owner)
        assert called is not None
        function.attribute_proto.extend(called.attribute_proto)
        function.node.extend(nodes)
        return bind(function, view.owner.proto)

    def _is_own(self, name: str) -> bool:
        """Whether the source makes a value too: then what is known of that holds for what is made in its place."""
        return bool(self.scopes) and all(scope.view.defines(name) for scope in self.scopes)

    def _agreed(self, ask: Callable[[Scope], _T | None]) -> _T | None:
        found = {ask(scope) for scope in self.walked}
        return found.pop() if len(found) == 1 else None


def _element(scope: Scope, name: str) -> int | None:
    view: GraphView | None = scope.view
    while view is not None:
        if name in view.initializers:
            return view.initializers[name].data_type
        declared = view.types.get(name)
        if declared is not None and declared.tensor_type.elem_type:
            return declared.tensor_type.elem_type
        if view.defines(name) or view.isolated:
            break
        view = view.parent
    found = element_in(view, name) if view is not None else None
    return found if found is not None else scope.shapes.element(name)


def _kind(scope: Scope, name: str) -> str | None:
    element = _element(scope, name)
    if element is not None:
        return type_text(element)
    found = scope.shapes.type(name)
    return None if found is None else spelled(found)


def _dims(scope: Scope, name: str) -> Dims | None:
    view: GraphView | None = scope.view
    while view is not None:
        if name in view.initializers:
            return tuple(view.initializers[name].dims)
        declared = view.types.get(name)
        if declared is not None and declared.tensor_type.HasField("shape"):
            sizes = [dim.dim_value if dim.HasField("dim_value") else None for dim in declared.tensor_type.shape.dim]
            if None not in sizes:
                return tuple(sizes)
            break
        if view.defines(name) or view.isolated:
            break
        view = view.parent
    found = scope.shapes.dims(name)
    return None if found is None else tuple(dim if isinstance(dim, int) else None for dim in found)


def _is_one_shape(scope: Scope, names: Sequence[str]) -> bool:
    found = [scope.shapes.dims(name) for name in names]
    return None not in found and len(set(found)) == 1 and None not in (found[0] or ())


def _value(scope: Scope, name: str) -> Array | None:
    if name in scope.constants:
        stored = scope.value(name)
        return stored if stored is not None else _computed(scope, name)
    view = scope.view
    if view.isolated and name in view.inputs and view.owner is not None and view.parent is not None:
        place = list(view.inputs).index(name)
        if place >= len(view.owner.proto.input):
            return None
        return _value(_outer(scope, view.parent), view.owner.proto.input[place])
    if not view.isolated and view.parent is not None and not view.defines(name):
        return _value(_outer(scope, view.parent), name)
    return _from_shapes(scope, name)


def _repeats(scope: Scope, shape: str, data: str) -> bool:
    wanted, dims = scope.shapes.data(shape), scope.shapes.dims(data)
    if wanted is None:
        return False
    for place, size in enumerate(wanted):
        if isinstance(size, int) and size != 0:
            continue
        if size is None or dims is None or place >= len(dims) or dims[place] != size:
            return False
    return True


def _outer(scope: Scope, view: GraphView) -> Scope:
    return Scope(scope.model, view, scope.known, scope.options)


def _computed(scope: Scope, name: str) -> Array | None:
    """A constant that nodes compute."""
    view = scope.view
    if name not in view.producer:
        if name in view.sparse:
            sparse = view.sparse[name]
            return filled(sparse) if len(sparse.dims) <= 1 else None
        tensor = view.initializers.get(name)
        if tensor is None or len(tensor.dims) > 1:
            return None
        from onnxbench.core.weights import array

        return array(scope.model, tensor)
    found = Evaluator(scope).run(view.cone([name]), [name]).get(name)
    return found if isinstance(found, np.ndarray) else None


def _from_shapes(scope: Scope, name: str) -> Array | None:
    """What is constant through shapes: the size of a tensor whose dims are numbers."""
    data = scope.shapes.data(name)
    if data is None or not all(isinstance(element, int) for element in data):
        return None
    dims, element = scope.shapes.dims(name), scope.shapes.element(name)
    if dims is None or element is None or not all(isinstance(dim, int) for dim in dims):
        return None
    from onnx import helper

    return np.array(data, helper.tensor_dtype_to_np_dtype(element)).reshape([int(str(dim)) for dim in dims])


def _is_same(one: Array | None, other: Array | None) -> bool:
    if one is None or other is None:
        return False
    return one.dtype == other.dtype and one.shape == other.shape and bool(np.array_equal(one, other))
