"""Types of every value of a model, with sizes as expressions over its symbols: what onnx's inference gives up on too.

Each node goes by its own rule (`shape_rules`), nodes without one by onnx's inference of that node, and where something
is left open onnx's inference of the whole model is asked as well. Nothing that the file declares is lost; what follows
from the inputs wins over a stale declaration, and the two are reported as a conflict.

Claims hold for runs in which every window of a convolution or pooling fits its padded input: what runtimes make of
smaller ones (ONNX Runtime lets a pooling window that is too large fit once) would stand in every size as a maximum.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from onnx import ModelProto, TypeProto

from onnxbench import isolate
from onnxbench.core.attributes import subgraphs
from onnxbench.core.graph import GraphView, Node
from onnxbench.core.model import Model
from onnxbench.core.shape_rules.facts import BOOL, Dim, Dims, Fact, is_whole, join, to_type
from onnxbench.core.shape_rules.light import declared_texts, lighten, pin, without_inner_names
from onnxbench.core.shape_rules.making import stored
from onnxbench.core.shape_rules.merging import read_type
from onnxbench.core.shape_rules.symbols import Path, Symbols
from onnxbench.core.shape_rules.walker import Walker
from onnxbench.core.symbolic import Expr, Size, lone
from onnxbench.core.types import run_inference

#: A walk is done again with what it found to be unreliable left out, at most so often.
_WALKS = 4


@dataclass(frozen=True, slots=True)
class Conflict:
    """A declared type that contradicts what follows from the inputs; `where` is its body, empty for the main graph."""

    name: str
    declared: TypeProto
    computed: TypeProto
    where: str = ""


@dataclass(slots=True)
class Shapes:
    """What is known of the values of a model, by name.

    Questions are answered for one scope: the main graph, where names that only bodies have are answered if all bodies
    agree; `of` gives the scope of a body or function call.

    Attributes:
        conflicts: declared types that contradict what was computed.
        made_up: symbols that stand for a size that only a run tells.
        note: why this is only what the file declares, or why onnx's own inference is missing; else empty.
    """

    conflicts: list[Conflict] = field(default_factory=list)
    made_up: frozenset[str] = frozenset()
    note: str = ""
    _facts: dict[Path, dict[str, Fact]] = field(default_factory=dict)
    _trips: dict[tuple[Path, int], Size] = field(default_factory=dict)
    _here: Path = ()
    _inner: dict[str, Fact] | None = None

    def element(self, name: str) -> int | None:
        """The element type of a tensor; None if it is unknown, or no tensor."""
        return self._fact(name).element

    def dims(self, name: str) -> tuple[Size | None, ...] | None:
        """The dims of a tensor; None if not even the rank is known."""
        return self._fact(name).dims

    def data(self, name: str) -> tuple[Size | None, ...] | None:
        """The elements of a small tensor of integers or booleans, in row-major order, as far as they are known."""
        fact = self._fact(name)
        if fact.data is None or not (is_whole(fact.element) or fact.element == BOOL):
            return None
        values = tuple(None if isinstance(value, float) else value for value in fact.data)
        return values if any(value is not None for value in values) or not values else None

    def type(self, name: str) -> TypeProto | None:
        """The type as ONNX says it, expressions as text; None if the element type is unknown."""
        return to_type(self._fact(name))

    def rounds(self, view: GraphView, node: Node) -> Size | None:
        """How often the body of a Loop or Scan node of a view runs; None if that is unknown."""
        return self._trips.get((_path(view), node.index))

    def of(self, view: GraphView) -> Shapes:
        """The answers for the scope of a view: the main graph, a body, or a function call."""
        return Shapes(self.conflicts, self.made_up, self.note, self._facts, self._trips, _path(view), {})

    def covers(self, view: GraphView) -> bool:
        """Whether the values of a scope are known by themselves; a call like another is not walked again."""
        return _path(view) in self._facts

    def axes_of(self, symbols: set[str]) -> dict[str, tuple[str, int]]:
        """Some value and the axis of it whose size each symbol is, in any scope; those of none are left out."""
        found: dict[str, tuple[str, int]] = {}
        for facts in self._facts.values():
            for name, fact in facts.items():
                for axis, dim in enumerate(fact.dims or ()):
                    if (symbol := lone(dim)) in symbols:
                        found.setdefault(symbol, (name, axis))
        return found

    def _fact(self, name: str) -> Fact:
        path = self._here
        while True:
            fact = self._facts.get(path, {}).get(name)
            if fact is not None:
                return fact
            if not path or not path[-1][1]:  # a function sees nothing of its caller
                break
            path = path[:-1]
        return self._of_bodies().get(name, Fact())

    def _of_bodies(self) -> dict[str, Fact]:
        """What all bodies that have a name agree on."""
        if self._inner is None:
            self._inner = {}
            for path, facts in self._facts.items():
                if path:
                    for name, fact in facts.items():
                        self._inner[name] = join(self._inner[name], fact) if name in self._inner else fact
        return self._inner


def propagate(
    model: Model,
    *,
    dims: Mapping[str, int] | None = None,
    shapes: Mapping[str, Sequence[int]] | None = None,
    timeout: float | None = 20.0,
    memory: int | None = None,
) -> Shapes:
    """Types and sizes of every value, bodies and function calls included.

    The work is done in a worker: onnx's inference hangs on some models and dies of others. What then is left is the
    result without it, or what the file declares; `note` says so.

    Args:
        model: the model; it is not changed.
        dims: sizes of symbols, by name.
        shapes: shapes of inputs, by name.
        timeout: seconds in all.
        memory: cap of the worker in bytes.

    Raises:
        NameNotFound: OB303 for an input or symbol that the model has not.
        UsageError: OB206 if a shape does not fit its input, or a symbol is given two sizes.
    """
    started = time.monotonic()

    def left() -> float | None:
        return None if timeout is None else max(0.5, timeout - (time.monotonic() - started))

    light = lighten(model)
    values = pin(light, dims or {}, shapes or {})
    serialized = light.SerializeToString()
    arguments = (serialized, values)
    budget = None if timeout is None else timeout / 2
    result = isolate.call_light(run_walk, (*arguments, True, None), timeout=budget, memory=memory)
    note = ""
    if not isinstance(result, isolate.Ok):
        note = f"onnx's inference of single nodes was left out: {_reason(result)}"
        result = isolate.call_light(run_walk, (*arguments, False, None), timeout=left(), memory=memory)
    if not isinstance(result, isolate.Ok):
        return _declared(light, values, f"only what the file declares: {_reason(result)}")
    answer = result.value
    if answer[-1]:
        outer = without_inner_names(light).SerializeToString()
        whole = isolate.call_light(run_inference, (outer,), timeout=_half(left()), memory=memory)
        if isinstance(whole, isolate.Ok):
            again = isolate.call_light(run_walk, (*arguments, not note, whole.value), timeout=left(), memory=memory)
            answer = again.value if isinstance(again, isolate.Ok) else answer
        else:
            note = note or f"without onnx's inference of the whole model: {_reason(whole)}"
    facts, trips, conflicts, made_up, _ = answer
    return Shapes([_conflict(*entry) for entry in conflicts], made_up, note, facts, trips)


_Answer = tuple[
    dict[Path, dict[str, Fact]],
    dict[tuple[Path, int], Size],
    list[tuple[Path, str, bytes, bytes]],
    frozenset[str],
    bool,
]


def run_walk(serialized: bytes, values: Mapping[str, int], single: bool, whole: bytes | None) -> _Answer:
    """Walk a model; for a worker. The last of the answer says whether something is left that onnx might know.

    A declared symbol that stands for two sizes at once, and dims of a file where one declaration is stale, are left out
    of the next walk.
    """
    view = _main(ModelProto.FromString(serialized))
    inferred = ModelProto.FromString(whole) if whole is not None else None
    texts = frozenset(declared_texts(view.model))
    unreliable: set[str] = set()
    trusting = True
    conflicts: dict[tuple[Path, str], tuple[TypeProto, TypeProto]] = {}
    for _ in range(_WALKS):
        symbols = Symbols(texts, values, set(unreliable))
        walker = Walker(symbols, trusting, single)
        walker.main(view, _main(inferred) if inferred is not None and trusting else None)
        conflicts = {**conflicts, **walker.conflicts}
        stale = trusting and any(not path and name not in view.outputs for path, name in walker.conflicts)
        if symbols.unreliable <= unreliable and not stale:
            break
        unreliable |= symbols.unreliable
        trusting = trusting and not stale
    made = frozenset(symbols.made - symbols.fed - symbols.bindings.keys())
    entries = [(path, name, *(kind.SerializeToString() for kind in pair)) for (path, name), pair in conflicts.items()]
    facts = _interned(walker.facts)
    return facts, walker.trips, entries, made, _is_open(facts, made)


def _main(model: ModelProto) -> GraphView:
    return GraphView(model, model.graph)


def _interned(facts: dict[Path, dict[str, Fact]]) -> dict[Path, dict[str, Fact]]:
    """The same facts with equal ones shared, which makes them cheap to send."""
    known: dict[Fact, Fact] = {}
    sizes: dict[Dims, Dims] = {}
    met: dict[int, tuple[Fact, Fact]] = {}  # by identity, which is faster; the facts are kept, and so their identities
    for values in facts.values():
        for name, fact in values.items():
            pair = met.get(id(fact))
            if pair is None:
                if fact not in known:
                    shared = sizes.setdefault(fact.dims, fact.dims) if fact.dims is not None else None
                    known[fact] = dataclasses.replace(fact, dims=shared)
                pair = met[id(fact)] = (fact, known[fact])
            values[name] = pair[1]
    return facts


def _is_open(facts: dict[Path, dict[str, Fact]], made: frozenset[str]) -> bool:
    """Whether a value is there of which something is unknown."""
    different = {id(fact): fact for values in facts.values() for fact in values.values()}
    return any(_is_unknown(fact, made) for fact in different.values())


def _is_unknown(fact: Fact, made: frozenset[str]) -> bool:
    if fact.kind != "tensor":
        return fact.inner is None
    if fact.element is None or fact.dims is None:
        return True
    return any(isinstance(dim, Expr) and not made.isdisjoint(dim.symbols) for dim in fact.dims)


def _declared(model: ModelProto, values: Mapping[str, int], note: str) -> Shapes:
    """What the file says by itself."""
    symbols = Symbols(frozenset(declared_texts(model)), values, set())
    facts: dict[Path, dict[str, Fact]] = {}

    def add(view: GraphView, path: Path) -> None:
        read = symbols.read if not path else _nothing  # a name of the main graph may be another size in a body
        facts[path] = {name: read_type(kind, read) for name, kind in view.types.items()}
        for name, proto in view.initializers.items():
            facts[path].setdefault(name, stored(proto))
        for node in view.nodes:
            for label, body in view.bodies(node):
                add(body, (*path, (node.index, label)))

    add(_main(model), ())
    return Shapes(note=note, _facts=facts)


def _nothing(_: str) -> Dim:
    return None


def _path(view: GraphView) -> Path:
    """The way from the main graph to a view."""
    if view.parent is None or view.owner is None:
        return ()
    label = "" if view.isolated else _label(view)
    return (*_path(view.parent), (view.owner.index, label))


def _label(view: GraphView) -> str:
    assert view.owner is not None
    held = list(subgraphs(view.owner.proto))
    return next((label for label, graph in held if graph is view.graph), held[0][0])


def _conflict(path: Path, name: str, declared: bytes, computed: bytes) -> Conflict:
    where = "/".join(f"{index}:{label}" for index, label in path)
    return Conflict(name, TypeProto.FromString(declared), TypeProto.FromString(computed), where)


def _half(seconds: float | None) -> float | None:
    return None if seconds is None else seconds / 2


def _reason(result: isolate.Result) -> str:
    match result:
        case isolate.Timeout(seconds=seconds):
            return f"no answer after {seconds:.0f} s"
        case isolate.Crash(signal=signal):
            return f"the worker died ({signal})"
        case isolate.Memory():
            return "the memory cap was reached"
        case isolate.Error(kind=kind, message=message):
            return f"{kind}: {message}"
    return "no answer"
