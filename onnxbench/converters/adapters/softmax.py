"""Softmax, LogSoftmax, Hardmax: before 13 over all dims from the axis on, since then over one axis.

Sources: ai.onnx Softmax-11 ("coerced into 2-D") and Softmax-13, Hardmax and LogSoftmax alike; defaults 1 and -1.
"""

from onnx import helper

from onnxbench.converters.adapters import adapter
from onnxbench.converters.adapters._axes import not_negative
from onnxbench.converters.adapters._masks import reduced
from onnxbench.converters.site import Site

_OPERATORS = ("Softmax", "LogSoftmax", "Hardmax")


def _up(site: Site) -> None:
    axis = site.attr("axis", 1)
    x = site.input(0)
    rank = site.rank(x)
    if axis == -1 or rank == 0 or (rank is not None and axis % rank == rank - 1):
        site.same(axis=-1)
        return
    dims = site.dims(x)
    if rank is not None and dims is not None and all(dim == 1 for dim in dims[axis % rank + 1 :]):
        site.same(axis=axis)
        return
    if axis < 0:
        axis += rank if rank is not None else site.needed_rank(x)
    _flattened(site, x, axis)


def _flattened(site: Site, x: str, axis: int) -> None:
    """The last axis of two is what it is about.

    Where a size may be 0, the way back is a Reshape that takes a 0 for a 0 (allowzero of Reshape-14);
    below 14 the sum is written out, or what is empty handed on, for a Reshape-13 takes a 0 for "as it was".
    """
    op = site.node.op_type
    dims = site.dims(x)
    may_be_empty = dims is None or any(not dim and not _is_kept(place, axis) for place, dim in enumerate(dims))
    if may_be_empty and site.target < 14 and op != "Hardmax" and dims is not None:
        _written_out(site, x, list(range(axis, len(dims))))
        return
    if may_be_empty and site.target < 14 and site.element(x) is not None:
        _unless_empty(site, x, axis)
        return
    done = site.add(op, site.add("Flatten", x, axis=axis, wish="flat"), axis=-1)
    shape = site.add("Shape", x, wish="shape")
    if may_be_empty and site.target >= 14:
        site.put("Reshape", [done, shape], allowzero=1)
        site.valid_at = 14
    else:
        site.put("Reshape", [done, shape])


def _is_kept(place: int, axis: int) -> bool:
    """Whether a 0 at a place of the shape is one at that place of the flat tensor: Reshape then copies the same."""
    return (place == 0 and axis >= 1) or (place == 1 and axis <= 1)


def _unless_empty(site: Site, x: str, axis: int) -> None:
    """Of an empty tensor there is nothing to compute: it is handed on as it is."""
    element = site.needed_element(x)
    some, none = site.fresh("some"), site.fresh("none")
    flat, done, shape = (site.fresh(name) for name in ("flat", "done", "shape"))
    nodes = [
        helper.make_node("Flatten", [x], [flat], axis=axis),
        helper.make_node(site.node.op_type, [flat], [done], axis=-1),
        helper.make_node("Shape", [x], [shape]),
        helper.make_node("Reshape", [done, shape], [some]),
    ]
    kind = helper.make_tensor_type_proto(element, None)
    full = helper.make_graph(nodes, "full", [], [helper.make_value_info(some, kind)])
    same = [helper.make_node("Identity", [x], [none])]
    empty = helper.make_graph(same, "empty", [], [helper.make_value_info(none, kind)])
    nothing = site.add("Equal", site.add("Size", x), site.const(0, "zero"), wish="nothing")
    site.put("If", [nothing], then_branch=empty, else_branch=full)


def _written_out(site: Site, x: str, axes: list[int]) -> None:
    moved = site.add("Sub", x, reduced(site, "ReduceMax", x, axes, keepdims=1), wish="moved")
    powers = site.add("Exp", moved)
    total = reduced(site, "ReduceSum", powers, axes, keepdims=1)
    if site.node.op_type == "Softmax":
        site.put("Div", [powers, total])
    else:
        site.put("Sub", [moved, site.add("Log", total)])


def _down(site: Site) -> None:
    axis = site.attr("axis", -1)
    x = site.input(0)
    rank = site.rank(x)
    if axis == -1 and rank is None:  # the last one, whatever its number: what lies behind it is nothing in either form
        site.same(axis=-1)
        return
    if rank is None and site.node.op_type != "Hardmax":
        _written_out(site, x, [axis])
        return
    rank = site.needed_rank(x)
    if rank == 0:
        site.refuse("a tensor without dims has no axis in the older form")
    axis %= rank
    op = site.node.op_type
    dims = site.dims(x)
    if axis == rank - 1 or (dims is not None and all(dim == 1 for dim in dims[axis + 1 :])):
        site.same(axis=axis)
        return
    order = [place for place in range(rank) if place != axis] + [axis]
    turned = site.add("Transpose", x, perm=order, wish="turned")
    done = site.add(op, turned, axis=rank - 1)
    site.put("Transpose", [done], perm=[order.index(place) for place in range(rank)])


for _op in _OPERATORS:
    adapter(_op, 11, 13)(_up)
    adapter(_op, 13, 11)(_down)
    adapter(_op, 11, 1)(not_negative("axis"))
