"""Operators that show the same elements in another shape: Reshape, Squeeze, Transpose, Expand and their kin."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from onnxbench.core.shape_rules.facts import MOST, Dim, Dims, Fact, of_elements, tensor
from onnxbench.core.shape_rules.registry import rule
from onnxbench.core.shape_rules.site import Site, as_size, product
from onnxbench.core.symbolic import Expr, floordiv, modulo


def _shaped(site: Site, dims: Dims | None) -> list[Fact]:
    """The first input's elements in the order they are, in new dims."""
    source = site.input(0)
    array = source.elements()
    sizes = None if dims is None else [dim for dim in dims if isinstance(dim, int)]
    if array is None or dims is None or sizes is None or len(sizes) < len(dims) or np.prod(sizes) != array.size:
        return [tensor(source.element, dims)]
    return [of_elements(source.element, array.reshape(sizes))]


@rule("Reshape")
def reshape(site: Site) -> Sequence[Fact]:
    """0 copies the dim of the input (unless `allowzero`), one -1 takes what is left."""
    wanted = site.ints("shape") if site.has("shape") else site.input(1).data
    if wanted is None:
        count = site.count(1)
        return [tensor(site.element(), None if count is None else (None,) * count)]
    return _shaped(site, reshaped(site, site.dims(0), [as_size(size) for size in wanted]))


def reshaped(site: Site, before: Dims | None, wanted: Sequence[Dim]) -> Dims:
    """The dims that Reshape makes of those before."""
    keep_zero = bool(site.integer("allowzero", 0))
    dims: list[Dim] = []
    for axis, size in enumerate(wanted):
        if size == 0 and not keep_zero:
            dims.append(before[axis] if before is not None and axis < len(before) else None)
        elif size == -1 or (isinstance(size, Expr) and not site.never_negative(size)):
            dims.append(None)
        else:
            dims.append(size)
    whole = None if before is None else product(before)
    unknown = [axis for axis, dim in enumerate(dims) if dim is None]
    if len(unknown) == 1 and whole is not None:
        rest = product([dim for dim in dims if dim is not None])
        # Of no elements at all a size that is computed may be anything; -1 beside a 0 is an error.
        if rest is not None and rest != 0 and (wanted[unknown[0]] == -1 or isinstance(rest, int)):
            dims[unknown[0]] = _quotient(whole, rest)
    elif not unknown and before is not None:
        _learn(site, before, dims)
    return tuple(dims)


def _quotient(whole: Dim, rest: Dim) -> Dim:
    assert whole is not None
    assert rest is not None
    return floordiv(whole, rest)


def _learn(site: Site, before: Dims, after: Sequence[Dim]) -> None:
    """A dim of the input that stands alone must be what the output has more."""
    left, right = list(before), list(after)
    for dim in list(left):
        if dim in right and dim != 0 and isinstance(dim, int):  # with a symbol that is 0 the rest may be anything
            left.remove(dim)
            right.remove(dim)
    single = [dim for dim in left if isinstance(dim, Expr)]
    if len(single) != 1:
        return
    left.remove(single[0])
    more, fewer = product(right), product(left)
    if more is not None and fewer is not None and fewer != 0 and modulo(more, fewer) == 0:
        site.same(floordiv(more, fewer), single[0])


@rule("Flatten")
def flatten(site: Site) -> Sequence[Fact]:
    """Two dims: what stands before `axis`, and the rest."""
    before = site.dims(0)
    axis = site.integer("axis", 1)
    if before is None:
        return [tensor(site.element(), (None, None))]
    axis = axis + len(before) if axis < 0 else axis
    return _shaped(site, (product(before[:axis]), product(before[axis:])))


@rule("Squeeze")
def squeeze(site: Site) -> Sequence[Fact]:
    """Without axes every dim of 1 goes, so that each must be known as 1 or as something else."""
    before = site.dims(0)
    axes = site.integers("axes", 1)
    if before is None:
        return [tensor(site.element())]
    if axes is None:
        if site.given(1) or not all(isinstance(dim, int) for dim in before):
            count = site.count(1)
            return [tensor(site.element(), (None,) * (len(before) - count) if count is not None else None)]
        axes = [axis for axis, dim in enumerate(before) if dim == 1]
    gone = {axis + len(before) if axis < 0 else axis for axis in axes}
    for axis in gone:
        if axis < len(before):
            site.same(1, before[axis])
    return _shaped(site, tuple(dim for axis, dim in enumerate(before) if axis not in gone))


