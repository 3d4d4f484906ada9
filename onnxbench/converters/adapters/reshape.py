"""Reshape: the shape is an attribute before 5, 0 may be meant since 14.

Sources: ai.onnx Reshape-1, 5, 14 (`allowzero`).
"""

import numpy as np
from onnx import helper

from onnxbench.converters import rules
from onnxbench.converters.adapters import adapter
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
    if shape is None:
        site.refuse("whether its shape holds a 0 (allowzero) is only known at run time")
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


adapter("Reshape", 1, 5)(_up)
adapter("Reshape", 5, 1)(_down)
adapter("Reshape", 14, 13)(_no_zeros)
