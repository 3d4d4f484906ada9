"""MaxPool and AveragePool: which windows there are where sizes are rounded up.

Up to MaxPool-12 and AveragePool-19 the specification counts windows that start behind the input; later versions leave them
out. Sources: ai.onnx MaxPool-12 and 22, AveragePool-19 and 22 ("sliding windows that would start in the right padded
region are ignored").
"""

from __future__ import annotations

from onnx import helper

from onnxbench.converters import rules
from onnxbench.converters.adapters import adapter
from onnxbench.converters.site import Site


def _down(site: Site) -> None:
    if not site.attr("ceil_mode", 0) or _agree(site):
        rules.keep(site)
        return
    pads = _fitting(site)
    if pads is None:
        site.refuse("ceil_mode: the older form has a window that starts behind the input, or may have one")
    site.node.attribute.remove(next(each for each in site.node.attribute if each.name == "ceil_mode"))
    kept = [each for each in site.node.attribute if each.name != "pads"]
    del site.node.attribute[:]
    site.node.attribute.extend([*kept, helper.make_attribute("pads", pads)])
    rules.keep(site)


def _fitting(site: Site) -> list[int] | None:
    """Pads with which rounding down gives the windows that there are; None if pads are counted, or sizes not known."""
    dims, kernel = site.dims(site.input(0)), site.attr("kernel_shape")
    axes = len(kernel)
    if dims is None or None in dims[2:] or site.attr("count_include_pad", 0):
        return None
    strides = site.attr("strides", None) or [1] * axes
    dilations = site.attr("dilations", None) or [1] * axes
    pads = list(site.attr("pads", None) or [0] * (2 * axes))
    for axis in range(axes):
        size, before, after, stride = int(dims[axis + 2] or 0), pads[axis], pads[axis + axes], strides[axis]
        reach = (kernel[axis] - 1) * dilations[axis] + 1
        windows = -(-(size + before + after - reach) // stride) + 1
        if (windows - 1) * stride >= size + before:
            windows -= 1
        pads[axis + axes] = max((windows - 1) * stride + reach - size - before, 0)
        if pads[axis + axes] >= reach or windows < 1:
            return None
    return pads


def _agree(site: Site) -> bool:
    """Whether both versions have the same windows; told by sizes where they are known, else by stride and kernel."""
    if site.attr("auto_pad", "NOTSET") != "NOTSET":
        return True
    kernel = site.attr("kernel_shape")
    axes = len(kernel)
    strides = site.attr("strides", None) or [1] * axes
    dilations = site.attr("dilations", None) or [1] * axes
    pads = site.attr("pads", None) or [0] * (2 * axes)
    dims = site.dims(site.input(0))
    for axis in range(axes):
        reach = (kernel[axis] - 1) * dilations[axis] + 1
        before, after, stride = pads[axis], pads[axis + axes], strides[axis]
        if after + stride <= reach:
            continue
        size = dims[axis + 2] if dims is not None else None
        if size is None:
            return False
        windows = -(-(size + before + after - reach) // stride) + 1
        if (windows - 1) * stride >= size + before:
            return False
    return True


adapter("MaxPool", 22, 12)(_down)
adapter("AveragePool", 22, 19)(_down)
