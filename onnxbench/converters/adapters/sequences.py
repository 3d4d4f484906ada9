"""Loop before 13 carries no sequences, before 16 nothing that is optional: a sequence of lists that rounds only add to is
carried as one list, and the lengths of its parts.

Sources: ai.onnx Loop-11, 13, 16, SequenceInsert-11, SplitToSequence-11.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from onnx import GraphProto, NodeProto, TensorProto, ValueInfoProto, helper

from onnxbench.converters import rules, schemas
from onnxbench.converters.adapters import adapter
from onnxbench.converters.site import Site
from onnxbench.core.attributes import subgraphs

_WHOLE = int(TensorProto.INT64)


def _nothing_optional(site: Site) -> None:
    """What is carried has the types that the body declares."""
    body, new = site.body(site.node, "body"), site.step.new
    assert new is not None
    allowed = schemas.allowed(new, "V")
    kinds = [schemas.spelled(value.type) for value in (*list(body.input)[2:], *list(body.output)[1:])]
    if any(kind is None for kind in kinds):
        rules.keep(site)
        return
    beyond = [kind for kind in kinds if kind not in allowed]
    if beyond:
        site.refuse(f"Loop-{new.since_version} does not take {beyond[0]}")
    site.same()


@dataclass(frozen=True, slots=True)
class _Growing:
    """A sequence that a loop carries.

    Attributes:
        place: among what is carried.
        insert: the node that adds to it.
        element: the element type of its lists.
    """

    place: int
    insert: NodeProto
    element: int


def _no_sequences(site: Site) -> None:
    body = site.body(site.node, "body")
    carried = len(site.node.input) - 2
    growing = [
        _growing(site, body, place)
        for place in range(carried)
        if body.input[place + 2].type.WhichOneof("value") == "sequence_type"
    ]
    if not growing:
        rules.keep(site)
        return
    found = {each.place: each for each in growing}
    inputs, outputs, behind = list(site.node.input)[:2], [], []
    copy = GraphProto()
    copy.CopyFrom(body)
    del copy.input[2:], copy.output[1:]
    replaced: dict[str, list[NodeProto]] = {}
    for place in range(carried):
        value, made = body.input[place + 2], body.output[place + 1]
        name = site.output(place)
        if place not in found:
            inputs.append(site.input(place + 2))
            copy.input.append(value)
            copy.output.append(made)
            outputs.append(name)
            continue
        each = found[place]
        flat, lengths = _flattened(site, site.input(place + 2), each.element)
        inputs += [flat, lengths]
        before, after = site.fresh("lengths"), site.fresh("lengths")
        copy.input.extend([_list_of(value.name, each.element), _list_of(before, _WHOLE)])
        copy.output.extend([_list_of(made.name, each.element), _list_of(after, _WHOLE)])
        replaced[made.name] = _appended(site, each.insert, before, after)
        ends = [site.fresh("flat"), site.fresh("lengths")]
        outputs += ends
        behind.append((name, *ends))
    copy.output.extend(list(body.output)[carried + 1 :])
    outputs += list(site.node.output)[carried:]
    nodes = [inner for node in body.node for inner in replaced.get(node.output[0] if node.output else "", [node])]
    del copy.node[:]
    copy.node.extend(nodes)
    site.same(inputs, outputs, body=copy)
    for name, flat, lengths in behind:
        if name:
            _parted(site, name, flat, lengths)


def _growing(site: Site, body: GraphProto, place: int) -> _Growing:
    """What is to be known of a sequence that is carried.

    Raises:
        Refused: unless rounds only add one list at its end.
    """
    value, made = body.input[place + 2], body.output[place + 1].name
    inner = value.type.sequence_type.elem_type.tensor_type
    if not inner.HasField("shape") or len(inner.shape.dim) != 1 or not inner.elem_type:
        site.refuse("Loop-11 carries no sequences, and this one is not known to be of lists")
    insert = next((node for node in body.node if made in node.output), None)
    adds = insert is not None and insert.op_type == "SequenceInsert" and len(insert.input) == 2
    uses = list(_used(body))
    if insert is None or not adds or insert.input[0] != value.name or uses.count(value.name) != 1 or made in uses:
        site.refuse("Loop-11 carries no sequences, and its rounds do more with this one than to add to it")
    return _Growing(place, insert, int(inner.elem_type))


def _used(graph: GraphProto) -> Iterator[str]:
    """Every input of every node, in bodies too, and what they give."""
    for node in graph.node:
        yield from node.input
        for _, body in subgraphs(node):
            yield from _used(body)
            yield from (value.name for value in body.output)


def _list_of(name: str, element: int) -> ValueInfoProto:
    return helper.make_tensor_value_info(name, element, [None])


def _empty(site: Site, element: int, wish: str) -> str:
    return site.const([], wish, helper.tensor_dtype_to_np_dtype(element))


def _flattened(site: Site, sequence: str, element: int) -> tuple[str, str]:
    """The lists of a sequence as one, and their lengths. One of nothing is added: what is joined may not be no lists."""
    some = site.add("SequenceInsert", sequence, _empty(site, element, "nothing"), wish="some")
    flat = site.add("ConcatFromSequence", some, axis=0, wish="flat")
    number, going, so_far, on, each, size, after = (
        site.fresh(name) for name in ("number", "going", "lengths", "going", "each", "size", "lengths")
    )
    nodes = [
        helper.make_node("Identity", [going], [on]),
        helper.make_node("SequenceAt", [sequence, number], [each]),
        helper.make_node("Shape", [each], [size]),
        helper.make_node("Concat", [so_far, size], [after], axis=0),
    ]
    truth = int(TensorProto.BOOL)
    body = helper.make_graph(
        nodes,
        "lengths",
        [
            helper.make_tensor_value_info(number, _WHOLE, []),
            helper.make_tensor_value_info(going, truth, []),
            _list_of(so_far, _WHOLE),
        ],
        [helper.make_tensor_value_info(on, truth, []), _list_of(after, _WHOLE)],
    )
    count = site.add("SequenceLength", sequence, wish="count")
    yes = site.const(True, "yes", np.bool_)
    lengths = site.add("Loop", count, yes, _empty(site, _WHOLE, "no_lengths"), wish="lengths", body=body)
    return flat, lengths


def _appended(site: Site, insert: NodeProto, before: str, after: str) -> list[NodeProto]:
    """The nodes of the body that add a list."""
    state, new = insert.input
    size = site.fresh("size")
    return [
        helper.make_node("Concat", [state, new], list(insert.output), name=insert.name, axis=0),
        helper.make_node("Shape", [new], [size]),
        helper.make_node("Concat", [before, size], [after], axis=0),
    ]


def _parted(site: Site, name: str, flat: str, lengths: str) -> None:
    """The sequence again; a part of nothing at the end is there, and taken off, for there may be no others."""
    more = site.add("Concat", lengths, site.const([0], "zero"), axis=0, wish="lengths")
    parts = site.add("SplitToSequence", flat, more, axis=0, keepdims=1, wish="parts")
    site.add("SequenceErase", parts)
    made = site.made[-1]
    site.facts.made.pop(made.output[0], None)
    made.output[0] = name


adapter("Loop", 16, 13)(_nothing_optional)
adapter("Loop", 13, 11)(_no_sequences)
