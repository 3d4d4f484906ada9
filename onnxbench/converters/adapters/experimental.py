"""Operators that opsets before 10 had as experiments, and files of that time still hold.

onnx does not know them any more. Sources: the operator document of onnx 1.2 to 1.4, "experimental".
"""

from __future__ import annotations

import numpy as np

from onnxbench.converters.adapters import experiment
from onnxbench.converters.site import Site


@experiment("ThresholdedRelu", 10)
def _thresholded(site: Site) -> None:
    site.same()


@experiment("DynamicSlice", 10)
def _dynamic_slice(site: Site) -> None:
    site.same(op="Slice")


@experiment("Affine", 7)
def _affine(site: Site) -> None:
    x = site.input(0)
    scaled = site.add("Mul", x, site.scalar_like(site.attr("alpha", 1.0), x, "alpha"))
    site.put("Add", [scaled, site.scalar_like(site.attr("beta", 0.0), x, "beta")])


@experiment("Scale", 7)
def _scale(site: Site) -> None:
    x = site.input(0)
    site.put("Mul", [x, site.scalar_like(site.attr("scale", 1.0), x, "scale")])


@experiment("ParametricSoftplus", 7)
def _softplus(site: Site) -> None:
    x = site.input(0)
    inner = site.add("Softplus", site.add("Mul", x, site.scalar_like(site.attr("beta", 1.0), x, "beta")))
    site.put("Mul", [inner, site.scalar_like(site.attr("alpha", 1.0), x, "alpha")])


@experiment("ScaledTanh", 7)
def _scaled_tanh(site: Site) -> None:
    x = site.input(0)
    inner = site.add("Tanh", site.add("Mul", x, site.scalar_like(site.attr("beta", 1.0), x, "beta")))
    site.put("Mul", [inner, site.scalar_like(site.attr("alpha", 1.0), x, "alpha")])


@experiment("ImageScaler", 7)
def _image_scaler(site: Site) -> None:
    """N, C, H, W: every element times the scale, and the bias of its channel."""
    x = site.input(0)
    scaled = site.add("Mul", x, site.scalar_like(site.attr("scale", 1.0), x, "scale"))
    bias = site.attr("bias")
    if not bias:
        site.put("Identity", [scaled])
        return
    one = site.value(site.scalar_like(1, x, "one"))
    assert one is not None
    column = np.asarray(bias, one.dtype).reshape(-1, 1, 1)
    site.put("Add", [scaled, site.const(column, "bias", one.dtype)])


@experiment("Crop", 7)
def _crop(site: Site) -> None:
    """N, C, H, W: a border is (left, top, right, bottom); with a scale, its height and width count from left and top."""
    left, top, right, bottom = site.attr("border")
    scale = site.attr("scale")
    ends = (
        [top + scale[0], left + scale[1]] if scale else [-bottom if bottom else 1 << 62, -right if right else 1 << 62]
    )
    site.put("Slice", [site.input(0)], axes=[2, 3], starts=[top, left], ends=ends)


@experiment("MeanVarianceNormalization", 9)
def _normalization(site: Site) -> None:
    """A function of axes in onnx 1.3, as it is from opset 9 on; before, it was said otherwise what they are."""
    if site.has("across_channels") or site.has("normalize_variance"):
        site.refuse("what it averages over (across_channels) was read in different ways")
    site.same()
