"""Reshape: the shape is an attribute before 5, 0 may be meant since 14.

Sources: ai.onnx Reshape-1, 5, 14 (`allowzero`).
"""

import numpy as np
from onnx import TensorProto, helper

from onnxbench.converters import rules
from onnxbench.converters.adapters import adapter
from onnxbench.converters.adapters._masks import reduced
from onnxbench.converters.site import Site


def _up(site: Site) -> None:
    site.same([site.input(0), site.from_attribute("shape", "shape")], drop=("shape", "consumed_inputs"))


def _down(site: Site) -> None:
    site.same([site.input(0)], shape=site.ints(1, "the shape"))


def _no_zeros(site: Site) -> None:
    """Without `allowzero` a 0 in the shape means "as it was"."""
    if not site.attr("allowzero", 0):
        rules.keep(site)
        return
    shape = site.value(site.input(1))
    if shape is not None and not (shape == 0).any():
        site.same(drop=("allowzero",))
        return
    if site.facts.repeats(site.input(1), site.input(0)):
        site.same(drop=("allowzero",))  # a 0 can only stand where the input has one, and is copied from there
        return
    if shape is None:
        _unless_zero(site)
        return
    dims = site.dims(site.input(0))
    numbers = [int(number) for number in shape.reshape(-1)]
    if (
        dims is not None
        and len(numbers) <= len(dims)
        and all(number != 0 or dims[place] == 0 for place, number in enumerate(numbers))
    ):
        site.same(drop=("allowzero",))
        return
    # An empty tensor has no elements that could be lost: one that is made of them at the right shape is the same.
    element = site.needed_element(site.input(0))
    if -1 in numbers:
        site.refuse("its shape holds a 0 (allowzero) beside -1")
    nothing = helper.make_tensor("value", element, [1], np.zeros([1], helper.tensor_dtype_to_np_dtype(element)))
    if site.opset < 9:
        site.refuse("its shape holds a 0 (allowzero)")
    site.put("ConstantOfShape", [site.input(1)], value=nothing)


def _unless_zero(site: Site) -> None:
    """A shape that holds a 0 is that of an empty tensor, which is made anew."""
    x, shape, element = site.input(0), site.input(1), site.needed_element(site.input(0))
    if site.opset < 11:
        site.refuse("whether its shape holds a 0 (allowzero) is only known at run time")
    zeros = site.add("Cast", site.add("Equal", shape, site.const([0], "zero")), to=int(TensorProto.INT32), wish="zeros")
    count = reduced(site, "ReduceSum", zeros, [0], keepdims=1)
    some, none = site.fresh("some"), site.fresh("none")
    kind = helper.make_tensor_type_proto(element, None)
    nothing = helper.make_tensor("value", element, [1], np.zeros([1], helper.tensor_dtype_to_np_dtype(element)))
    full = [helper.make_node("Reshape", [x, shape], [some])]
    empty = [helper.make_node("ConstantOfShape", [shape], [none], value=nothing)]
    site.put(
        "If",
        [site.add("Cast", count, to=int(TensorProto.BOOL), wish="empty")],
        then_branch=helper.make_graph(empty, "empty", [], [helper.make_value_info(none, kind)]),
        else_branch=helper.make_graph(full, "full", [], [helper.make_value_info(some, kind)]),
    )


adapter("Reshape", 1, 5)(_up)
adapter("Reshape", 5, 1)(_down)
adapter("Reshape", 14, 13)(_no_zeros)
