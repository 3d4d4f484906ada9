"""MeanVarianceNormalization: the axes that nobody says are written down.

Source: ai.onnx MeanVarianceNormalization-9 and 13; onnx's inference takes the body of 13 only with axes.
"""

from onnxbench.converters.adapters import adapter
from onnxbench.converters.site import Site


def _up(site: Site) -> None:
    site.same(axes=None if site.has("axes") else [0, 2, 3])


adapter("MeanVarianceNormalization", 9, 13)(_up)
