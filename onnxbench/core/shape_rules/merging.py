"""What the file declares of a value, put together with what was computed."""

from __future__ import annotations

from collections.abc import Callable

from onnx import TypeProto

from onnxbench.core.shape_rules.bounds import bounds
from onnxbench.core.shape_rules.facts import Dim, Fact, optional, sequence
from onnxbench.core.shape_rules.symbols import Symbols
from onnxbench.core.symbolic import Expr, Size, lone


def read_type(kind: TypeProto, read: Callable[[str], Dim]) -> Fact:
    """A declared type as a fact."""
    match kind.WhichOneof("value"):
        case "tensor_type" | "sparse_tensor_type" as which:
            holder = kind.tensor_type if which == "tensor_type" else kind.sparse_tensor_type
            dims = None
            if holder.HasField("shape"):
                dims = tuple(
                    (dim.dim_value if dim.dim_value >= 0 else None)
                    if dim.HasField("dim_value")
                    else read(dim.dim_param)
                    if dim.dim_param
                    else None
                    for dim in holder.shape.dim
                )
            return Fact(holder.elem_type or None, dims, kind="tensor" if which == "tensor_type" else "sparse")
        case "sequence_type":
            return sequence(read_type(kind.sequence_type.elem_type, read))
        case "optional_type":
            return optional(read_type(kind.optional_type.elem_type, read))
        case None:
            return Fact()
    return Fact(kind="other", other=kind.SerializeToString())


def merge(symbols: Symbols, computed: Fact, declared: Fact, is_main: bool) -> tuple[Fact, bool]:
    """The union of both, and whether they contradict each other; what was computed wins."""
    if is_blank(computed):
        return declared, False
    if is_blank(declared):
        return computed, False
    if computed.kind != declared.kind:
        return computed, computed.kind != "sparse" and declared.kind != "sparse"
    if computed.kind in ("sequence", "optional"):
        if computed.inner is None or declared.inner is None:
            return Fact(kind=computed.kind, inner=computed.inner or declared.inner, items=computed.items), False
        inner, clash = merge(symbols, computed.inner, declared.inner, False)
        return Fact(kind=computed.kind, inner=inner, items=computed.items), clash
    if computed.kind == "other":
        return computed, False
    element = computed.element if computed.element is not None else declared.element
    clash = declared.element is not None and element != declared.element
    if computed.dims is None:
        for dim in declared.dims or ():
            symbols.adopt(dim or 0)
        return Fact(element, declared.dims, None, computed.kind), clash
    if declared.dims is None:
        return Fact(element, computed.dims, computed.data, computed.kind), clash
    if len(declared.dims) != len(computed.dims):
        return Fact(element, computed.dims, computed.data, computed.kind), True
    dims: list[Dim] = []
    for ours, theirs in zip(computed.dims, declared.dims, strict=True):
        dim, wrong = _dim(symbols, ours, symbols.resolve(theirs), is_main)
        dims.append(dim)
        clash = clash or wrong
    return Fact(element, tuple(dims), computed.data, computed.kind), clash


def is_blank(fact: Fact) -> bool:
    """Whether nothing at all is known."""
    return fact.kind == "tensor" and fact.element is None and fact.dims is None and fact.data is None


def _dim(symbols: Symbols, ours: Dim, theirs: Dim, is_main: bool) -> tuple[Dim, bool]:
    """One dim of both: numbers beat symbols, a model's symbol beats one of ours."""
    if ours is None:
        symbols.adopt(theirs or 0)
        return theirs, False
    if theirs is None or ours == theirs:
        return ours, False
    if lone(ours) in symbols.made:
        symbols.adopt(theirs)
        better = symbols.must_equal(ours, theirs)
        return better, False
    name = lone(theirs)
    if name and name not in symbols.given and is_main:
        if name in symbols.owner:  # it stands for something else already
            symbols.unreliable.add(name)
            return ours, False
        if symbols.bind(name, ours):
            return ours, False
    return ours, _contradict(symbols, ours, theirs)


def _contradict(symbols: Symbols, ours: Size, theirs: Size) -> bool:
    """Two numbers, a number where the inputs decide, or expressions that are never equal."""
    if isinstance(ours, int) or isinstance(theirs, int):
        loose = [size for size in (ours, theirs) if isinstance(size, Expr)]
        return all(name in symbols.given for size in loose for name in size.symbols)
    low, high = bounds(ours - theirs, symbols.seen)
    return low > 0 or high < 0
