"""Resize and Upsample: sizes given, or scaled and rounded down."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from onnxbench.core.shape_rules.facts import Dim, Dims, Element, Fact, tensor
from onnxbench.core.shape_rules.registry import rule
from onnxbench.core.shape_rules.site import Site, as_size
from onnxbench.core.symbolic import Expr, floordiv


@rule("Upsample")
def upsample(site: Site) -> Sequence[Fact]:
    """Scales are attributes before opset 9."""
    before = site.dims(0)
    if before is None:
        return [tensor(site.element())]
    if site.has("height_scale"):
        scales: Sequence[Element] | None = [1, 1, *(_attribute(site, f"{side}_scale") for side in ("height", "width"))]
    else:
        scales = site.floats("scales") if site.has("scales") else site.input(1).data
    return [tensor(site.element(), _scaled_all(before, scales))]


def _attribute(site: Site, name: str) -> float | None:
    found = site.attribute(name)
    return None if found is None else float(found.f)


@rule("Resize")
def resize(site: Site) -> Sequence[Fact]:
    """Sizes win over scales; with `axes` (opset 18) the other axes stay; an aspect ratio that is kept is left open."""
    before = site.dims(0)
    if before is None:
        return [tensor(site.element())]
    if site.version < 11:
        return [tensor(site.element(), _scaled_all(before, site.input(1).data))]
    unknown: Dims = (None,) * len(before)
    axes = site.ints("axes") or list(range(len(before)))
    stretched = site.text("keep_aspect_ratio_policy") in ("", "stretch")
    if site.given(3) and site.count(3) != 0:
        sizes = site.input(3).data
        if sizes is None or not stretched or len(sizes) != len(axes):
            return [tensor(site.element(), unknown)]
        return [tensor(site.element(), _placed(before, axes, [as_size(size) for size in sizes]))]
    scales = site.input(2).data
    if scales is None or len(scales) != len(axes):
        return [tensor(site.element(), unknown)]
    dims = list(before)
    for axis, scale in zip(axes, scales, strict=True):
        cropped = site.text("coordinate_transformation_mode") == "tf_crop_and_resize"
        dims[axis] = None if cropped else _scaled(dims[axis], scale)
    return [tensor(site.element(), dims)]


def _placed(before: Dims, axes: Sequence[int], sizes: Sequence[Dim]) -> Dims:
    dims = list(before)
    for axis, size in zip(axes, sizes, strict=True):
        dims[axis] = size
    return tuple(dims)


def _scaled_all(before: Dims, scales: Sequence[Element] | None) -> Dims:
    if scales is None or len(scales) != len(before):
        return (None,) * len(before)
    return tuple(_scaled(dim, scale) for dim, scale in zip(before, scales, strict=True))


def _scaled(dim: Dim, scale: Element) -> Dim:
    if scale == 1:
        return dim
    if dim is None or scale is None or isinstance(scale, Expr):
        return None
    if isinstance(dim, int):
        return int(np.float32(scale) * np.float32(dim))
    exact = Fraction(scale)
    if exact.denominator > 1024 or exact.numerator > 1024:
        return None
    return floordiv(dim * exact.numerator, exact.denominator)
