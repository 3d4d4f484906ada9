"""Operators with bodies, and calls of functions: If, Loop, Scan, SequenceMap."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from onnxbench.core.graph import GraphView, Node
from onnxbench.core.shape_rules.facts import BOOL, INT64, NOTHING, Dim, Fact, join, sequence, tensor
from onnxbench.core.shape_rules.site import Site, as_size
from onnxbench.core.sizes import lone_shape
from onnxbench.core.symbolic import largest
from onnxbench.errors import ModelError

if TYPE_CHECKING:
    from onnxbench.core.shape_rules.walker import Scope, Walker

Special: TypeAlias = "Callable[[Walker, Scope, Node, Site], Sequence[Fact] | None]"

#: Walks through a loop's body until what goes round is as vague as it has to be; then nothing is known of it.
_PATIENCE = 6


def call(walker: Walker, scope: Scope, node: Node, site: Site) -> Sequence[Fact]:
    """A function is walked once for each call."""
    try:
        view = scope.view.call(node)
    except ModelError:
        return ()
    assert view is not None
    inner = walker.enter(scope, node, "", view, conditional=False)
    for place, name in enumerate(view.inputs):
        inner.facts[name] = site.input(place)
    walker.walk(inner)
    return [inner.find(name) for name in view.outputs]


def branch(walker: Walker, scope: Scope, node: Node, site: Site) -> Sequence[Fact]:
    """What holds for both branches; that of the branch taken, where the condition is known."""
    results: dict[str, list[Fact]] = {}
    for label, view in scope.view.bodies(node):
        inner = walker.enter(scope, node, label, view, conditional=True)
        walker.walk(inner)
        results[label] = [walker.resolved(inner.find(name)) for name in view.outputs]
    condition = site.numbers(0)
    if condition:
        return results.get("then_branch" if condition[0] else "else_branch", [])
    pairs = zip(results.get("then_branch", []), results.get("else_branch", []), strict=False)
    return [join(one, other) for one, other in pairs]


def loop(walker: Walker, scope: Scope, node: Node, site: Site) -> Sequence[Fact]:
    """Carried values keep what the body keeps; scanned ones are stacked, one per round."""
    ((label, view),) = scope.view.bodies(node)
    condition = site.numbers(1) if site.given(1) else [1]
    start = condition[0] if condition else None
    carried = [site.input(place) for place in range(2, len(site.inputs))]
    shapes = [lone_shape(info.type) for info in [*view.inputs.values()][:2]]
    first = [Fact(INT64, shapes[0], (None,)), Fact(BOOL, shapes[1], (1 if start == 1 else None,))]
    inner, state = _settle(walker, scope, node, label, view, first, carried, [], skip=1)
    goes_on = inner.find(view.outputs[0]).data == (1,)
    rounds: Dim = None
    if start == 0:
        rounds = 0
    elif site.given(0) and site.input(0).data and goes_on and start == 1:
        limit = as_size((site.input(0).data or (None,))[0])
        rounds = limit if limit is None or site.never_negative(limit) else largest(limit, 0)
    if rounds is not None:
        walker.trips[scope.path, node.index] = rounds
    scanned = [inner.find(name) for name in view.outputs[1 + len(carried) :]]
    return [*state, *(_stacked(walker, inner, fact, rounds, 0) for fact in scanned)]


def scan(walker: Walker, scope: Scope, node: Node, site: Site) -> Sequence[Fact] | None:
    """Scanned inputs lose their axis in the body, scanned outputs gain one; all have the same length."""
    if site.version < 9:
        return None
    ((label, view),) = scope.view.bodies(node)
    count = site.integer("num_scan_inputs", 0)
    states = len(site.inputs) - count
    axes = site.ints("scan_input_axes") or [0] * count
    scanned, lengths = [], []
    for place, axis in enumerate(axes):
        fact = site.input(states + place)
        if fact.dims is None:
            scanned.append(tensor(fact.element))
            continue
        axis = axis + len(fact.dims) if axis < 0 else axis
        lengths.append(fact.dims[axis])
        scanned.append(tensor(fact.element, (*fact.dims[:axis], *fact.dims[axis + 1 :])))
    rounds = site.same(*lengths)
    carried = [site.input(place) for place in range(states)]
    inner, state = _settle(walker, scope, node, label, view, [], carried, scanned, skip=0)
    if rounds is not None:
        walker.trips[scope.path, node.index] = rounds
    names = view.outputs[states:]
    out_axes = site.ints("scan_output_axes") or [0] * len(names)
    return [
        *state,
        *(_stacked(walker, inner, inner.find(n), rounds, axis) for n, axis in zip(names, out_axes, strict=True)),
    ]


def sequence_map(walker: Walker, scope: Scope, node: Node, site: Site) -> Sequence[Fact]:
    """The body runs for each member of the first sequence; other inputs are sequences as long, or tensors."""
    ((label, view),) = scope.view.bodies(node)
    inner = walker.enter(scope, node, label, view, conditional=True)
    for place, name in enumerate(view.inputs):
        fact = site.input(place)
        member = (fact.inner or NOTHING) if fact.kind == "sequence" else fact
        inner.facts[name] = walker.settle(inner, name, dataclasses.replace(member, data=None))
    walker.walk(inner)
    return [sequence(_outside(walker, inner, inner.find(name))) for name in view.outputs]


SPECIAL: dict[str, Special] = {"If": branch, "Loop": loop, "Scan": scan, "SequenceMap": sequence_map}


def _settle(
    walker: Walker,
    scope: Scope,
    node: Node,
    label: str,
    view: GraphView,
    first: Sequence[Fact],
    carried: Sequence[Fact],
    scanned: Sequence[Fact],
    *,
    skip: int,
) -> tuple[Scope, list[Fact]]:
    """Walk the body until its carried outputs tell no less than its inputs; `skip` outputs come before them."""
    state = list(carried)
    before = dict(walker.symbols.bindings)
    for attempt in range(_PATIENCE):
        inner = walker.enter(scope, node, label, view, conditional=True)
        for name, fact in zip(view.inputs, [*first, *state, *scanned], strict=False):
            inner.facts[name] = walker.settle(inner, name, fact)
        walker.walk(inner)
        names = view.outputs[skip : skip + len(state)]
        after = [join(now, walker.resolved(inner.find(name))) for now, name in zip(state, names, strict=False)]
        if after == state:
            break
        walker.symbols.restore(before)
        state = after if attempt < _PATIENCE - 2 else [Fact(kind=fact.kind, element=fact.element) for fact in after]
    return inner, state


def _stacked(walker: Walker, inner: Scope, fact: Fact, rounds: Dim, axis: int) -> Fact:
    fact = _outside(walker, inner, fact)
    if fact.dims is None:
        return tensor(fact.element)
    axis = axis + len(fact.dims) + 1 if axis < 0 else axis
    return tensor(fact.element, (*fact.dims[:axis], rounds, *fact.dims[axis:]))


def _outside(walker: Walker, inner: Scope, fact: Fact) -> Fact:
    """What can be said outside of a body that runs more than once."""
    fact = walker.resolved(fact)
    if fact.dims is None:
        return dataclasses.replace(fact, data=None)
    dims = tuple(None if walker.symbols.is_local(dim, inner.path) else dim for dim in fact.dims)
    return tensor(fact.element, dims)
