"""Broadcasting before opset 7: one-way, asked for by `broadcast`, placed by `axis`.

Sources: ai.onnx Add-6 and Add-7, and the other operators of two inputs alike; Max-6 and 8, Mean, Min and Sum alike;
Gemm-6 and 7; PRelu-6 and 7.
"""

from __future__ import annotations

from onnxbench.converters import rules
from onnxbench.converters.adapters import adapter
from onnxbench.converters.site import Site

_OPERATORS = {"Add": 6, "Sub": 6, "Mul": 6, "Div": 6, "Pow": 1, "And": 1, "Or": 1, "Xor": 1, "Equal": 1, "Greater": 1}
_OPERATORS["Less"] = 1
_SWAPPED = {"Add": "Add", "Mul": "Mul", "And": "And", "Or": "Or", "Xor": "Xor", "Equal": "Equal"}
_SWAPPED |= {"Greater": "Less", "Less": "Greater"}
_END = (1 << 63) - 1


def _up(site: Site) -> None:
    a, b = site.input(0), site.input(1)
    if site.attr("broadcast", 0) and site.has("axis"):
        b = _aligned(site, a, b, site.attr("axis"))
    site.same([a, b], drop=("axis", "broadcast", "consumed_inputs"))


def _aligned(site: Site, a: str, b: str, axis: int) -> str:
    """The second input with dims of 1 behind it, so that it ends where the first does."""
    inner = site.needed_rank(b)
    outer = site.rank(a)
    if axis < 0:  # -1 is how Caffe2 says "at the end"
        return b
    if outer is not None:
        behind = outer - axis - inner
        if behind < 0:
            site.refuse(f"axis {axis} leaves no room for the {inner} dims of {b}")
        return site.add("Unsqueeze", b, axes=list(range(inner, inner + behind)), wish="aligned") if behind else b
    rest = site.add("Slice", site.add("Shape", a, wish="shape"), axes=[0], starts=[axis + inner], ends=[_END])
    ones = site.add("Add", site.add("Sub", rest, rest), site.const([1], "one"))
    shape = site.add("Concat", site.add("Shape", b, wish="shape"), ones, axis=0)
    return site.add("Reshape", b, shape, wish="aligned")


def _down(site: Site) -> None:
    a, b = site.input(0), site.input(1)
    one, other = site.dims(a), site.dims(b)
    if one is None or other is None or None in one or None in other:
        site.refuse("the dims of both inputs have to be known: the older form broadcasts only one way")
    if one == other:
        site.same()
        return
    for first, second, swapped in ((a, b, False), (b, a, True)):
        if swapped and site.node.op_type not in _SWAPPED:
            break
        axis = _axis_of(site.dims(first) or (), site.dims(second) or ())
        if axis is not None:
            place, squeezed = axis
            if squeezed:
                second = site.add("Squeeze", second, axes=squeezed, wish="squeezed")
            op = _SWAPPED[site.node.op_type] if swapped else site.node.op_type
            site.same([first, second], op=op, broadcast=1, axis=place)
            return
    site.refuse(f"dims {_text(one)} and {_text(other)} do not broadcast one way")


def _axis_of(outer: tuple[int | None, ...], inner: tuple[int | None, ...]) -> tuple[int | None, list[int]] | None:
    """Where the inner dims lie in the outer ones, and which of them are left out; None if they are no piece of them."""
    if len(inner) > len(outer):
        return None
    shift = len(outer) - len(inner)
    kept = [axis for axis, dim in enumerate(inner) if dim != 1 or outer[axis + shift] == 1]
    while kept and kept[0] != 0 and inner[kept[0]] == 1:
        kept.pop(0)
    real = [axis for axis, dim in enumerate(inner) if dim != 1]
    if not real:
        return None, [] if len(inner) <= 1 else list(range(len(inner)))
    run = list(range(real[0], real[-1] + 1))
    if any(inner[axis] != outer[axis + shift] for axis in run):
        return None
    return run[0] + shift, [axis for axis in range(len(inner)) if axis not in run]


def _text(dims: tuple[int | None, ...]) -> str:
    return "x".join(map(str, dims)) or "none"


def _gemm_up(site: Site) -> None:
    site.same(drop=("broadcast",))


def _gemm_without_c(site: Site) -> None:
    """Gemm-9 and before need C: a 0 that broadcasts."""
    if not site.input(2):
        site.node.input[:] = [site.input(0), site.input(1), site.scalar_like(0, site.input(0), "zero")]
    rules.keep(site)


def _prelu_up(site: Site) -> None:
    """PRelu-6 has a slope of one number or one for each channel; PRelu-7 broadcasts it from the end."""
    x, slope = site.input(0), site.input(1)
    if site.needed_rank(slope) == 1:
        dims = site.dims(slope)
        if dims is None or dims[0] != 1:
            rank = site.needed_rank(x)
            if rank > 2:
                slope = site.add("Unsqueeze", slope, axes=list(range(1, rank - 1)), wish="slope")
    site.same([x, slope])


def _prelu_down(site: Site) -> None:
    x, slope = site.input(0), site.input(1)
    dims, rank = site.dims(slope), site.needed_rank(x)
    if dims is None or None in dims:
        site.refuse("the dims of the slope have to be known")
    shift = rank - len(dims)
    wide = [axis for axis, dim in enumerate(dims) if dim != 1]
    if wide and [axis + shift for axis in wide] != [1]:
        site.refuse("the older form takes one slope, or one for each channel")
    if len(dims) != 1:
        slope = site.add("Reshape", slope, site.const([-1], "shape"), wish="slope")
    site.same([x, slope])


def _of_many(site: Site) -> None:
    """Max, Mean, Min and Sum broadcast since 8; before, all inputs have one shape. Add and Mul broadcast since 7."""
    names = list(site.node.input)
    if len(names) == 1 or site.facts.of_one_shape(names):
        rules.keep(site)
        return
    if site.node.op_type in ("Max", "Min"):
        site.refuse("the older form does not broadcast, and its inputs are not known to have one shape")
    total = names[0]
    for name in names[1:-1]:
        total = site.add("Add", total, name, wish="sum")
    if site.node.op_type == "Sum":
        site.put("Add", [total, names[-1]])
        return
    total = site.add("Add", total, names[-1], wish="sum")
    site.put("Div", [total, site.scalar_like(len(names), names[0], "count")])


def _c_alike(site: Site) -> None:
    """Gemm-7 broadcasts C as Add-7 does; Gemm-6 only if its dims are the last of the result's, or there is one number."""
    c = site.input(2)
    dims = site.dims(c)
    if dims is None:
        site.refuse("the dims of C have to be known: the older form broadcasts only what stands at the end")
    if len(dims) == 2 and dims[0] == 1:
        c = site.add("Squeeze", c, axes=[0], wish="squeezed")
    elif len(dims) == 2 and not site.facts.of_one_shape([c, site.output(0)]):
        given = "x".join(str(dim or "?") for dim in dims)
        site.refuse(f"C of {given} is not known to have the dims of the result")
    site.same([site.input(0), site.input(1), c], broadcast=1)


for _op, _version in _OPERATORS.items():
    adapter(_op, _version, 7)(_up)
    adapter(_op, 7, _version)(_down)
adapter("Gemm", 6, 7)(_gemm_up)
for _op in ("Max", "Mean", "Min", "Sum"):
    adapter(_op, 8, 6)(_of_many)
adapter("Gemm", 7, 6)(_c_alike)
adapter("Gemm", 11, 9)(_gemm_without_c)
adapter("PRelu", 6, 7)(_prelu_up)
adapter("PRelu", 7, 6)(_prelu_down)
