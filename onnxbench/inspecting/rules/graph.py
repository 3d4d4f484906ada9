"""What is odd in the graph: order, names, leftovers, missing types, sizes that were baked in."""

from __future__ import annotations

from collections.abc import Iterator

from onnx import TypeProto

from onnxbench.core.check import NO_ANSWER
from onnxbench.core.shapes import Shapes
from onnxbench.core.symbolic import Expr
from onnxbench.errors import quote
from onnxbench.inspecting.header import describe, dims_of
from onnxbench.inspecting.problems import Facts, and_more, problem

Finding = Iterator[tuple[str, str, str]]


@problem("OB640", "warning", "the nodes are not in an order that can run")
def _unsorted(facts: Facts) -> Finding:
    view = facts.view
    for node in view.nodes:
        late = next((n for n in node.inputs if n in view.producer and view.producer[n].index > node.index), None)
        if late is not None:
            yield node.label, f"it comes before the node that makes {quote(late)}", ""
            return


@problem("OB641", "info", "two nodes have one name")
def _same_name(facts: Facts) -> Finding:
    for name, nodes in facts.view.by_name.items():
        if len(nodes) > 1:
            yield f"node {quote(name)}", f"{len(nodes)} nodes have this name", ""


@problem("OB642", "info", "a node's results reach no output")
def _dead(facts: Facts) -> Finding:
    if facts.dead:
        yield (
            and_more(facts.view.nodes[facts.dead[0]].label, len(facts.dead)),
            "nothing that it makes reaches an output",
            "",
        )


@problem("OB643", "info", "an initializer is not used")
def _unused(facts: Facts) -> Finding:
    names = facts.tensors.unused
    if names:
        yield and_more(f"initializer {quote(names[0])}", len(names)), "no node reads it", ""


@problem("OB644", "info", "equal weights are stored more than once")
def _duplicates(facts: Facts) -> Finding:
    if facts.tensors.duplicates:
        first = facts.tensors.duplicates[0]
        yield (
            f"initializer {quote(first[0])}",
            f"{len(facts.tensors.duplicates)} groups of equal tensors hold {facts.tensors.duplicate_bytes} bytes too many",
            "",
        )


@problem("OB645", "info", "the type of a value is unknown")
def _untyped(facts: Facts) -> Finding:
    names = untyped(facts)
    if names:
        yield and_more(f"value {quote(names[0])}", len(names)), "neither the file nor inference tells its type", ""


@problem("OB646", "warning", "a declared type is not what the graph computes")
def _stale(facts: Facts) -> Finding:
    for conflict in facts.shapes.conflicts:
        yield (
            f"value {quote(conflict.name)}",
            f"declared {_words(conflict.declared)}, computed {_words(conflict.computed)}",
            "",
        )


@problem("OB647", "info", "a type is declared for a value that is not there")
def _absent(facts: Facts) -> Finding:
    view = facts.view
    names = [value.name for value in view.graph.value_info if not view.defines(value.name)]
    if names:
        yield and_more(f"value {quote(names[0])}", len(names)), "no node makes it", ""


@problem("OB648", "warning", "shape inference or the checker gave no answer")
def _no_inference(facts: Facts) -> Finding:
    if facts.note:
        yield "model", facts.note, _more_of(facts.note)
    if facts.fault == NO_ANSWER:
        yield "model", facts.fault, "--timeout"


def _more_of(note: str) -> str:
    """The option that would have helped; more of nothing helps against an error."""
    return "--timeout" if "no answer after" in note else "--max-memory" if "memory cap" in note else ""


@problem("OB649", "warning", "the batch size is baked into a Reshape")
def _baked(facts: Facts) -> Finding:
    """A Reshape whose data has a symbol in front, and whose constant shape has a number there that is neither 0 nor -1."""
    for node in facts.view.nodes:
        if node.proto.op_type != "Reshape" or node.proto.domain not in ("", "ai.onnx") or len(node.inputs) < 2:
            continue
        dims, wanted = facts.shapes.dims(node.inputs[0]), facts.shapes.data(node.inputs[1])
        if not dims or not wanted or not isinstance(dims[0], Expr) or len(wanted) < 2:
            continue
        if wanted[0] == 1 and -1 not in wanted[1:] and any(isinstance(dim, int) for dim in dims[1:]):
            yield node.label, f"its input starts with {dims[0]}, its shape with the constant 1", "0 or -1 keeps it open"
        elif isinstance(wanted[0], int) and wanted[0] > 1 and -1 not in wanted[1:]:
            message = f"its input starts with {dims[0]}, its shape with the constant {wanted[0]}"
            yield node.label, message, "0 or -1 keeps it open"


def _words(kind: TypeProto) -> str:
    dims = dims_of(kind)
    inside = "..." if dims is None else ", ".join("?" if dim is None else str(dim) for dim in dims)
    return f"{describe(kind).lower()}[{inside}]"


def untyped(facts: Facts) -> list[str]:
    """Values of the top graph without a known element type."""
    made = [name for node in facts.view.nodes for name in node.outputs if name]
    return [name for name in made if not is_typed(facts.shapes, name)]


def is_typed(shapes: Shapes, name: str) -> bool:
    """Whether anything is known of a value's type: tensors, nearly all, are asked for first."""
    return shapes.element(name) is not None or shapes.type(name) is not None
