"""Run-time axes as masks over the dims of a tensor, made of operators that opset 9 has."""

from onnx import TensorProto

from onnxbench.converters.site import Site


def counting(site: Site, count: str, wish: str = "range") -> str:
    """0, 1, 2, … as int64, as many as a tensor of one int64 says: the places of the ones of a tensor of ones."""
    from onnx import helper

    one = helper.make_tensor("value", TensorProto.INT64, [1], [1])
    ones = site.add("ConstantOfShape", count, value=one, wish="ones")
    places = site.add("NonZero", ones, wish="places")  # [1, count]
    return site.add("Reshape", places, site.const([-1], "flat"), wish=wish)


def axis_mask(site: Site, axes: str, rank: str) -> str:
    """Which of `rank` dims are among axes, as booleans.

    Args:
        site: where nodes are added.
        axes: a list of int64 (or int32), counted from either end.
        rank: one int64.
    """
    wide = site.add("Cast", axes, to=int(TensorProto.INT64), wish="axes")
    zero = site.const([0], "zero")
    front = site.add("Where", site.add("Less", wide, zero), site.add("Add", wide, rank), wide, wish="axes")
    column = site.add("Reshape", front, site.const([1, -1], "row"), wish="axes")
    places = site.add("Reshape", counting(site, rank), site.const([-1, 1], "column"), wish="places")
    hits = site.add("Cast", site.add("Equal", places, column), to=int(TensorProto.INT32), wish="hits")
    counted = reduced(site, "ReduceSum", hits, [1])
    return site.add("Cast", counted, to=int(TensorProto.BOOL), wish="mask")


def reduced(site: Site, op: str, x: str, axes: list[int], keepdims: int = 0) -> str:
    """A reduction over axes known now, in the form of the opset at hand."""
    as_input = 13 if op == "ReduceSum" else 18
    if site.opset >= as_input:
        return site.add(op, x, site.const(axes, "axes"), keepdims=keepdims)
    return site.add(op, x, axes=axes, keepdims=keepdims)


def ordered_mask(site: Site, axes: str, rank: str, shape: str) -> str:
    """A shape with ones at some axes, and the sizes of another, in order, elsewhere.

    Args:
        site: where nodes are added.
        axes: where the ones go.
        rank: one int64: how long the result is.
        shape: the other sizes.
    """
    free = site.add("Not", axis_mask(site, axes, rank), wish="free")
    places = site.add("Compress", counting(site, rank), free, axis=0, wish="places")
    places = site.add(
        "Cast", places, to=int(TensorProto.INT64), wish="places"
    )  # inference knows no type of a Compress-9
    from onnx import helper

    one = helper.make_tensor("value", TensorProto.INT64, [1], [1])
    ones = site.add("ConstantOfShape", rank, value=one, wish="ones")
    if site.opset >= 11:
        return site.add("ScatterElements", ones, places, shape, axis=0, wish="shape")
    return site.add("Scatter", ones, places, shape, axis=0, wish="shape")
