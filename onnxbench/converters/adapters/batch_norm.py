"""BatchNormalization: `is_test` before 7, `spatial` before 9, training as an attribute since 14, mixed types since 15.

Sources: ai.onnx BatchNormalization-1, 6, 7, 9, 14, 15.
"""

from __future__ import annotations

from onnx import TensorProto

from onnxbench.converters.adapters import adapter
from onnxbench.converters.adapters._masks import reduced
from onnxbench.converters.site import Site


def _outputs(site: Site) -> list[str]:
    names = list(site.node.output)
    while names and not names[-1]:
        names.pop()
    return names


def _from_6(site: Site) -> None:
    if not site.attr("is_test", 0):
        site.refuse("it normalizes by the batch at hand (is_test is 0), and BatchNormalization-7 by stored numbers")
    if len(_outputs(site)) > 1:
        site.refuse("it has outputs of training")
    site.same(drop=("is_test",))


def _to_6(site: Site) -> None:
    if len(_outputs(site)) > 1:
        site.refuse("it trains, which has other outputs in BatchNormalization-6")
    site.same(is_test=1)


def _spatial(site: Site) -> None:
    if site.attr("spatial", 1):
        site.same(drop=("spatial",))
        return
    if len(_outputs(site)) > 1:
        site.refuse("it trains with statistics of each activation (spatial is 0), which no later form has")
    # Statistics have the dims of one element of the batch: they broadcast from the end (BatchNormalization-7).
    x, scale, bias, mean, variance = (site.input(place) for place in range(5))
    epsilon = site.scalar_like(site.attr("epsilon"), x, "epsilon")
    deviation = site.add("Sqrt", site.add("Add", variance, epsilon))
    scaled = site.add("Mul", site.add("Div", site.add("Sub", x, mean), deviation), scale)
    site.put("Add", [scaled, bias])


def _to_14(site: Site) -> None:
    outputs = _outputs(site)
    if len(outputs) == 1:
        site.same()
        return
    if any(outputs[3:]):
        site.refuse("its saved mean and variance have no form from BatchNormalization-14 on")
    site.same(outputs=outputs[:3], training_mode=1)


def _from_14(site: Site) -> None:
    if not site.attr("training_mode", 0):
        _one_type(site, [site.input(place) for place in range(5)])
        return
    if site.opset < 9:
        site.refuse("it trains")
    x, scale, bias, mean, variance = (site.input(place) for place in range(5))
    rank, element = site.needed_rank(x), site.needed_element(x)
    axes = [axis for axis in range(rank) if axis != 1]
    if element != TensorProto.FLOAT or site.needed_element(mean) != element:
        site.refuse("it trains in other types than float32")
    epsilon = site.scalar_like(site.attr("epsilon"), x, "epsilon")
    center = reduced(site, "ReduceMean", x, axes, keepdims=1)
    moved = site.add("Sub", x, center)
    spread = reduced(site, "ReduceMean", site.add("Mul", moved, moved), axes, keepdims=1)
    deviation = site.add("Sqrt", site.add("Add", spread, epsilon))
    shape = site.const([-1] + [1] * (rank - 2), "shape")
    scaled = site.add("Mul", site.add("Div", moved, deviation), site.add("Reshape", scale, shape))
    momentum = site.attr("momentum")
    flat = site.const([-1], "flat")
    for place, old, new in ((1, mean, center), (2, variance, spread)):
        if site.output(place):
            kept = site.add("Mul", old, site.scalar_like(momentum, x, "momentum"))
            fresh = site.add("Mul", site.add("Reshape", new, flat), site.scalar_like(1 - momentum, x, "rest"))
            made = site.add("Add", kept, fresh)
            site.made[-1].output[0] = site.output(place)
            site.facts.made.forget(made)
    site.put("Add", [scaled, site.add("Reshape", bias, shape)], [site.output(0)])


def _one_type(site: Site, inputs: list[str]) -> None:
    """Before 14 all inputs have one element type: it is the widest of them."""
    elements = [site.element(name) for name in inputs]
    if None not in elements and len(set(elements)) == 1:
        if TensorProto.BFLOAT16 in elements:
            site.refuse("BatchNormalization-9 does not take bfloat16")
        site.same(drop=("training_mode",))
        return
    if None in elements:
        site.needed_element(inputs[elements.index(None)])
    if TensorProto.BFLOAT16 in elements:
        site.refuse("BatchNormalization-9 does not take bfloat16")
    widest = int(TensorProto.DOUBLE if TensorProto.DOUBLE in elements else TensorProto.FLOAT)
    wide = [name if site.element(name) == widest else site.add("Cast", name, to=widest) for name in inputs]
    first = site.needed_element(inputs[0])
    if first == widest:
        site.same(wide, drop=("training_mode",))
        return
    made, output = site.fresh("wide"), site.output(0)
    site.same(wide, [made], drop=("training_mode",))
    site.node.name = ""
    site.put("Cast", [made], [output], to=first)


def _from_15(site: Site) -> None:
    """BatchNormalization-14 has scale and bias in the type of the input."""
    names = [site.input(place) for place in range(5)]
    x = site.needed_element(names[0])
    if all(site.needed_element(name) == x for name in names[1:3]):
        site.same()
        return
    if site.attr("training_mode", 0):
        site.refuse("it trains with scale and bias in another type than the input")
    if TensorProto.BFLOAT16 in (site.needed_element(name) for name in names):
        site.refuse("scale and bias have another type than the input, and a Cast to bfloat16 would lose of it")
    widest = int(
        TensorProto.DOUBLE if TensorProto.DOUBLE in (site.element(name) for name in names) else TensorProto.FLOAT
    )
    wide = [name if site.element(name) == widest else site.add("Cast", name, to=widest) for name in names]
    if x == widest:
        site.same(wide)
        return
    made, output = site.fresh("wide"), site.output(0)
    site.same(wide, [made])
    site.node.name = ""
    site.put("Cast", [made], [output], to=x)


adapter("BatchNormalization", 6, 7)(_from_6)
adapter("BatchNormalization", 7, 6)(_to_6)
adapter("BatchNormalization", 7, 9)(_spatial)
adapter("BatchNormalization", 9, 14)(_to_14)
adapter("BatchNormalization", 14, 9)(_from_14)
adapter("BatchNormalization", 15, 14)(_from_15)
