"""Equal of floats and small integers before 11: by what is neither less nor greater.

Sources: ai.onnx Equal-7 and 11, Less-9, IsNaN-9.
"""

from onnx import TensorProto

from onnxbench.converters import rules
from onnxbench.converters.adapters import adapter
from onnxbench.converters.site import Site

_KNOWN = (TensorProto.BOOL, TensorProto.INT32, TensorProto.INT64)
_FLOATS = (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16)
#: Integers that an int64 holds each.
_HELD = (TensorProto.INT8, TensorProto.INT16, TensorProto.UINT8, TensorProto.UINT16, TensorProto.UINT32)


def _equal(site: Site) -> None:
    x, y = site.input(0), site.input(1)
    element = site.needed_element(x)
    if element in _KNOWN:
        rules.keep(site)
    elif element in _HELD:
        wide = int(TensorProto.INT64)
        site.same([site.add("Cast", name, to=wide, wish="wide") for name in (x, y)])
    elif element in _FLOATS:
        apart = site.add("Or", site.add("Less", x, y), site.add("Greater", x, y), wish="apart")
        unknown = site.add("Or", site.add("IsNaN", x), site.add("IsNaN", y), wish="unknown")
        site.put("Not", [site.add("Or", apart, unknown, wish="other")])
    else:
        site.refuse(f"Equal-7 takes no {TensorProto.DataType.Name(element).lower()}")


adapter("Equal", 11, 7)(_equal)
