"""What is known of the inputs and outputs of a body that nobody has declared, by the node around it.

Sources: ai.onnx Loop-1 and later (a number, a condition, what is carried), Scan-9 and later (states, then slices).
"""

from __future__ import annotations

from onnx import GraphProto, NodeProto, TensorProto, helper

from onnxbench.converters.facts import Facts, Known


def declare_outputs(graph: GraphProto, facts: Facts) -> None:
    """Write what is known of the outputs of a body where it declares nothing: ONNX Runtime asks for the ranks of a Scan's."""
    for value in graph.output:
        element, rank = facts.element(value.name), facts.rank(value.name)
        if value.type.WhichOneof("value") is None and element is not None and rank is not None:
            value.type.tensor_type.elem_type = element
            value.type.tensor_type.shape.SetInParent()
            for _ in range(rank):
                value.type.tensor_type.shape.dim.add()


def known_formals(node: NodeProto, graph: GraphProto, facts: Facts) -> dict[str, Known]:
    """Facts of the inputs of a body.

    Args:
        node: the node that holds it.
        graph: the body.
        facts: of the values around the node.
    """
    names = [value.name for value in graph.input]
    if node.op_type == "Loop":
        first = [Known(int(TensorProto.INT64), 0, ()), Known(int(TensorProto.BOOL), 0, ())]
        carried = [Known(facts.element(name)) for name in node.input[2:]]  # its shape may change from round to round
        return dict(zip(names, [*first, *carried], strict=False))
    if node.op_type == "Scan":
        attributes = {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}
        states = len(node.input) - attributes.get("num_scan_inputs", 0)
        found = []
        for place, name in enumerate(node.input):
            rank, element = facts.rank(name), facts.element(name)
            if place < states:
                found.append(Known(element, rank, facts.dims(name)))
            else:
                found.append(Known(element, None if rank is None else rank - 1))
        return dict(zip(names, found, strict=False))
    return {}
