"""Scan: version 8 has a batch axis in front of everything.

Sources: ai.onnx Scan-8 and 9. A Scan-8 is a Scan-9 over the batch around a Scan-9 over the sequence.
"""

from __future__ import annotations

from onnx import GraphProto, TypeProto, helper

from onnxbench.converters.adapters import adapter
from onnxbench.converters.site import Site


def _up(site: Site) -> None:
    if site.input(0):
        site.refuse("its sequences have lengths of their own (sequence_lens), which Scan-9 has no place for")
    names = list(site.node.input)[1:]
    count, body = site.attr("num_scan_inputs"), site.body(site.node, "body")
    directions = site.attr("directions", []) or [0] * count
    inner_inputs = [site.fresh("in") for _ in names]
    inner_outputs = [site.fresh("out") for _ in site.node.output]
    inner = helper.make_node(
        "Scan", inner_inputs, inner_outputs, num_scan_inputs=count, scan_input_directions=directions, body=body
    )
    if site.node.name:
        inner.name = site.storage.fresh(f"{site.node.name}_sequence")
    outer = GraphProto(name=f"{body.name}_batch")
    outer.node.append(inner)
    states = len(names) - count
    for place, (name, formal) in enumerate(zip(inner_inputs, body.input, strict=True)):
        outer.input.add(name=name).type.CopyFrom(_type(formal.type, sequence=place >= states))
    for place, (name, formal) in enumerate(zip(inner_outputs, body.output, strict=True)):
        outer.output.add(name=name).type.CopyFrom(_type(formal.type, sequence=place >= states))
    site.put("Scan", names, num_scan_inputs=len(names), body=outer)


def _type(kind: TypeProto, *, sequence: bool) -> TypeProto:
    """A type of the body, with an axis in front of what is scanned."""
    made = TypeProto()
    made.tensor_type.elem_type = kind.tensor_type.elem_type
    if kind.tensor_type.HasField("shape"):
        made.tensor_type.shape.SetInParent()
        if sequence:
            made.tensor_type.shape.dim.add()
        made.tensor_type.shape.dim.extend(kind.tensor_type.shape.dim)
    return made


def _down(site: Site) -> None:
    count = site.attr("num_scan_inputs")
    if any(site.attr("scan_input_axes", []) or []) or any(site.attr("scan_output_axes", []) or []):
        site.refuse("Scan-8 scans the first axis")
    if any(site.attr("scan_output_directions", []) or []):
        site.refuse("Scan-8 writes its outputs forwards")
    directions = site.attr("scan_input_directions", []) or [0] * count
    inputs = [site.add("Unsqueeze", name, axes=[0], wish="batch") for name in site.node.input]
    names = list(site.node.output)
    made = [site.fresh("batch") if name else "" for name in names]
    body = site.body(site.node, "body")
    site.put("Scan", ["", *inputs], made, num_scan_inputs=count, directions=directions, body=body)
    site.node.name = ""
    for inner, name in zip(made, names, strict=True):
        if name:
            site.put("Squeeze", [inner], [name], axes=[0])


adapter("Scan", 8, 9)(_up)
adapter("Scan", 9, 8)(_down)
