"""Constant: sparse values since 11, plain numbers and strings since 12.

Sources: ai.onnx Constant-9, 11, 12.
"""

from __future__ import annotations

import numpy as np
from onnx import SparseTensorProto, numpy_helper

from onnxbench.converters import rules
from onnxbench.converters.adapters import adapter
from onnxbench.converters.site import Open, Site
from onnxbench.folding.stored import tensor_of


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
    site.put("Constant", [], value=numpy_helper.from_array(_filled(attribute.sparse_tensor)))


def _filled(sparse: SparseTensorProto) -> np.ndarray:
    values, places = numpy_helper.to_array(sparse.values), numpy_helper.to_array(sparse.indices)
    dense = np.zeros(list(sparse.dims), values.dtype)
    if places.ndim == 2:
        dense[tuple(places.T)] = values
    else:
        dense.reshape(-1)[places] = values
    return dense


adapter("Constant", 12, 11)(_as_tensor)
adapter("Constant", 11, 9)(_dense)
