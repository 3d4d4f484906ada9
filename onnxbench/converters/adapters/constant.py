"""Constant: any element type since 9, sparse values since 11, plain numbers and strings since 12.

Sources: ai.onnx Constant-1, 9, 11, 12.
"""

from __future__ import annotations

import math

from onnx import numpy_helper

from onnxbench.converters import rules
from onnxbench.converters.adapters import adapter
from onnxbench.converters.site import Open, Site
from onnxbench.converters.storage import FLOATS
from onnxbench.folding.stored import filled, tensor_of

#: Elements of a sparse tensor that is written with all its zeros.
_MOST = 1 << 26


def _as_tensor(site: Site) -> None:
    if any(attribute.ref_attr_name for attribute in site.node.attribute):
        raise Open("Constant-11 takes no numbers, which calls of the function give")
    tensor = tensor_of(site.node)
    if tensor is not None:
        site.put("Constant", [], value=tensor)
    else:
        rules.keep(site)


def _dense(site: Site) -> None:
    if not site.has("sparse_value"):
        rules.keep(site)
        return
    (attribute,) = site.node.attribute
    if math.prod(attribute.sparse_tensor.dims) > _MOST:
        site.refuse("Constant-9 holds no sparse tensor, and with all its zeros this one is very large")
    site.put("Constant", [], value=numpy_helper.from_array(filled(attribute.sparse_tensor)))


def _float_only(site: Site) -> None:
    """Constant-1 gives floats; an initializer may be of any type, where one need not be an input."""
    tensor = tensor_of(site.node)
    if tensor is None or tensor.data_type in FLOATS:
        rules.keep(site)
        return
    value = numpy_helper.to_array(tensor)
    site.put("Identity", [site.const(value, "value", value.dtype)])


adapter("Constant", 12, 11)(_as_tensor)
adapter("Constant", 11, 9)(_dense)
adapter("Constant", 9, 1)(_float_only)
