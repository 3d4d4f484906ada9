"""QuantizeLinear and DequantizeLinear of blocks, and of 16 bits, by arithmetic; QLinearMatMul with narrow scales.

Sources: ai.onnx QuantizeLinear-19 and 21, DequantizeLinear-19 and 21, QLinearMatMul-10 and 21.
"""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from onnxbench.converters import rules
from onnxbench.converters.adapters import adapter
from onnxbench.converters.adapters._numbers import Numbers
from onnxbench.converters.site import Site

_FLOAT = int(TensorProto.FLOAT)
_LIMITS: dict[int, tuple[int, int]] = {
    TensorProto.UINT8: (0, 255),
    TensorProto.INT8: (-128, 127),
    TensorProto.UINT16: (0, 65535),
    TensorProto.INT16: (-32768, 32767),
}
_BYTES = (TensorProto.UINT8, TensorProto.INT8)


def _quantize(site: Site) -> None:
    """saturate(round(x / scale) + zero), in float32."""
    x, scale, zero = (site.input(place) for place in range(3))
    asked = site.attr("output_dtype", 0)
    element = site.needed_element(zero) if zero else asked or int(TensorProto.UINT8)
    plain = not site.attr("block_size", 0) and (element not in _LIMITS or element in _BYTES)
    if element not in _LIMITS or (plain and (zero or not asked)):
        if zero and asked:
            site.node.attribute.remove(next(each for each in site.node.attribute if each.name == "output_dtype"))
        rules.keep(site)
        return
    ratio = site.add("Div", _wide(site, x), _spread(site, _wide(site, scale), x, scale), wish="ratio")
    value = site.add("Round", ratio)
    if zero:
        value = site.add("Add", value, _spread(site, _wide(site, zero), x, scale), wish="moved")
    low, high = (site.const(limit, "limit", np.float32) for limit in _LIMITS[element])
    site.put("Cast", [site.add("Clip", value, low, high)], to=element)


def _wide(site: Site, name: str) -> str:
    return name if site.element(name) == _FLOAT else site.add("Cast", name, to=_FLOAT, wish="wide")


def _spread(site: Site, name: str, x: str, scale: str) -> str:
    """Scales or zero points as they broadcast with x: of blocks repeated, of an axis as a column."""
    rank = site.needed_rank(scale)
    if rank == 0 or (rank == 1 and site.dims(scale) == (1,)):
        return name
    of = site.needed_rank(x)
    axis = site.attr("axis", 1)
    axis += of if axis < 0 else 0
    block = site.attr("block_size", 0)
    if block:
        numbers = Numbers(site)
        blocks = numbers.div(numbers.range(numbers.size(x, axis)), np.asarray([block], np.int64))
        return site.add("Gather", name, numbers.name(blocks, "blocks"), axis=axis, wish="spread")
    if rank != 1:
        site.refuse("its scale has several dims, and it says no size of blocks")
    behind = of - axis - 1
    return site.add("Reshape", name, site.const([-1] + [1] * behind, "column"), wish="spread") if behind else name


def _dequantize(site: Site) -> None:
    """(x - zero) * scale: the difference in int32, the product in float32."""
    x, scale, zero = (site.input(place) for place in range(3))
    element = site.needed_element(x)
    blocked = bool(site.attr("block_size", 0))
    if not (blocked and element in (*_LIMITS, TensorProto.INT32)) and element not in (
        TensorProto.INT16,
        TensorProto.UINT16,
    ):
        rules.keep(site)
        return
    whole = int(TensorProto.INT32)
    wide = x if element == whole else site.add("Cast", x, to=whole, wish="wide")
    if zero:
        point = zero if element == whole else site.add("Cast", zero, to=whole, wish="zero")
        wide = site.add("Sub", wide, _spread(site, point, x, scale))
    product = [site.add("Cast", wide, to=_FLOAT), _spread(site, _wide(site, scale), x, scale)]
    result = site.needed_element(scale)
    if result == _FLOAT:
        site.put("Mul", product)
    else:
        site.put("Cast", [site.add("Mul", *product)], to=result)


def _narrow_scales(site: Site) -> None:
    """QLinearMatMul-10 has scales of float32, which holds them all."""
    names = list(site.node.input)
    if any(site.needed_element(names[place]) not in _BYTES for place in (0, 3)):
        rules.keep(site)
        return
    for place in (1, 4, 6):
        names[place] = _wide(site, names[place])
    site.same(names)


adapter("QuantizeLinear", 21, 19)(_quantize)
adapter("DequantizeLinear", 21, 19)(_dequantize)
adapter("QLinearMatMul", 21, 10)(_narrow_scales)
