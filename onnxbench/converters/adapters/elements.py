"""Element types that an older form has not: as a wider one where that loses nothing, and rounded once behind it.

Sources: ai.onnx Celu-12 and 28, Range-11 and 27, Einsum-12 and 28, Compress-11 and 28, OneHot-11 and 28,
ReverseSequence-10 and 28, Unique-11 and 28, IsInf-10 and 20, ReduceMax-18 and 20, ReduceMin alike; versions 22 of operators
that took bfloat16 then.
"""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from onnxbench.converters import rules, schemas
from onnxbench.converters.adapters import Adapter, adapter
from onnxbench.converters.adapters._bodies import expanded
from onnxbench.converters.site import Site

_FLOAT = int(TensorProto.FLOAT)
_NARROW = (TensorProto.FLOAT16, TensorProto.BFLOAT16)


def _widened(inputs: tuple[int, ...] | None, outputs: tuple[int, ...]) -> Adapter:
    """An adapter that lets an operator work in float32 where it is given a narrow float.

    Args:
        inputs: places of what is cast; all if None.
        outputs: places of what is cast back.
    """

    def down(site: Site) -> None:
        places = [place for place in (inputs or range(len(site.node.input))) if site.input(place)]
        narrow = {site.element(site.input(place)) for place in places}
        if not any(_is_lost(site, place) for place in places):
            rules.keep(site)
            return
        if len(narrow) != 1:
            site.refuse("its inputs have several element types")
        element = site.needed_element(site.input(places[0]))
        names = list(site.node.input)
        for place in places:
            names[place] = site.add("Cast", names[place], to=_FLOAT, wish="wide")
        made = list(site.node.output)
        back = [(place, made[place]) for place in outputs if site.output(place)]
        for place, name in back:
            made[place] = site.storage.fresh(f"{name}_wide")
        site.same(names, made)
        site.made[-1].name = site.storage.fresh(f"{site.node.name}_wide") if site.node.name and back else site.node.name
        for place, name in back:
            site.facts.made.pop(name, None)
            site.put("Cast", [made[place]], [name], to=element)

    return down


def _is_lost(site: Site, place: int) -> bool:
    """Whether an input has a narrow element type that the older form does not take."""
    new, element = site.step.new, site.element(site.input(place))
    assert new is not None
    formal = new.inputs[min(place, len(new.inputs) - 1)].type_str
    return element in _NARROW and schemas.type_text(element) not in schemas.allowed(new, formal)


def _any_of_bits(site: Site) -> None:
    """Of booleans the greatest is whether any is true; as int32."""
    x = site.input(0)
    if site.needed_element(x) != TensorProto.BOOL:
        rules.keep(site)
        return
    wide = site.add("Cast", x, to=int(TensorProto.INT32), wish="wide")
    names = [wide, *site.node.input[1:]]
    made = site.storage.fresh(f"{site.output()}_wide")
    site.same(names, [made])
    if site.node.name:
        site.made[-1].name = site.storage.fresh(f"{site.node.name}_wide")
    # Of no elements the greatest is the lowest int32, which is not more than 0, as false is.
    site.put("Greater", [made, site.const(0, "zero", np.int32)], [site.output()])


def _celu(site: Site) -> None:
    if site.needed_element(site.input(0)) == TensorProto.DOUBLE:
        expanded(site, "Celu-12 takes no float64")
        return
    _widened((0,), (0,))(site)


def _range(site: Site) -> None:
    """Start and steps in float32, each rounded on the way: as start + place * step."""
    element = site.needed_element(site.input(0))
    if element not in _NARROW:
        rules.keep(site)
        return
    wide = [site.add("Cast", site.input(place), to=_FLOAT, wish="wide") for place in range(3)]
    made = site.add("Range", *wide)
    site.put("Cast", [made], to=element)


for _op, _old, _new, _inputs, _outputs in (
    ("Einsum", 28, 12, None, (0,)),
    ("Compress", 28, 11, (0,), (0,)),
    ("ReverseSequence", 28, 10, (0,), (0,)),
    ("Unique", 28, 11, (0,), (0,)),
    ("IsInf", 20, 10, (0,), ()),
    ("OneHot", 28, 11, (2,), (0,)),
):
    adapter(_op, _old, _new)(_widened(_inputs, _outputs))
#: Operators of opset 22 with one element type, and the versions before.
_BEFORE_22 = {
    7: "Acos Asin Atan Cos Sin Tan",
    9: "Acosh Asinh Atanh Cosh Sinh",
    11: "Conv ConvTranspose Round",
    14: "HardSwish",
    6: "Elu HardSigmoid InstanceNormalization Selu",
    1: "GlobalAveragePool GlobalMaxPool LpNormalization Softplus Softsign",
    2: "GlobalLpPool",
    18: "LpPool Mish",
    10: "ThresholdedRelu",
}
for _old, _ops in _BEFORE_22.items():
    for _op in _ops.split():
        adapter(_op, 22, _old)(_widened(None, (0,)))
adapter("Celu", 28, 12)(_celu)
adapter("Range", 27, 11)(_range)
for _op in ("ReduceMax", "ReduceMin"):
    adapter(_op, 20, 18)(_any_of_bits)
