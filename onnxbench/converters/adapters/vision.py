"""GridSample, RoiAlign, DepthToSpace, GlobalLpPool, LpPool, GroupNormalization.

Sources: ai.onnx GridSample-16 and 20, RoiAlign-10 and 16, DepthToSpace-1, 11, 13, LpPool-1, 2, 11, 18,
GroupNormalization-18 and 21.
"""

from __future__ import annotations

import numpy as np

from onnxbench.converters.adapters import adapter
from onnxbench.converters.adapters._axes import size_along
from onnxbench.converters.adapters.volumes import sample
from onnxbench.converters.site import Site

_MODES = {"bilinear": "linear", "bicubic": "cubic", "nearest": "nearest"}


def _grid_up(site: Site) -> None:
    mode = site.attr("mode")
    site.same(mode=_MODES.get(mode, mode))


def _grid_down(site: Site) -> None:
    if site.needed_rank(site.input(0)) != 4:
        sample(site)
        return
    mode = site.attr("mode")
    site.same(mode={new: old for old, new in _MODES.items()}.get(mode, mode))


def _roi_up(site: Site) -> None:
    site.same(coordinate_transformation_mode="output_half_pixel")


def _roi_down(site: Site) -> None:
    """RoiAlign-10 makes every region at least one element wide, which half_pixel does not."""
    if site.attr("coordinate_transformation_mode") != "output_half_pixel":
        site.refuse("RoiAlign-10 samples elsewhere (coordinate_transformation_mode is half_pixel)")
    site.same(drop=("coordinate_transformation_mode",))


def _depth_to_space(site: Site) -> None:
    """DepthToSpace-1 takes depth first; column-row-depth is a matter of how channels are split."""
    if site.attr("mode") == "DCR":
        site.same(drop=("mode",))
        return
    x, block = site.input(0), site.attr("blocksize")
    dims = site.dims(x)
    if dims is None or None in dims:
        site.refuse("mode CRD takes dims that are known")
    n, c, h, w = (int(dim or 0) for dim in dims)
    split = site.const([n, c // block**2, block, block, h, w], "split")
    parts = site.add("Transpose", site.add("Reshape", x, split), perm=[0, 1, 4, 2, 5, 3])
    site.put("Reshape", [parts, site.const([n, c // block**2, h * block, w * block], "shape")])


def _whole_p(site: Site) -> None:
    """P was a float in opset 1."""
    p = site.attr("p", 2.0)
    if p != int(p):
        site.refuse(f"p is {p}, and later forms take whole numbers")
    site.same(p=int(p), drop=("p",))


def _float_p(site: Site) -> None:
    site.same(p=float(site.attr("p")), drop=("p",))


def _group_up(site: Site) -> None:
    """Scale and bias of each group become those of each of its channels."""
    x, groups = site.input(0), site.attr("num_groups")
    names = [_for_channels(site, x, site.input(place), groups, ("scale", "bias")[place - 1]) for place in (1, 2)]
    site.same([x, *names])


def _for_channels(site: Site, x: str, name: str, groups: int, wish: str) -> str:
    value, dims = site.value(name), site.dims(x)
    channels = dims[1] if dims is not None and len(dims) > 1 else None
    if value is not None and channels is not None:
        return site.const(np.repeat(value, channels // groups), wish, value.dtype)
    channels_of = size_along(site, x, 1)
    each = site.add("Div", channels_of, site.const([groups], "groups"))
    shape = site.add("Concat", site.const([groups], "groups"), each, axis=0)
    column = site.add("Reshape", name, site.const([groups, 1], "column"))
    return site.add("Reshape", site.add("Expand", column, shape), site.const([-1], "flat"), wish=wish)


adapter("GridSample", 16, 20)(_grid_up)
adapter("GridSample", 20, 16)(_grid_down)
adapter("RoiAlign", 10, 16)(_roi_up)
adapter("RoiAlign", 16, 10)(_roi_down)
adapter("DepthToSpace", 11, 1)(_depth_to_space)
for _op in ("GlobalLpPool", "LpPool"):
    adapter(_op, 1, 2)(_whole_p)
    adapter(_op, 2, 1)(_float_p)
adapter("GroupNormalization", 18, 21)(_group_up)
