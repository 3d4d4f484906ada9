"""Upsample and Resize: where samples lie, and how sizes are said.

Upsample and Resize-10 sample asymmetrically; nearest takes the floor where a dim grows and the ceiling where it shrinks
(ONNX Runtime's "simple" rounding, which ONNX's own adapter does not say). Sources: ai.onnx Upsample-1, 7, 9, 10,
Resize-10, 11, 13, 18, 19.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import helper

from onnxbench.converters import rules
from onnxbench.converters.adapters import adapter
from onnxbench.converters.adapters.resample import resample, resample_10
from onnxbench.converters.site import Site


def _from_1(site: Site) -> None:
    scales = [1.0, 1.0, site.attr("height_scale"), site.attr("width_scale")]
    mode = {"bilinear": "linear"}.get(site.attr("mode"), site.attr("mode"))
    site.same(drop=("height_scale", "width_scale"), scales=scales, mode=mode)


def _to_1(site: Site) -> None:
    scales = site.attr("scales")
    if len(scales) != 4 or scales[0] != 1 or scales[1] != 1:
        site.refuse("Upsample-1 takes four dims, and scales the last two")
    mode = {"linear": "bilinear"}.get(site.attr("mode"), site.attr("mode"))
    site.same(drop=("scales",), height_scale=scales[2], width_scale=scales[3], mode=mode)


def _from_7(site: Site) -> None:
    site.same([site.input(0), site.from_attribute("scales", "scales", np.float32)], drop=("scales",))


def _to_7(site: Site) -> None:
    scales = [float(scale) for scale in site.static(1, "scales").reshape(-1)]
    site.same([site.input(0)], scales=scales)


def _to_resize(site: Site) -> None:
    site.put("Resize", list(site.node.input), mode=site.attr("mode"))


def _from_resize(site: Site) -> None:
    """Upsample-9 takes scales of 1 and more."""
    scales = site.value(site.input(1))
    if scales is None or (scales < 1).any():
        resample_10(site)
        return
    site.put("Upsample", list(site.node.input), mode=site.attr("mode"))


def _resize_up(site: Site) -> None:
    x, scales, mode = site.input(0), site.input(1), site.attr("mode")
    roi = site.const([], "roi", np.float32) if site.target < 13 else ""  # Resize-11 has to have one
    if mode != "nearest":
        site.same([x, roi, scales], coordinate_transformation_mode="asymmetric")
        return
    known = site.value(scales)
    asymmetric = {"coordinate_transformation_mode": "asymmetric", "mode": "nearest"}
    if known is not None and (known >= 1).all():
        site.same([x, roi, scales], nearest_mode="floor", **asymmetric)
    elif known is not None and (known <= 1).all():
        site.same([x, roi, scales], nearest_mode="ceil", **asymmetric)
    else:
        _in_two(site, x, roi, scales, known, asymmetric)


def _in_two(site: Site, x: str, roi: str, scales: str, known: np.ndarray | None, how: dict[str, Any]) -> None:
    """One Resize for the dims that grow, one for those that shrink."""
    if known is not None:
        grow = site.const(np.maximum(known, 1), "grow", np.float32)
        shrink = site.const(np.minimum(known, 1), "shrink", np.float32)
    else:
        one = site.const([1], "one", np.float32)
        grow, shrink = site.add("Max", scales, one, wish="grow"), site.add("Min", scales, one, wish="shrink")
    larger = site.add("Resize", x, roi, grow, nearest_mode="floor", wish="grown", **how)
    site.put("Resize", [larger, roi, shrink], nearest_mode="ceil", **how)


def _resize_down(site: Site) -> None:
    """To Resize-10, which samples asymmetrically, by scales; else each axis is gathered."""
    x, mode = site.input(0), site.attr("mode")
    where = site.attr("coordinate_transformation_mode")
    scales = None if mode == "cubic" or where == "tf_crop_and_resize" else _scales(site, x)
    if scales is None:
        resample(site)
        return
    known = site.value(scales)
    plain = where == "asymmetric" and mode == "linear"
    if known is not None:
        plain = _is_asymmetric(site, known, site.dims(x), where, mode)
    if plain:
        site.put("Resize", [x, scales], mode=mode)
    else:
        resample(site)


def _scales(site: Site, x: str) -> str | None:
    """Scales that make the sizes that are asked for; None if there are none, or they are only known at run time."""
    scales, sizes = site.input(2), site.input(3)
    if not sizes:
        return scales
    known, dims = site.value(sizes), site.dims(x)
    if known is None or dims is None or None in dims:
        return None
    given = [int(size) for size in known.reshape(-1)]
    if any(dim == 0 for dim in dims):
        return None
    ratios = np.asarray([size / dim for size, dim in zip(given, dims, strict=True) if dim is not None], np.float32)
    for size, dim, ratio in zip(given, dims, ratios, strict=True):
        # The size that Resize-10 computes must be the one that is asked for: floor(dim * scale), in float32.
        if dim is not None and int(np.floor(np.float32(dim) * ratio)) != size:
            return None
    return site.const(ratios, "scales", np.float32)


def _is_asymmetric(site: Site, scales: np.ndarray, dims: tuple[int | None, ...] | None, where: str, mode: str) -> bool:
    """Whether samples lie, and are rounded, as Resize-10 does it; told by counting where all sizes are known."""
    nearest = site.attr("nearest_mode")
    moved = [place for place, scale in enumerate(scales.reshape(-1)) if scale != 1]
    for place in moved:
        scale = float(scales.reshape(-1)[place])
        if where == "asymmetric" and (mode == "linear" or nearest == ("floor" if scale >= 1 else "ceil")):
            continue
        if mode != "nearest" or dims is None or dims[place] is None:
            return False
        if not _same_places(int(dims[place] or 0), scale, where, nearest):
            return False
    return True


def _same_places(size: int, scale: float, where: str, nearest: str) -> bool:
    """Whether each output element takes the same input element in both forms."""
    count = int(np.floor(size * scale))
    places = np.arange(count, dtype=np.float64)
    if where in ("half_pixel", "half_pixel_symmetric"):
        source = (places + 0.5) / scale - 0.5
    elif where == "pytorch_half_pixel":
        source = (places + 0.5) / scale - 0.5 if count > 1 else places * 0
    elif where == "align_corners":
        source = places * (size - 1) / (count - 1) if count > 1 else places * 0
    elif where == "asymmetric":
        source = places / scale
    else:
        return False
    low, high = np.floor(source), np.ceil(source)
    chosen = {
        "floor": low,
        "ceil": high,
        "round_prefer_floor": np.where(source == low + 0.5, low, np.floor(source + 0.5)),
        "round_prefer_ceil": np.floor(source + 0.5),
    }[nearest]
    old = places / scale
    wanted = np.floor(old) if scale >= 1 else np.ceil(old)
    # Numbers that are nearly whole are rounded one way or the other: nothing is told of them.
    for numbers in (source, old):
        halves = np.abs(numbers * 2 - np.round(numbers * 2))
        if ((halves > 0) & (halves < 1e-4)).any():
            return False
    return bool(np.array_equal(np.clip(chosen, 0, size - 1), np.clip(wanted, 0, size - 1)))


def _to_13(site: Site) -> None:
    """Resize-13 has no tf_half_pixel_for_nn, and takes either scales or sizes."""
    x, roi, scales, sizes = (site.input(place) for place in range(4))
    known = site.value(scales) if scales else None
    if sizes and scales and (known is None or known.size == 0):
        scales = ""
    given = {}
    if site.attr("coordinate_transformation_mode") == "tf_half_pixel_for_nn":
        # It samples at (x + 0.5) / scale, half_pixel half an element further back: rounding makes up for it.
        nearest = {"floor": "round_prefer_ceil", "round_prefer_floor": "ceil"}.get(site.attr("nearest_mode"))
        if site.attr("mode") != "nearest" or nearest is None:
            resample(site)
            return
        given = {"coordinate_transformation_mode": "half_pixel", "nearest_mode": nearest}
    site.same([x, roi, scales, sizes], **given)


def _to_11(site: Site) -> None:
    """Resize-11 needs a roi and scales, even empty ones."""
    x, roi, scales, sizes = (site.input(place) for place in range(4))
    roi = roi or site.const([], "roi", np.float32)
    scales = scales or site.const([], "scales", np.float32)
    site.same([x, roi, scales, sizes])


def _from_18(site: Site) -> None:
    """Resize-13 scales every axis, and keeps no ratio by itself."""
    if site.attr("antialias", 0):
        resample(site)
        return
    policy = site.attr("keep_aspect_ratio_policy", "stretch")
    axes = site.attr("axes") if site.has("axes") else None
    x, roi, scales, sizes = (site.input(place) for place in range(4))
    drop = ("axes", "keep_aspect_ratio_policy", "antialias")
    if axes is None and (policy == "stretch" or not sizes):
        site.same([x, roi, scales, sizes], drop=drop)
        return
    rank = site.needed_rank(x)
    numbers = [axis % rank for axis in axes] if axes is not None else list(range(rank))
    if roi and site.attr("coordinate_transformation_mode") == "tf_crop_and_resize":
        roi = _every_roi(site, roi, numbers, rank)
    elif roi and len(numbers) != rank:
        roi = ""
    if scales:
        put = site.add(
            "ScatterElements", site.const([1] * rank, "ones", np.float32), site.const(numbers, "axes"), scales
        )
        site.same([x, roi, put, ""], drop=drop)
        return
    if policy != "stretch":
        resample(site)
        return
    shape = site.add("Shape", x, wish="shape")
    put = site.add("ScatterElements", shape, site.const(numbers, "axes"), sizes, wish="sizes")
    site.same([x, roi, "", put], drop=drop)


def _every_roi(site: Site, roi: str, numbers: list[int], rank: int) -> str:
    dtype = helper.tensor_dtype_to_np_dtype(site.needed_element(roi))
    whole = site.const([0.0] * rank + [1.0] * rank, "whole", dtype)
    places = site.const([*numbers, *(axis + rank for axis in numbers)], "places")
    return site.add("ScatterElements", whole, places, roi, wish="roi")


def _from_19(site: Site) -> None:
    if site.attr("coordinate_transformation_mode") == "half_pixel_symmetric":
        resample(site)
        return
    rules.keep(site)


adapter("Upsample", 1, 7)(_from_1)
adapter("Upsample", 7, 1)(_to_1)
adapter("Upsample", 7, 9)(_from_7)
adapter("Upsample", 9, 7)(_to_7)
adapter("Upsample", 9, 10)(_to_resize)
adapter("Resize", 10, 0)(_from_resize)
adapter("Resize", 10, 11)(_resize_up)
adapter("Resize", 11, 10)(_resize_down)
adapter("Resize", 11, 13)(_to_13)
adapter("Resize", 13, 11)(_to_11)
adapter("Resize", 18, 13)(_from_18)
adapter("Resize", 19, 18)(_from_19)
