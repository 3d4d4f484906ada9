"""AveragePool and LpPool whose windows have gaps: sums of windows are a Conv with ones, of one channel at a time.

Sources: ai.onnx AveragePool-11 and 19, LpPool-11 and 18, Conv-11.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from onnx import TensorProto, helper

from onnxbench.converters import rules
from onnxbench.converters.adapters import adapter
from onnxbench.converters.adapters._numbers import Number, Numbers
from onnxbench.converters.site import Site


@dataclass(frozen=True, slots=True)
class _Windows:
    """Windows: attributes of the operators by their names; `over` is what ends behind the padding, by axis."""

    kernel: list[int]
    dilations: list[int]
    strides: list[int]
    pads: list[int]
    over: list[int]


def _windows(site: Site) -> _Windows | None:
    """None if they have no gaps.

    Raises:
        Refused: where sizes decide, and are not known.
    """
    kernel = site.attr("kernel_shape")
    axes = len(kernel)
    dilations = site.attr("dilations", None) or [1] * axes
    if all(dilation == 1 for dilation in dilations):
        return None
    if site.attr("auto_pad", "NOTSET") not in ("NOTSET", "VALID"):
        site.refuse("windows with gaps, and auto_pad")
    strides = site.attr("strides", None) or [1] * axes
    pads = site.attr("pads", None) or [0] * (2 * axes)
    if site.attr("auto_pad", "NOTSET") == "VALID":
        pads = [0] * (2 * axes)
    over = [0] * axes
    if site.attr("ceil_mode", 0):
        dims = site.dims(site.input(0))
        if dims is None or None in dims[2:]:
            site.refuse("ceil_mode of windows with gaps takes sizes that are known")
        for axis in range(axes):
            before, after = pads[axis], pads[axis + axes]
            size, reach = int(dims[axis + 2] or 0), (kernel[axis] - 1) * dilations[axis] + 1
            room = size + before + after - reach
            last = -(-room // strides[axis]) * strides[axis]
            if last >= size + before:
                site.refuse("ceil_mode: the last window starts behind the input, and runtimes do not agree on that")
            over[axis] = max(last - room, 0)
    return _Windows(kernel, dilations, strides, pads, over)


def _summed(site: Site, x: str, windows: _Windows, *, padded: bool = False) -> str:
    """Sums of the windows of [N, 1, …]; of what the padding is part of where `padded`."""
    axes = len(windows.kernel)
    ones = np.ones([1, 1, *windows.kernel], np.float32)
    kind = helper.tensor_dtype_to_np_dtype(site.needed_element(x))
    pads = list(windows.pads)
    if padded:
        pads = [0] * (2 * axes)
    ends = [pads[axis + axes] + windows.over[axis] for axis in range(axes)]
    return site.add(
        "Conv", x, site.const(ones.astype(kind), "ones", kind), kernel_shape=windows.kernel, dilations=windows.dilations,
        strides=windows.strides, pads=[*pads[:axes], *ends], wish="sums",
    )  # fmt: skip


def _as_single(site: Site, numbers: Numbers, x: str, axes: int) -> tuple[str, list[Number]]:
    """Every channel as a sample of its own, and the sizes of all dims."""
    sizes = [numbers.size(x, axis) for axis in range(axes + 2)]
    one = np.asarray([1], np.int64)
    single = numbers.into(x, [numbers.mul(sizes[0], sizes[1]), one, *sizes[2:]], "single")
    return numbers.name(single, "single"), sizes


def _restored(site: Site, made: str, sizes: list[Number], numbers: Numbers, axes: int) -> None:
    shape = site.add("Shape", made)
    behind = site.add("Slice", shape, site.const([2], "two"), site.const([axes + 2], "end"))
    front = [numbers.name(size, "size") for size in sizes[:2]]
    site.put("Reshape", [made, site.add("Concat", *front, behind, axis=0, wish="shape")])


def _average(site: Site) -> None:
    windows = _windows(site)
    if windows is None:
        rules.keep(site)
        return
    _refuse_others(site)
    numbers, x, axes = Numbers(site), site.input(0), len(windows.kernel)
    single, sizes = _as_single(site, numbers, x, axes)
    element = site.needed_element(x)
    site.facts.made[single].element = element
    sums = _summed(site, single, windows)
    spatial = sizes[2:]
    padded = bool(site.attr("count_include_pad", 0))
    if padded:
        both = [windows.pads[axis] + windows.pads[axis + axes] for axis in range(axes)]
        spatial = [numbers.add(size, np.asarray([pad], np.int64)) for size, pad in zip(spatial, both, strict=True)]
    shape = site.add("Concat", site.const([1, 1], "ones"), *(numbers.name(size, "size") for size in spatial), axis=0)
    one = helper.make_tensor("value", element, [1], [1])
    counts = _summed(site, site.add("ConstantOfShape", shape, value=one, wish="there"), windows, padded=padded)
    _restored(site, site.add("Div", sums, counts), sizes, numbers, axes)


def _refuse_others(site: Site) -> None:
    if site.needed_element(site.input(0)) not in (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16):
        site.refuse("windows with gaps, of elements that Conv does not take")


def _lp(site: Site) -> None:
    windows = _windows(site)
    if windows is None:
        rules.keep(site)
        return
    _refuse_others(site)
    numbers, x, axes = Numbers(site), site.input(0), len(windows.kernel)
    p = site.attr("p", 2)
    single, sizes = _as_single(site, numbers, x, axes)
    site.facts.made[single].element = site.needed_element(x)
    raised = site.add("Pow", site.add("Abs", single), site.scalar_like(p, x, "p"))
    sums = _summed(site, raised, windows)
    root = site.add("Pow", sums, site.scalar_like(1 / p, x, "root"))
    _restored(site, root, sizes, numbers, axes)


adapter("AveragePool", 19, 11)(_average)
adapter("LpPool", 18, 11)(_lp)
