"""Convolutions and poolings: sizes from kernel, stride, dilation and padding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from onnxbench.core.shape_rules.facts import INT32, INT64, Dim, Dims, Fact, tensor
from onnxbench.core.shape_rules.registry import MICROSOFT, rule
from onnxbench.core.shape_rules.site import Site, product, total
from onnxbench.core.symbolic import Size, ceildiv, floordiv, smallest


@dataclass(frozen=True, slots=True)
class Window:
    """What slides over one axis."""

    kernel: Dim
    stride: int
    dilation: int
    before: int
    after: int

    @property
    def span(self) -> Dim:
        """The elements from the first to the last that the kernel touches."""
        return None if self.kernel is None else (self.kernel - 1) * self.dilation + 1


def windows(site: Site, kernel: Sequence[Dim]) -> list[Window]:
    """The window of each axis, from the attributes."""
    count = len(kernel)
    strides = site.ints("strides") or [1] * count
    dilations = site.ints("dilations") or [1] * count
    pads = site.ints("pads") or [0] * (2 * count)
    if site.text("auto_pad") not in ("", "NOTSET"):
        pads = [0] * (2 * count)
    if not len(strides) == len(dilations) == len(pads) // 2 == count:
        return [Window(None, 1, 1, 0, 0)] * count
    return [
        Window(k, s, d, pads[i], pads[i + count])
        for i, (k, s, d) in enumerate(zip(kernel, strides, dilations, strict=True))
    ]


def slid(site: Site, size: Dim, window: Window) -> Dim:
    """How often a window fits."""
    if size is None:
        return None
    if site.text("auto_pad") in ("SAME_UPPER", "SAME_LOWER"):
        return ceildiv(size, window.stride)
    if window.span is None:
        return None
    room = size + (window.before + window.after) - window.span
    if not site.integer("ceil_mode", 0):
        if isinstance(room, int) and room < 0:  # runtimes round to zero: a window that is too large fits once
            return 1 - -room // window.stride
        return floordiv(room, window.stride) + 1
    return _rounded_up(size, room, window)


def _rounded_up(size: Size, room: Size, window: Window) -> Size:
    """With ceil_mode; a window that would start in the padding at the end is left out."""
    count = ceildiv(room, window.stride) + 1
    if isinstance(window.span, int) and window.after + window.stride <= window.span:
        return count
    return smallest(count, ceildiv(size + window.before, window.stride))


def kernel_of(site: Site, weight: Dims | None) -> list[Dim] | None:
    """The kernel's sizes: the attribute, else the weight's dims."""
    if site.ints("kernel_shape"):
        return list(site.ints("kernel_shape") or ())
    return list(weight[2:]) if weight is not None else None


def convolved(site: Site, element: int | None, weight: Dims | None) -> Fact:
    """Batch of the input, channels of the weight, then the windows."""
    before, kernel = site.dims(0), kernel_of(site, weight)
    rank = len(before) if before is not None else len(kernel) + 2 if kernel is not None else None
    if rank is None:
        return tensor(element)
    if before is None or kernel is None or len(kernel) != rank - 2:
        return tensor(element, (before[0] if before else None, weight[0] if weight else None, *[None] * (rank - 2)))
    sizes = [slid(site, size, window) for size, window in zip(before[2:], windows(site, kernel), strict=True)]
    if site.integer("group", 1) == 1 and weight is not None:
        site.same(weight[1], before[1])
    return tensor(element, (before[0], weight[0] if weight else None, *sizes))


@rule("Conv")
@rule("FusedConv", domain=MICROSOFT)
def conv(site: Site) -> Sequence[Fact]:
    """Output of the input's type."""
    return [convolved(site, site.element(), site.dims(1))]


@rule("ConvInteger")
def conv_integer(site: Site) -> Sequence[Fact]:
    """Output of INT32."""
    return [convolved(site, INT32, site.dims(1))]