@rule("Unsqueeze")
def unsqueeze(site: Site) -> Sequence[Fact]:
    """Axes count in the result; they are an attribute before opset 13."""
    before = site.dims(0)
    axes = site.integers("axes", 1)
    if before is None:
        return [tensor(site.element())]
    if axes is None:
        count = site.count(1)
        return [tensor(site.element(), None if count is None else (None,) * (len(before) + count))]
    rank = len(before) + len(axes)
    new = {axis + rank if axis < 0 else axis for axis in axes}
    old = iter(before)
    return _shaped(site, tuple(1 if axis in new else next(old, None) for axis in range(rank)))


@rule("Transpose")
def transpose(site: Site) -> Sequence[Fact]:
    """Axes are reversed unless `perm` says else."""
    before = site.dims(0)
    order = site.ints("perm")
    if before is None:
        return [tensor(site.element(), None if order is None else (None,) * len(order))]
    order = list(range(len(before)))[::-1] if order is None else order
    if sorted(order) != list(range(len(before))):
        return [tensor(site.element())]
    array = site.input(0).elements()
    if array is not None:
        return [of_elements(site.element(), array.transpose(order))]
    return [tensor(site.element(), tuple(before[axis] for axis in order))]


@rule("Expand")
def expand(site: Site) -> Sequence[Fact]:
    """Broadcast with the shape wanted, which may also be the smaller one."""
    wanted = site.input(1).data
    before = site.dims(0)
    if wanted is None:
        count = site.count(1)
        rank = None if count is None or before is None else max(count, len(before))
        return [tensor(site.element(), None if rank is None else (None,) * rank)]
    sizes = tuple(None if size == -1 else as_size(size) for size in wanted)
    sizes = tuple(None if isinstance(s, Expr) and not site.never_negative(s) else s for s in sizes)
    dims = site.broadcast(before, sizes)
    array = site.input(0).elements()
    if array is not None and dims is not None and all(isinstance(dim, int) for dim in dims):
        numbers = [dim for dim in dims if isinstance(dim, int)]
        if np.prod(numbers, dtype=float) <= MOST:
            return [of_elements(site.element(), np.broadcast_to(array, numbers))]
    return [tensor(site.element(), dims)]


@rule("Tile")
def tile(site: Site) -> Sequence[Fact]:
    """Each dim times its repeats."""
    before, repeats = site.dims(0), site.input(1).data
    if before is None:
        count = site.count(1) if site.version >= 6 else None
        return [tensor(site.element(), None if count is None else (None,) * count)]
    if site.version < 6 or repeats is None or len(repeats) != len(before):
        return [tensor(site.element(), (None,) * len(before))]
    dims = tuple(product([dim, as_size(times)]) for dim, times in zip(before, repeats, strict=True))
    array = site.input(0).elements()
    numbers = site.numbers(1)
    if array is not None and numbers is not None and array.size * np.prod(numbers, dtype=float) <= MOST:
        return [of_elements(site.element(), np.tile(array, [int(n) for n in numbers]))]
    return [tensor(site.element(), dims)]


@rule("DepthToSpace")
def depth_to_space(site: Site) -> Sequence[Fact]:
    """Channels become pixels of blocks."""
    block, before = site.integer("blocksize"), site.dims(0)
    if before is None or len(before) != 4 or not block:
        return [tensor(site.element(), (None,) * 4)]
    n, c, h, w = before
    channels = None if c is None else floordiv(c, block * block)
    return [tensor(site.element(), (n, channels, product([h, block]), product([w, block])))]


@rule("SpaceToDepth")
def space_to_depth(site: Site) -> Sequence[Fact]:
    """Blocks of pixels become channels."""
    block, before = site.integer("blocksize"), site.dims(0)
    if before is None or len(before) != 4 or not block:
        return [tensor(site.element(), (None,) * 4)]
    n, c, h, w = before
    small = [None if size is None else floordiv(size, block) for size in (h, w)]
    return [tensor(site.element(), (n, product([c, block * block]), *small))]
