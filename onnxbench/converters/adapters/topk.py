"""TopK: k is an attribute before 10, an input since; the smallest, and integers, since 11.

Sources: ai.onnx TopK-1, 10, 11.
"""

from __future__ import annotations

from onnx import TensorProto

from onnxbench.converters import schemas
from onnxbench.converters.adapters import adapter
from onnxbench.converters.adapters._masks import counting
from onnxbench.converters.site import Site

_FLOATS = (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16)
#: Integers that a float64 holds each.
_HELD = (
    TensorProto.INT8,
    TensorProto.INT16,
    TensorProto.INT32,
    TensorProto.UINT8,
    TensorProto.UINT16,
    TensorProto.UINT32,
)


def _up(site: Site) -> None:
    for attribute in site.node.attribute:
        if attribute.name == "k" and attribute.ref_attr_name:
            scalar = site.from_attribute("k", "k")
            given = site.add("Reshape", scalar, site.const([1], "shape"))
            site.same([site.input(0), given], drop=("k",))
            return
    site.same([site.input(0), site.const([site.attr("k")], "k")], drop=("k",))


def _to_10(site: Site) -> None:
    """The smallest are the largest of what is negated; NaN and ties keep their order in both."""
    x = site.input(0)
    element = site.needed_element(x)
    largest = bool(site.attr("largest", 1))
    drop = ("largest", "sorted")
    if element not in (*_FLOATS, *_HELD):
        site.refuse(f"TopK-10 takes no {schemas.element_name(element).lower()}")
    if largest and element in _FLOATS:
        site.same(drop=drop)
        return
    values = x if element in _FLOATS else site.add("Cast", x, to=int(TensorProto.DOUBLE), wish="wide")
    values = values if largest else site.add("Neg", values)
    made, output = site.fresh("values"), site.output(0)
    site.same([values, site.input(1)], [made, site.output(1)], drop=drop)
    if not output:
        return
    site.node.name = ""
    if not largest:
        made = site.add("Neg", made)
    if element in _FLOATS:
        site.put("Identity", [made], [output])
    else:
        site.put("Cast", [made], [output], to=element)


def _to_1(site: Site) -> None:
    x = site.input(0)
    known = site.value(site.input(1))
    if known is not None:
        site.same([x], k=int(known.reshape(-1)[0]))
        return
    axis, dims = site.attr("axis"), site.dims(x)
    if dims is None or dims[axis] is None or site.opset < 9:
        site.refuse("k would have to be an attribute, and it is only known at run time")
    # All of them in order, and the first k of those.
    outputs = [site.fresh("sorted") if name else "" for name in site.node.output]
    names = list(site.node.output)
    site.same([x], outputs, k=dims[axis])
    site.node.name = ""
    indices = counting(site, site.input(1))
    for made, name in zip(outputs, names, strict=True):
        if name:
            site.put("Gather", [made, indices], [name], axis=axis)


adapter("TopK", 1, 10)(_up)
adapter("TopK", 10, 1)(_to_1)
adapter("TopK", 11, 10)(_to_10)
