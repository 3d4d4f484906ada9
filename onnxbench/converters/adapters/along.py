"""What runs along an axis: ArgMax and ArgMin with the last of equals, CumSum, CumProd, ReverseSequence.

Sources: ai.onnx ArgMax-11 and 12, CumSum-11 and 14, CumProd-26, Scan-9, ReverseSequence-10.
"""

from __future__ import annotations

import numpy as np
from onnx import TensorProto, helper

from onnxbench.converters import rules
from onnxbench.converters.adapters import adapter
from onnxbench.converters.adapters._axes import size_along
from onnxbench.converters.adapters._masks import axis_mask, counting
from onnxbench.converters.site import Site


def _last(site: Site) -> None:
    """The last of equals is the first of them from the other end."""
    if not site.attr("select_last_index", 0):
        rules.keep(site)
        return
    x, axis = site.input(0), site.attr("axis", 0)
    rank = site.needed_rank(x)
    axis += rank if axis < 0 else 0
    size = size_along(site, x, axis)
    top = site.add("Sub", size, site.const([1], "one"))
    turned = site.add("Gather", x, site.add("Sub", top, counting(site, size)), axis=axis, wish="turned")
    found = site.add(site.node.op_type, turned, axis=axis, keepdims=site.attr("keepdims", 1))
    site.put("Sub", [top, found])


def _running(site: Site) -> None:
    """A Scan whose state is what came before; every axis that is meant has its own."""
    op = "Add" if site.node.op_type == "CumSum" else "Mul"
    x, axis = site.input(0), site.value(site.input(1))
    rank, element = site.needed_rank(x), site.needed_element(x)
    if site.opset < 9:
        site.refuse("it takes operators of opset 9")
    if axis is not None:
        number = int(axis.reshape(-1)[0]) % max(rank, 1)
        site.put("Identity", [_scanned(site, x, number, op, rank, element)])
        return
    flat = site.add("Reshape", site.input(1), site.const([1], "flat"))
    mask = axis_mask(site, flat, site.const([rank], "rank"))
    current = x
    for number in range(rank):
        asked = site.add("Gather", mask, site.const(number, f"axis_{number}"), axis=0, wish="asked")
        every = _scanned(site, x, number, op, rank, element)
        current = site.add("Where", asked, every, current)
    site.put("Identity", [current])


def _scanned(site: Site, x: str, axis: int, op: str, rank: int, element: int) -> str:
    """Sums along an axis."""
    start = _start(site, x, axis, op, rank, element)
    state, piece, after, out = (site.fresh(name) for name in ("state", "piece", "after", "out"))
    nodes = [
        helper.make_node(op, [state, piece], [after]),
        helper.make_node("Identity", [state if site.attr("exclusive", 0) else after], [out]),
    ]
    values = [helper.make_tensor_value_info(name, element, None) for name in (state, piece, after, out)]
    body = helper.make_graph(nodes, "running", values[:2], values[2:])
    backwards = int(site.attr("reverse", 0))
    made = site.add_many(
        "Scan",
        [start, x],
        2,
        "running",
        body=body,
        num_scan_inputs=1,
        scan_input_axes=[axis],
        scan_output_axes=[axis],
        scan_input_directions=[backwards],
        scan_output_directions=[backwards],
    )
    for name in made:
        site.facts.made[name].element = element
    site.facts.made[made[1]].rank = rank
    return made[1]


def _start(site: Site, x: str, axis: int, op: str, rank: int, element: int) -> str:
    """Zeros or ones with the dims that are left."""
    dtype = helper.tensor_dtype_to_np_dtype(element)
    value = helper.make_tensor("value", element, [1], np.asarray([0 if op == "Add" else 1], dtype))
    others = [place for place in range(rank) if place != axis]
    if not others:
        return site.const(np.asarray(0 if op == "Add" else 1, dtype), "start", dtype)
    sizes = site.add("Gather", site.add("Shape", x), site.const(others, f"but_{axis}"), axis=0)
    return site.add("ConstantOfShape", sizes, value=value, wish="start")


def _reversed(site: Site) -> None:
    """Each element's place along time is its mirror within its sequence."""
    if site.opset < 9:
        site.refuse("it takes operators of opset 9")
    x, lengths = site.input(0), site.input(1)
    rank, time = site.needed_rank(x), site.attr("time_axis", 0)
    # Over the batch by a Scan; in it, one sequence is gathered along time.
    batch = site.attr("batch_axis", 1)
    element = site.needed_element(x)
    size = size_along(site, x, time)
    steps = counting(site, size)
    row, length, out = (site.fresh(name) for name in ("row", "length", "out"))
    inside, mirrored, places, one = (site.fresh(name) for name in ("inside", "mirrored", "places", "top"))
    top = site.const(1, "one")
    nodes = [
        helper.make_node("Sub", [length, top], [one]),
        helper.make_node("Less", [steps, length], [inside]),
        helper.make_node("Sub", [one, steps], [mirrored]),
        helper.make_node("Where", [inside, mirrored, steps], [places]),
        helper.make_node("Gather", [row, places], [out], axis=time if time < batch else time - 1),
    ]
    kinds = [(row, element), (length, int(TensorProto.INT64))]
    body = helper.make_graph(
        nodes,
        "reversed",
        [helper.make_tensor_value_info(name, kind, None) for name, kind in kinds],
        [helper.make_tensor_value_info(out, element, None)],
    )
    made = site.add(
        "Scan",
        x,
        lengths,
        wish="reversed",
        body=body,
        num_scan_inputs=2,
        scan_input_axes=[batch, 0],
        scan_output_axes=[batch],
    )
    site.facts.made[made].element, site.facts.made[made].rank = element, rank
    site.put("Identity", [made])


for _op in ("ArgMax", "ArgMin"):
    adapter(_op, 12, 11)(_last)
adapter("CumSum", 11, 0)(_running)
adapter("CumProd", 26, 0)(_running)
adapter("ReverseSequence", 10, 0)(_reversed)
