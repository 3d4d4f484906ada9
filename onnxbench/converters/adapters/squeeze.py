"""Squeeze and Unsqueeze: axes from the front only before 11, an input from 13 on.

Sources: ai.onnx Squeeze-1, 11, 13 and Unsqueeze-1, 11, 13.
"""

from onnxbench.converters import rules
from onnxbench.converters.adapters import adapter
from onnxbench.converters.adapters._axes import counted
from onnxbench.converters.adapters._masks import axis_mask, ordered_mask
from onnxbench.converters.site import Site


def _up(site: Site) -> None:
    x = site.input(0)
    if not site.has("axes"):
        site.same([x])
        return
    site.same([x, site.from_attribute("axes", "axes")], drop=("axes",))


def _squeeze_down(site: Site) -> None:
    x = site.input(0)
    if not site.input(1):
        site.same([x])
        return
    known = site.value(site.input(1))
    if known is not None:
        site.same([x], axes=[int(axis) for axis in known.reshape(-1)])
        return
    shape = site.add("Shape", x, wish="shape")
    mask = axis_mask(site, site.input(1), site.add("Shape", shape, wish="rank"))
    if (site.dims(site.input(1)) or (None,))[0] is None:  # no axes at all mean every dim of 1
        none = site.add("Equal", site.add("Shape", site.input(1)), site.const([0], "zero"), wish="none")
        single = site.add("Equal", shape, site.const([1], "one"), wish="single")
        mask = site.add("Or", mask, site.add("And", none, single), wish="mask")
    kept = site.add("Not", mask)
    site.put("Reshape", [x, site.add("Compress", shape, kept, axis=0, wish="shape")])


def _unsqueeze_down(site: Site) -> None:
    x = site.input(0)
    known = site.value(site.input(1))
    if known is not None:
        site.same([x], axes=[int(axis) for axis in known.reshape(-1)])
        return
    # The new shape: a 1 at each axis, the old sizes in their order elsewhere.
    shape = site.add("Shape", x, wish="shape")
    rank = site.add("Add", site.add("Shape", shape), site.add("Shape", site.input(1)), wish="rank")
    site.put("Reshape", [x, ordered_mask(site, site.input(1), rank, shape)])


def _squeeze_counted(site: Site) -> None:
    counted(site, ("axes",))
    if not site.has("axes"):
        dims = site.dims(site.input(0))
        if dims is not None and None not in dims:
            site.same(axes=[axis for axis, dim in enumerate(dims) if dim == 1])
            return
    rules.keep(site)


def _unsqueeze_counted(site: Site) -> None:
    axes = site.attr("axes")
    counted(site, ("axes",), extra=len(axes))
    rules.keep(site)


for _op in ("Squeeze", "Unsqueeze"):
    adapter(_op, 11, 13)(_up)
adapter("Squeeze", 13, 11)(_squeeze_down)
adapter("Unsqueeze", 13, 11)(_unsqueeze_down)
adapter("Squeeze", 11, 1)(_squeeze_counted)
adapter("Unsqueeze", 11, 1)(_unsqueeze_counted)
