"""Scatter became ScatterElements; reductions came in 16 and 18.

Sources: ai.onnx Scatter-9 and 11, ScatterElements-11, 13, 16, 18, GatherND-11 and 12, ScatterND-11.
"""

from onnxbench.converters.adapters import adapter
from onnxbench.converters.adapters._axes import not_negative_indices
from onnxbench.converters.site import Site


def _up(site: Site) -> None:
    site.same(op="ScatterElements")


def _down(site: Site) -> None:
    x, axis = site.input(0), site.attr("axis", 0)
    if axis < 0:
        axis += site.needed_rank(x)
    indices = not_negative_indices(site, site.input(1), x, axis)
    site.same([x, indices, site.input(2)], op="Scatter", axis=axis)


adapter("Scatter", 9, 11)(_up)
adapter("ScatterElements", 11, 0)(_down)
adapter("Scatter", 11, 9)(_down)  # withdrawn, and runtimes still take it
