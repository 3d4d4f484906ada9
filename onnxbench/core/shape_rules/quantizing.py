"""To and from quantized numbers."""

from __future__ import annotations

from collections.abc import Sequence

from onnx import TensorProto

from onnxbench.core.shape_rules.facts import FLOAT, Fact, tensor
from onnxbench.core.shape_rules.registry import MICROSOFT, rule
from onnxbench.core.shape_rules.site import Site


@rule("QuantizeLinear")
@rule("QuantizeLinear", domain=MICROSOFT)
def quantize(site: Site) -> Sequence[Fact]:
    """The type is the zero point's, else `output_dtype`'s, else UINT8."""
    kind = site.element(2) if site.given(2) else site.integer("output_dtype", 0) or TensorProto.UINT8
    return [tensor(kind, site.dims(0))]


@rule("DequantizeLinear")
@rule("DequantizeLinear", domain=MICROSOFT)
def dequantize(site: Site) -> Sequence[Fact]:
    """The type is `output_dtype`'s, else the scale's."""
    return [tensor(site.integer("output_dtype", 0) or site.element(1), site.dims(0))]


@rule("DynamicQuantizeLinear")
def dynamic(site: Site) -> Sequence[Fact]:
    """The quantized tensor, its scale and its zero point."""
    kind = TensorProto.UINT8
    return [tensor(kind, site.dims(0)), tensor(FLOAT, ()), tensor(kind, ())]
