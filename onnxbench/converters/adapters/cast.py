"""Cast: the type is a name in opset 1, a number since 6.

Source: ai.onnx Cast-1 and 6.
"""

from onnx import TensorProto

from onnxbench.converters import rules
from onnxbench.converters.adapters import adapter
from onnxbench.converters.site import Site


def _up(site: Site) -> None:
    name = str(site.attr("to")).upper()
    if name not in dict(TensorProto.DataType.items()):
        site.refuse(f"there is no element type {name}")
    site.same(to=int(TensorProto.DataType.Value(name)), drop=("to",))


def _down(site: Site) -> None:
    element = site.attr("to")
    if element not in TensorProto.DataType.values():
        site.refuse(f"there is no element type {element}")
    name = TensorProto.DataType.Name(element)
    del site.node.attribute[:]
    site.same(to=name)
    site.node.CopyFrom(site.made.pop())
    rules.keep(site)


adapter("Cast", 1, 6)(_up)
adapter("Cast", 6, 1)(_down)
