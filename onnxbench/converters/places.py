"""The graphs of a model as places where something is known: the main graph, bodies, functions in their calls."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache, cached_property

from onnx import FunctionProto, GraphProto, ModelProto, NodeProto

from onnxbench.converters.facts import Facts
from onnxbench.converters.options import ConvertOptions
from onnxbench.core.attributes import nodes_below
from onnxbench.core.graph import FunctionKey, GraphView, call_key, function_key, opset_imports
from onnxbench.core.model import Model
from onnxbench.core.shapes import Shapes, propagate
from onnxbench.errors import BenchError
from onnxbench.folding.options import FoldOptions
from onnxbench.folding.scope import Scope

#: Calls of one function that are looked at; what more of them agree on is not asked.
_MOST_CALLS = 64


class Places:
    """Facts of every graph of a model; nothing is found out before it is asked for."""

    def __init__(self, model: Model, options: ConvertOptions) -> None:
        self._model = model
        self._options = FoldOptions(limits=options.limits)
        self.opsets = opset_imports(model.proto.opset_import)
        if model.proto.ir_version < 3:
            self.opsets.setdefault("", 1)  # before IR version 3 nothing says it

    def opsets_of(self, function: FunctionProto) -> dict[str, int]:
        """What a function imports; the model's where it says nothing."""
        return {**self.opsets, **opset_imports(function.opset_import)}

    def main(self) -> Facts:
        return Facts(lambda: [self._main])

    def function(self, function: FunctionProto) -> Facts:
        key = function_key(function)
        return Facts(lambda: self._calls.get(key, []), lambda name: name in self._given[key])

    def training(self, graph: GraphProto, name: str) -> Facts:
        """Of a graph of `training_info`; the algorithm sees what the main graph has."""

        def place() -> Sequence[Scope]:
            parent = self._main.view if name == "algorithm" else None
            return [self._scope(GraphView(self._model.proto, graph, opsets=self.opsets, parent=parent), Shapes)]

        return Facts(place)

    @staticmethod
    def body(facts: Facts, index: int, label: str) -> Facts:
        """Of a body of a node of a place."""

        def places() -> Sequence[Scope]:
            found = []
            for scope in facts.scopes:
                bodies = dict(scope.view.bodies(scope.view.nodes[index]))
                if label in bodies:
                    found.append(Scope(scope.model, bodies[label], scope.known, scope.options))
            return found

        return Facts(places, facts.gives)

    @cached_property
    def _given(self) -> dict[FunctionKey, set[str]]:
        """The attributes of each function that it has a default for, or every call of it gives."""
        functions = {function_key(function): function for function in self._model.proto.functions}
        defaults = {key: {entry.name for entry in function.attribute_proto} for key, function in functions.items()}
        given = {key: {*functions[key].attribute, *defaults[key]} for key in functions}
        calls = [(owner, node) for owner, node in _owned(self._model.proto) if call_key(node) in functions]
        changed = True
        while changed:  # what one function hands on to another is given if it is given to the one
            changed = False
            for owner, node in calls:
                key = call_key(node)
                known = defaults[key] | {
                    entry.name
                    for entry in node.attribute
                    if not entry.ref_attr_name or owner is None or entry.ref_attr_name in given[owner]
                }
                changed = changed or not given[key] <= known
                given[key] &= known
        return given

    @cached_property
    def _main(self) -> Scope:
        return self._scope(GraphView(self._model.proto, self._model.proto.graph, opsets=self.opsets), self._known)

    def _scope(self, view: GraphView, known: Callable[[], Shapes]) -> Scope:
        return Scope(self._model, view, cache(known), self._options)

    def _known(self) -> Shapes:
        if not hasattr(self, "_shapes"):
            limits = self._options.limits
            self._shapes = propagate(self._model, timeout=self._options.inference_time, memory=limits.memory)
        return self._shapes

    @cached_property
    def _calls(self) -> dict[FunctionKey, list[Scope]]:
        """The calls of each function, as views of what they call."""
        found: dict[FunctionKey, list[Scope]] = {}
        for view in self._called(self._main.view):
            assert view.owner is not None
            assert view.parent is not None
            function = view.parent.function_of(view.owner)
            assert function is not None
            key = function_key(function)
            found.setdefault(key, []).append(self._scope(view, self._known))
        return {key: calls if len(calls) < _MOST_CALLS else [] for key, calls in found.items()}

    def _called(self, view: GraphView, left: list[int] | None = None) -> Iterator[GraphView]:
        left = [_MOST_CALLS * max(1, len(self._model.proto.functions))] if left is None else left
        for node in view.nodes:
            if node.proto.attribute:
                for _, body in view.bodies(node):
                    yield from self._called(body, left)
            if view.function_of(node) is None or left[0] <= 0:
                continue
            left[0] -= 1
            try:
                called = view.call(node)
            except BenchError:  # it calls itself
                continue
            if called is not None:
                yield called
                yield from self._called(called, left)


def _owned(model: ModelProto) -> Iterator[tuple[FunctionKey | None, NodeProto]]:
    """Every node with the function that it stands in."""
    for node in nodes_below(model.graph.node):
        yield None, node
    for function in model.functions:
        for node in nodes_below(function.node):
            yield function_key(function), node
    for info in model.training_info:
        for graph in (info.initialization, info.algorithm):
            for node in nodes_below(graph.node):
                yield None, node
