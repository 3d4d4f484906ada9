"""Erf: integers until 9, floats only since 13.

Source: ai.onnx Erf-9 and 13.
"""

from onnx import TensorProto

from onnxbench.converters.adapters import adapter
from onnxbench.converters.site import Site

_FLOATS = (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.BFLOAT16)


def _up(site: Site) -> None:
    x = site.input(0)
    element = site.needed_element(x)
    if element in _FLOATS:
        site.same()
        return
    made, output = site.fresh("wide"), site.output()
    site.same([site.add("Cast", x, to=int(TensorProto.DOUBLE), wish="wide")], [made])
    site.node.name = ""
    site.put("Cast", [made], [output], to=element)


adapter("Erf", 9, 13)(_up)