@rule("QLinearConv")
@rule("QLinearConv", domain=MICROSOFT)
def quantized_conv(site: Site) -> Sequence[Fact] | None:
    """The type is that of the result's zero point."""
    if site.integer("channels_last", 0):
        return None
    return [convolved(site, site.element(7), site.dims(3))]


@rule("ConvTranspose")
def conv_transpose(site: Site) -> Sequence[Fact]:
    """A dim is stride * (size - 1) + padding of the output + kernel - pads, unless `output_shape` is given."""
    before, weight = site.dims(0), site.dims(1)
    kernel = kernel_of(site, weight)
    if before is None or kernel is None or len(kernel) != len(before) - 2:
        rank = len(before) if before is not None else None if kernel is None else len(kernel) + 2
        return [tensor(site.element(), None if rank is None else (None,) * rank)]
    channels = product([weight[1], site.integer("group", 1)]) if weight is not None else None
    given = site.ints("output_shape")
    if given:
        return [tensor(site.element(), (before[0], channels, *given[-len(kernel) :]))]
    more = site.ints("output_padding") or [0] * len(kernel)
    pairs = zip(before[2:], windows(site, kernel), more, strict=True)
    return [tensor(site.element(), (before[0], channels, *(_spread(site, *pair) for pair in pairs)))]


def _spread(site: Site, size: Dim, window: Window, more: int) -> Dim:
    if size is None:
        return None
    if site.text("auto_pad") in ("SAME_UPPER", "SAME_LOWER"):
        return size * window.stride
    return total((size - 1) * window.stride + more, window.span, -window.before - window.after)


@rule("MaxPool", "AveragePool", "LpPool")
@rule("QLinearAveragePool", domain=MICROSOFT)
def pool(site: Site) -> Sequence[Fact] | None:
    """Batch and channels stay; MaxPool has indices too."""
    before = site.dims(0)
    kernel: list[Dim] = list(site.ints("kernel_shape") or ())
    if site.integer("channels_last", 0):
        return None
    if before is None or len(kernel) != len(before) - 2:
        return [tensor(site.element(), (None,) * (len(kernel) + 2)), tensor(INT64, (None,) * (len(kernel) + 2))]
    sizes = [slid(site, size, window) for size, window in zip(before[2:], windows(site, kernel), strict=True)]
    dims = (*before[:2], *sizes)
    return [tensor(site.element(), dims), tensor(INT64, dims)]


@rule("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")
@rule("QLinearGlobalAveragePool", domain=MICROSOFT)
def global_pool(site: Site) -> Sequence[Fact]:
    """Every axis after batch and channels becomes 1."""
    before = site.dims(0)
    if before is None:
        return [tensor(site.element())]
    if site.integer("channels_last", 0):
        return [tensor(site.element(), (before[0], *[1] * (len(before) - 2), before[-1]))]
    return [tensor(site.element(), (*before[:2], *[1] * (len(before) - 2)))]


@rule("MaxUnpool")
def max_unpool(site: Site) -> Sequence[Fact]:
    """The inverse of MaxPool, unless the shape is given."""
    before, kernel = site.dims(0), list(site.ints("kernel_shape") or ())
    wanted = site.numbers(2)
    if wanted is not None:
        return [tensor(site.element(), [int(size) for size in wanted])]
    if before is None or site.given(2) or len(kernel) != len(before) - 2:
        return [tensor(site.element(), None if before is None else (None,) * len(before))]
    pairs = zip(before[2:], windows(site, kernel), strict=True)
    return [tensor(site.element(), (*before[:2], *(_spread(site, size, window, 0) for size, window in pairs)))]


@rule("MaxRoiPool")
def max_roi_pool(site: Site) -> Sequence[Fact]:
    """(regions, channels, pooled sizes)."""
    before, rois = site.dims(0), site.dims(1)
    channels = before[1] if before is not None and len(before) > 1 else None
    return [tensor(site.element(), (rois[0] if rois else None, channels, *(site.ints("pooled_shape") or (None, None))))]
