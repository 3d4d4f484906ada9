"""Operators that make a tensor from nothing but a shape, a range or an attribute."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
from onnx import TensorProto, numpy_helper

from onnxbench.core.shape_rules.facts import (
    FLOAT,
    INT64,
    MOST,
    Dim,
    Element,
    Fact,
    element_of,
    followed,
    is_real,
    scalar,
    tensor,
    vector,
)
from onnxbench.core.shape_rules.registry import rule
from onnxbench.core.shape_rules.site import Site, as_size, product
from onnxbench.core.symbolic import Expr, ceildiv, largest


def stored(proto: TensorProto) -> Fact:
    """What a stored tensor tells; its elements too, if they are few and at hand."""
    dims = tuple(proto.dims)
    if prod(dims) > MOST or not followed(proto.data_type) or proto.data_location == TensorProto.EXTERNAL:
        return tensor(proto.data_type, dims)
    try:
        array = numpy_helper.to_array(proto)
    except (ValueError, TypeError, OverflowError):
        return tensor(proto.data_type, dims)
    return Fact(proto.data_type, dims, tuple(element_of(value) for value in array.reshape(-1)))


@rule("Constant")
def constant(site: Site) -> Sequence[Fact] | None:
    """The one attribute says all."""
    for attribute in site.node.attribute:
        match attribute.name:
            case "value":
                return [stored(attribute.t)]
            case "value_int":
                return [scalar(attribute.i)]
            case "value_ints":
                return [vector(list(attribute.ints))]
            case "value_float":
                return [scalar(element_of(attribute.f), FLOAT)]
            case "value_floats":
                return [vector([element_of(value) for value in attribute.floats], FLOAT)]
            case "value_string":
                return [tensor(TensorProto.STRING, ())]
            case "value_strings":
                return [tensor(TensorProto.STRING, (len(attribute.strings),))]
            case "sparse_value":
                sparse = attribute.sparse_tensor
                return [tensor(sparse.values.data_type, sparse.dims)]
    return None


@rule("Shape")
def shape(site: Site) -> Sequence[Fact]:
    """The dims as elements, cut by `start` and `end` (opset 15)."""
    dims = site.dims(0)
    if dims is None:
        return [tensor(INT64, (None,))]
    return [vector(dims[slice(site.integer("start", 0), site.integer("end"))])]


@rule("Size")
def size(site: Site) -> Sequence[Fact]:
    """The product of the dims."""
    dims = site.dims(0)
    return [scalar(None if dims is None else product(dims))]


@rule("ConstantOfShape")
def constant_of_shape(site: Site) -> Sequence[Fact]:
    """The input's elements are the dims; 0.0 unless `value` says else."""
    value = site.tensor("value")
    element: int = FLOAT if value is None else value.data_type
    wanted = site.input(0).data
    if wanted is None:
        count = site.count(0)
        return [tensor(element, None if count is None else (None,) * count)]
    dims = tuple(as_size(entry) for entry in wanted)
    numbers = [dim for dim in dims if isinstance(dim, int)]
    if len(numbers) == len(dims) and 0 <= prod(numbers) <= MOST and followed(element):
        data = stored(value).data if value is not None else (0,)
        return [Fact(element, dims, (data[0] if data else None,) * prod(numbers))]
    return [tensor(element, dims)]


@rule("Range")
def span(site: Site) -> Sequence[Fact]:
    """ceil((limit - start) / delta) elements, none if that is negative."""
    ends = [_single(site, place) for place in range(3)]
    start, limit, delta = ends
    if not isinstance(delta, int) or delta == 0 or start is None or limit is None:
        return [tensor(site.element(), (_real_count(site, start, limit, delta),))]
    if isinstance(start, float) or isinstance(limit, float):
        return [tensor(site.element(), (_real_count(site, start, limit, delta),))]
    count = ceildiv(limit - start, delta) if delta > 0 else ceildiv(start - limit, -delta)
    count = count if site.never_negative(count) else largest(count, 0)
    if isinstance(count, int) and count <= MOST:
        return [vector([start + delta * i for i in range(count)], site.element())]
    return [tensor(site.element(), (count,))]


def _single(site: Site, place: int) -> Element:
    data = site.input(place).data
    return data[0] if data is not None and len(data) == 1 else None


def _real_count(site: Site, *ends: Element) -> Dim:
    numbers = [end for end in ends if isinstance(end, (int, float))]
    if len(numbers) < 3 or numbers[2] == 0:
        return None
    count = max(0, int(np.ceil((numbers[1] - numbers[0]) / numbers[2])))
    exact = all(float(n).is_integer() for n in numbers) or not is_real(site.element())
    return count if exact else None


@rule("EyeLike")
def eye(site: Site) -> Sequence[Fact]:
    """A matrix like the input."""
    return [tensor(site.integer("dtype", site.element()), site.dims(0))]


@rule("RandomNormal", "RandomUniform")
def random(site: Site) -> Sequence[Fact]:
    """The shape is an attribute."""
    dims = site.ints("shape")
    return [tensor(site.integer("dtype", FLOAT), dims)]


@rule("RandomNormalLike", "RandomUniformLike", "Bernoulli")
def random_like(site: Site) -> Sequence[Fact]:
    """Drawn in the input's shape, in its type unless `dtype` says else."""
    return [tensor(site.integer("dtype", site.element()), site.dims(0))]


@rule("Multinomial")
def multinomial(site: Site) -> Sequence[Fact]:
    """(batch, `sample_size`)."""
    dims = site.dims(0)
    return [
        tensor(site.integer("dtype", TensorProto.INT32), (dims[0] if dims else None, site.integer("sample_size", 1)))
    ]


@rule("OneHot")
def one_hot(site: Site) -> Sequence[Fact]:
    """`depth` is a new axis; a rank-1 tensor of one element counts as a scalar."""
    before = site.dims(0)
    data = site.input(1).data
    depth = as_size(data[0]) if data else None
    if before is None:
        return [tensor(site.element(2))]
    axis = site.integer("axis", -1)
    axis = axis + len(before) + 1 if axis < 0 else axis
    if isinstance(depth, Expr) and not site.never_negative(depth):
        depth = None
    return [tensor(site.element(2), (*before[:axis], depth, *before[axis:]))]


@rule("HannWindow", "HammingWindow", "BlackmanWindow")
def window(site: Site) -> Sequence[Fact]:
    """As many elements as the input says."""
    data = site.input(0).data
    return [tensor(site.integer("output_datatype", FLOAT), (as_size(data[0]) if data else None,))]
