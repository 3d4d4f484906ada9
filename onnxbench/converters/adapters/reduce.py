"""Reductions: axes from the front only before 11, an input from 18 on (ReduceSum: 13).

Sources: ai.onnx ReduceSum-11 and 13, ReduceMax-13 and 18 and the others alike; `noop_with_empty_axes`.
"""

from __future__ import annotations

from onnx import TensorProto

from onnxbench.converters import rules
from onnxbench.converters.adapters import adapter
from onnxbench.converters.adapters._axes import not_negative, size_along
from onnxbench.converters.adapters._masks import axis_mask, counting, reduced
from onnxbench.converters.site import Site

_ALL = ["L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare"]
#: Reductions that may be done one axis after the other, and still give the same.
_IN_TURN = frozenset({"ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceLogSumExp"})
_IN_TURN |= {"ReduceMean", "ReduceSumSquare", "ReduceLogSum"}


def _up(site: Site) -> None:
    axes = site.node.attribute and site.has("axes")
    if not axes or (not _refers(site, "axes") and not site.attr("axes")):
        site.same([site.input(0)], drop=("axes",))
        return
    site.same([site.input(0), site.from_attribute("axes", "axes")], drop=("axes",))


def _refers(site: Site, name: str) -> bool:
    return any(attribute.name == name and attribute.ref_attr_name for attribute in site.node.attribute)


def _down(site: Site) -> None:
    x, axes = site.input(0), site.input(1)
    drop = ("noop_with_empty_axes",)
    noop = bool(site.attr("noop_with_empty_axes", 0))
    if not axes:
        _without_axes(site, x, noop)
        return
    known = site.value(axes)
    if known is not None:
        if known.size == 0:
            _without_axes(site, x, noop)
        else:
            site.same([x], drop=drop, axes=[int(axis) for axis in known.reshape(-1)])
        return
    dims = site.dims(axes)
    if dims == (0,):
        _without_axes(site, x, noop)
        return
    _at_run_time(site, x, axes, noop)


def _without_axes(site: Site, x: str, noop: bool) -> None:
    if not noop:
        site.same([x], drop=("noop_with_empty_axes", "axes"))
        return
    # Nothing is reduced, but what is done to each element still is (ReduceSum-13: "applied ... not reduced").
    op = site.node.op_type
    if op in ("ReduceL1", "ReduceL2"):
        site.put("Abs", [x])
    elif op == "ReduceSumSquare":
        site.put("Mul", [x, x])
    elif op == "ReduceLogSum":
        site.put("Log", [x])
    else:
        site.put("Identity", [x])


def _at_run_time(site: Site, x: str, axes: str, noop: bool) -> None:
    """One axis after the other: the reduced element stands behind those of the axis, and a Gather takes it or them."""
    op = site.node.op_type
    rank = site.needed_rank(x)
    if op not in _IN_TURN or site.opset < 9:
        site.refuse("axes would have to be an attribute, and they are only known at run time")
    mask = axis_mask(site, axes, site.const([rank], "rank"))
    if not noop and site.dims(axes) in (None, (None,)):
        none = site.add("Not", site.add("Cast", _any(site, mask), to=int(TensorProto.BOOL)), wish="none")
        mask = site.add("Or", mask, none, wish="mask")  # no axes at all mean every axis
    current = _prepared(site, op, x)
    for axis in range(rank):
        current = _reduced_or_not(site, _STEP.get(op, op), current, mask, axis)
    if op in _FINISH:
        current = site.add(_FINISH[op], current)
    if site.attr("keepdims", 1):
        site.put("Identity", [current])
        return
    kept = site.add("Compress", site.add("Shape", current), site.add("Not", mask, wish="kept"), axis=0, wish="shape")
    site.put("Reshape", [current, kept])


def _prepared(site: Site, op: str, x: str) -> str:
    if op == "ReduceSumSquare":
        return site.add("Mul", x, x)
    return x


def _any(site: Site, mask: str) -> str:
    whole = site.add("Cast", mask, to=int(TensorProto.INT32))
    return site.add("ReduceMax", whole, axes=[0], keepdims=1)


def _reduced_or_not(site: Site, op: str, x: str, mask: str, axis: int) -> str:
    asked = site.add("Gather", mask, site.const([axis], f"axis_{axis}"), axis=0, wish="asked")
    both = site.add("Concat", x, reduced(site, op, x, [axis], keepdims=1), axis=axis)
    size, one = size_along(site, x, axis), site.const([1], "one")
    count = site.add("Where", asked, one, size)
    first = site.add("Where", asked, size, site.const([0], "zero"))
    return site.add("Gather", both, site.add("Add", counting(site, count), first), axis=axis, wish="reduced")


#: What is done along an axis, and once in the end, where it cannot be done as often as there are axes.
_STEP = {"ReduceSumSquare": "ReduceSum", "ReduceLogSum": "ReduceSum"}
_FINISH = {"ReduceLogSum": "Log"}


for _kind in _ALL:
    _op = f"Reduce{_kind}"
    _old, _new = (11, 13) if _kind == "Sum" else (13, 18)
    adapter(_op, _old, _new)(_up)
    adapter(_op, _new, _old)(_down)
    adapter(_op, 11, 1)(not_negative("axes"))
_arg_axis = not_negative("axis")
for _op in ("ArgMax", "ArgMin"):
    adapter(_op, 11, 1)(_arg_axis)


def _integers(site: Site) -> None:
    """ReduceLogSum-28 and ReduceLogSumExp-28 take no integers: they are reduced as float64."""
    x = site.input(0)
    element = site.element(x)
    whole = (TensorProto.INT32, TensorProto.INT64, TensorProto.UINT32, TensorProto.UINT64)
    if element is None:
        site.needed_element(x)
    if element not in whole:
        rules.keep(site)
        return
    wide = site.add("Cast", x, to=int(TensorProto.DOUBLE), wish="wide")
    made = site.fresh("wide")
    site.same([wide, *site.node.input[1:]], [made])
    site.node.op_type = "Cast"
    site.put("Cast", [made], list(site.node.output), to=element)


adapter("ReduceLogSum", 18, 28)(_integers)
adapter("ReduceLogSumExp", 18, 28)(_integers)
