"""DFT: the axis is an attribute before 20, an input since; Tile: one axis in 1, all since 6.

Sources: ai.onnx DFT-17 (axis 1) and 20 (axis -2), Tile-1 and 6.
"""

from onnxbench.converters.adapters import adapter
from onnxbench.converters.adapters.fourier import along_any
from onnxbench.converters.site import Site


def _dft_up(site: Site) -> None:
    axis = site.from_attribute("axis", "axis")
    site.same([site.input(0), site.input(1), axis], drop=("axis",))


def _dft_down(site: Site) -> None:
    axis = -2
    if site.input(2):
        known = site.value(site.input(2))
        if known is None:
            along_any(site)
            return
        axis = int(known.reshape(-1)[0])
    if axis < 0:
        axis += site.needed_rank(site.input(0))
    site.same([site.input(0), site.input(1)], axis=axis)


def _tile_up(site: Site) -> None:
    tiles, axis = site.ints(1, "how often"), site.ints(2, "the axis")
    rank = site.needed_rank(site.input(0))
    repeats = [1] * rank
    repeats[axis[0]] = tiles[0]
    site.same([site.input(0), site.const(repeats, "repeats")])


def _tile_down(site: Site) -> None:
    """Tile-1 repeats along one axis: as many of them as there are axes to repeat."""
    import numpy as np

    repeats = site.ints(1, "how often")
    element = site.needed_element(site.input(0))
    if element not in (1, 10, 11):
        site.refuse("Tile-1 takes floats only")
    from onnx import helper

    dtype = helper.tensor_dtype_to_np_dtype(element)
    current = site.input(0)
    moved = [axis for axis, count in enumerate(repeats) if count != 1] or [0]
    for axis in moved[:-1]:
        current = site.add("Tile", current, site.const(repeats[axis], "tiles", dtype), site.const(axis, "axis", dtype))
    last = moved[-1]
    site.put("Tile", [current, site.const(np.asarray(repeats[last]), "tiles", dtype), site.const(last, "axis", dtype)])


adapter("DFT", 17, 20)(_dft_up)
adapter("DFT", 20, 17)(_dft_down)
adapter("Tile", 1, 6)(_tile_up)
adapter("Tile", 6, 1)(_tile_down)
