"""Operators of which opset 11 changed no more than that axes and indices may count from the end.

Sources: ai.onnx Concat-4 and 11, Flatten-9 and 11, Gather-1 and 11, Compress-9 and 11, Scan-9 and 11, OneHot-9 and 11.
"""

from __future__ import annotations

from onnx import TensorProto, helper

from onnxbench.converters import rules
from onnxbench.converters.adapters import adapter
from onnxbench.converters.adapters._axes import not_negative, not_negative_indices
from onnxbench.converters.site import Site

_UNSIGNED = (TensorProto.UINT8, TensorProto.UINT16, TensorProto.UINT32, TensorProto.UINT64)


def _gather(site: Site) -> None:
    axis = site.attr("axis", 0)
    rank = site.rank(site.input(0))
    if axis < 0 and rank is not None:
        axis += rank
    indices = site.value(site.input(1))
    if axis < 0 and not (indices is not None and (indices >= 0).all()):
        site.needed_rank(site.input(0))
    site.node.input[1] = not_negative_indices(site, site.input(1), site.input(0), axis)
    rules.keep(site)


def _scan(site: Site) -> None:
    """Axes of inputs and outputs of the Scan; those of outputs count in what the body returns, and one more."""
    inputs, outputs = site.attr("scan_input_axes", []), site.attr("scan_output_axes", [])
    count = site.attr("num_scan_inputs")
    states = len(site.node.input) - count
    if any(axis < 0 for axis in inputs):
        given = [
            axis if axis >= 0 else axis + site.needed_rank(site.input(states + place))
            for place, axis in enumerate(inputs)
        ]
        site.same(scan_input_axes=given)
        site.node.CopyFrom(site.made.pop())
    if any(axis < 0 for axis in outputs):
        given = [
            axis if axis >= 0 else axis + site.needed_rank(site.output(states + place))
            for place, axis in enumerate(outputs)
        ]
        site.same(scan_output_axes=given)
        site.node.CopyFrom(site.made.pop())
    rules.keep(site)


def _one_hot(site: Site) -> None:
    """OneHot-9 has "off" for what is negative, OneHot-11 counts it from the end.

    What is negative then too is put beyond the end: runtimes count it from there a second time.
    """
    if _counts_up(site):
        rules.keep(site)
        return
    indices, element = _whole_indices(site)
    zero, size = site.scalar_like(0, indices, "zero"), _depth(site, element)
    below = site.add("Less", indices, zero)
    front = site.add("Where", below, site.add("Add", indices, size), indices, wish="indices")
    site.node.input[0] = site.add("Where", site.add("Less", front, zero), size, front, wish="indices")
    rules.keep(site)


def _one_hot_up(site: Site) -> None:
    """What is negative, and "off" for OneHot-9, must not count from the end: it is put out of range."""
    if _counts_up(site):
        rules.keep(site)
        return
    indices, element = _whole_indices(site)
    below = site.add("Less", indices, site.scalar_like(0, indices, "zero"))
    site.node.input[0] = site.add("Where", below, _depth(site, element), indices, wish="indices")
    rules.keep(site)


def _counts_up(site: Site) -> bool:
    """Whether no index is negative."""
    indices = site.value(site.input(0))
    return (indices is not None and bool((indices >= 0).all())) or site.element(site.input(0)) in _UNSIGNED


def _whole_indices(site: Site) -> tuple[str, int]:
    """Indices as they are read, which cuts floats off, in a type that has room for the depth; and that type."""
    x, element = site.input(0), site.needed_element(site.input(0))
    if element in (TensorProto.INT32, TensorProto.INT64):
        return x, element
    whole = site.add("Cast", x, to=int(TensorProto.INT64), wish="whole")
    if element in (TensorProto.FLOAT, TensorProto.DOUBLE):  # runtimes do not have each type with each other
        return site.add("Cast", whole, to=element, wish="whole"), element
    return whole, int(TensorProto.INT64)


def _depth(site: Site, element: int) -> str:
    """The depth, which may be a list of one, as a scalar in the type of the indices."""
    depth = site.value(site.input(1))
    if depth is not None:
        return site.const(int(depth.reshape(-1)[0]), "depth", helper.tensor_dtype_to_np_dtype(element))
    cast = site.add("Cast", site.input(1), to=element, wish="depth")
    return site.add("Reshape", cast, site.const([], "scalar"), wish="depth")


def _flatten(site: Site) -> None:
    rank = site.rank(site.input(0))
    axis = site.attr("axis", 1)
    if axis < 0:
        site.same(axis=axis + (rank if rank is not None else site.needed_rank(site.input(0))))
        site.node.CopyFrom(site.made.pop())
    rules.keep(site)


def _concat_up(site: Site) -> None:
    """Concat-1 joins along the second axis if it does not say which."""
    site.same(axis=site.attr("axis", 1))


adapter("Concat", 1, 4)(_concat_up)
adapter("Concat", 11, 4)(not_negative("axis"))
adapter("Flatten", 11, 9)(_flatten)
adapter("Compress", 11, 9)(not_negative("axis"))
adapter("Gather", 11, 1)(_gather)
adapter("Scan", 11, 9)(_scan)
adapter("OneHot", 9, 11)(_one_hot_up)
adapter("OneHot", 11, 9)(_one_hot)
