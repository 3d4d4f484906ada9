"""Split: sizes are an input or attribute in 1, an attribute from 2 on, an input from 13 on; `num_outputs` since 18.

Sources: ai.onnx Split-1, 2, 11, 13, 18 ("If the tensor is not evenly splittable into num_outputs, the last chunk will be
smaller"; before, parts are equal).
"""

from __future__ import annotations

from onnxbench.converters import rules
from onnxbench.converters.adapters import adapter
from onnxbench.converters.adapters._axes import not_negative, size_along
from onnxbench.converters.adapters._slices import gathered_range
from onnxbench.converters.site import Site


def _from_1(site: Site) -> None:
    if site.input(1):
        site.same([site.input(0)], split=site.ints(1, "the sizes"), axis=site.attr("axis", 0))
    else:
        site.same(axis=site.attr("axis", 0))


def _to_13(site: Site) -> None:
    if site.has("split"):
        site.same([site.input(0), site.from_attribute("split", "split")], drop=("split",))
    else:
        site.same()


def _from_13(site: Site) -> None:
    x = site.input(0)
    if not site.input(1):
        site.same([x])
        return
    known = site.value(site.input(1))
    if known is not None:
        site.same([x], split=[int(size) for size in known.reshape(-1)])
        return
    # Parts of sizes that only a run tells: each is gathered for itself.
    axis = site.attr("axis", 0)
    start = site.const([0], "zero")
    outputs = list(site.node.output)
    for place, name in enumerate(outputs):
        size = site.add("Gather", site.input(1), site.const([place], f"place_{place}"), axis=0, wish="size")
        if name:
            gathered_range(site, x, axis, start, size, name)
        start = site.add("Add", start, size, wish="start")


def _to_18(site: Site) -> None:
    if site.input(1):
        site.same()
    else:
        site.same(num_outputs=len(site.node.output))


def _from_18(site: Site) -> None:
    x, axis = site.input(0), site.attr("axis", 0)
    count = site.attr("num_outputs", len(site.node.output))
    if site.input(1):
        site.same(drop=("num_outputs",))
        return
    dims = site.dims(x)
    if count == 1 or (dims is not None and dims[axis] is not None and dims[axis] % count == 0):
        site.same(drop=("num_outputs",))
        return
    if dims is not None and dims[axis] is not None:
        most = -(-dims[axis] // count)
        sizes = [max(0, min(most, dims[axis] - most * place)) for place in range(count)]
        site.same([x, site.const(sizes, "sizes")], drop=("num_outputs",))
        return
    size = size_along(site, x, axis if axis >= 0 else axis + site.needed_rank(x))
    part = site.add("Div", site.add("Add", size, site.const([count - 1], "more")), site.const([count], "count"))
    others = site.add("Mul", part, site.const([count - 1], "more"))
    sizes_of = site.add("Concat", *[part] * (count - 1), site.add("Sub", size, others), axis=0, wish="sizes")
    site.same([x, sizes_of], drop=("num_outputs",))


def _to_1(site: Site) -> None:
    rules.keep(site)


adapter("Split", 1, 2)(_from_1)
adapter("Split", 2, 1)(_to_1)
adapter("Split", 11, 2)(not_negative("axis"))
adapter("Split", 11, 13)(_to_13)
adapter("Split", 13, 11)(_from_13)
adapter("Split", 13, 18)(_to_18)
adapter("Split", 18, 13)(_from_18)
