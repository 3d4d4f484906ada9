"""MeanVarianceNormalization: the axes that nobody says are written down. LayerNormalization before 17, written out.

Sources: ai.onnx MeanVarianceNormalization-9 and 13 (onnx's inference takes the body of 13 only with axes),
LayerNormalization-17.
"""

from onnx import helper

from onnxbench.converters.adapters import adapter
from onnxbench.converters.adapters._masks import reduced
from onnxbench.converters.site import Site


def _up(site: Site) -> None:
    site.same(axes=None if site.has("axes") else [0, 2, 3])


adapter("MeanVarianceNormalization", 9, 13)(_up)


def _layer(site: Site) -> None:
    """LayerNormalization-17 written out, without the reshapes of the specification's body: empty tensors stay what they are."""
    x, scale, bias = (site.input(place) for place in range(3))
    axis, element = site.attr("axis"), site.needed_element(x)
    if axis >= 0:
        rank = site.needed_rank(x)
        axes = list(range(axis - rank, 0))
    else:
        axes = list(range(axis, 0))
    stash = site.attr("stash_type", 1)
    wide = x if element == stash else site.add("Cast", x, to=stash, wish="wide")
    mean = reduced(site, "ReduceMean", wide, axes, keepdims=1)
    moved = site.add("Sub", wide, mean, wish="moved")
    variance = reduced(site, "ReduceMean", site.add("Mul", moved, moved), axes, keepdims=1)
    dtype = helper.tensor_dtype_to_np_dtype(stash)
    raised = site.add("Add", variance, site.const(site.attr("epsilon"), "epsilon", dtype))
    inverse = site.add("Reciprocal", site.add("Sqrt", raised), wish="inverse")
    normal = site.add("Mul", moved, inverse, wish="normal")
    normal = normal if element == stash else site.add("Cast", normal, to=element, wish="normal")
    for place, value in ((1, mean), (2, inverse)):
        if site.output(place):
            site.put("Identity", [value], [site.output(place)])
    if bias:
        site.put("Add", [site.add("Mul", normal, scale), bias], [site.output(0)])
    else:
        site.put("Mul", [normal, scale], [site.output(0)])


adapter("LayerNormalization", 17, 0)(_layer)
