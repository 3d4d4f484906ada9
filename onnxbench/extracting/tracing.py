"""Trace what is needed to compute values, back to where the piece is to start."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from onnxbench.core.graph import GraphView, Node


def trace(view: GraphView, ends: Iterable[str], starts: Collection[str]) -> tuple[list[Node], list[str]]:
    """The nodes that compute some values from others, in file order, and all values that come from outside of them.

    Args:
        view: the graph.
        ends: what is wanted.
        starts: values that are given, wherever they are made.
    """
    wanted: dict[int, Node] = {}
    border: dict[str, None] = {}
    seen: set[str] = set()
    pending = [*ends][::-1]
    while pending:
        name = pending.pop()
        if not name or name in seen:
            continue
        seen.add(name)
        maker = None if name in starts else view.producer.get(name)
        if maker is None:
            border[name] = None
        elif maker.index not in wanted:
            wanted[maker.index] = maker
            pending.extend(reversed(maker.inputs))
    return [wanted[index] for index in sorted(wanted)], list(border)


def reached(view: GraphView, starts: Iterable[str]) -> set[str]:
    """All values that depend on some, themselves included."""
    found: set[str] = set()
    pending = list(starts)
    while pending:
        name = pending.pop()
        if name and name not in found:
            found.add(name)
            pending.extend(output for reader in view.consumers.get(name, ()) for output in reader.outputs)
    return found


def neighbourhood(view: GraphView, middle: Iterable[Node], hops: int) -> list[Node]:
    """The nodes within some hops, along values in either direction."""
    found = {node.index: node for node in middle}
    ring = list(found.values())
    for _ in range(hops):
        near = [view.producer[name] for node in ring for name in node.inputs if name in view.producer]
        near += [reader for node in ring for name in node.outputs if name for reader in view.consumers.get(name, ())]
        ring = [node for node in {node.index: node for node in near}.values() if node.index not in found]
        found.update((node.index, node) for node in ring)
        if not ring:
            break
    return [found[index] for index in sorted(found)]


def with_constants(view: GraphView, nodes: Iterable[Node]) -> list[Node]:
    """The nodes, and those that compute the constants they read: an input would take those from the runtime."""
    found = {node.index: node for node in nodes}
    constants = view.constants
    read = [name for node in found.values() for name in node.inputs if name in constants and name in view.producer]
    made = {name for node in found.values() for name in node.outputs}
    more, _ = trace(view, [name for name in read if name not in made], ())
    found.update((node.index, node) for node in more)
    return [found[index] for index in sorted(found)]


def leaving(view: GraphView, nodes: Collection[Node]) -> list[str]:
    """What others read of a block or the graph returns, in order; of a block that nobody reads what is made last."""
    inside = {node.index for node in nodes}
    returned = set(view.outputs)
    made = [name for node in nodes for name in node.outputs if name]
    used = [n for n in made if n in returned or any(r.index not in inside for r in view.consumers.get(n, ()))]
    return used or [name for name in made if name not in view.consumers]
