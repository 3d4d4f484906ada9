"""Matrix products and Einsum."""

from __future__ import annotations

from collections.abc import Sequence

from onnxbench.core.shape_rules.facts import INT32, Dim, Dims, Fact, tensor
from onnxbench.core.shape_rules.registry import MICROSOFT, rule
from onnxbench.core.shape_rules.site import Site


def multiplied(site: Site, left: Dims | None, right: Dims | None) -> Dims | None:
    """The dims of NumPy's matmul."""
    if left is None or right is None or not left or not right:
        return None
    a = (1, *left) if len(left) == 1 else left
    b = (*right, 1) if len(right) == 1 else right
    site.same(a[-1], b[-2])
    batch = site.broadcast(a[:-2], b[:-2])
    assert batch is not None
    rows: Dims = () if len(left) == 1 else (a[-2],)
    columns: Dims = () if len(right) == 1 else (b[-1],)
    return batch + rows + columns


@rule("MatMul")
def mat_mul(site: Site) -> Sequence[Fact]:
    """NumPy's matmul."""
    return [tensor(site.element(), multiplied(site, site.dims(0), site.dims(1)))]


@rule("MatMulInteger")
@rule("MatMulInteger16", domain=MICROSOFT)
def mat_mul_integer(site: Site) -> Sequence[Fact]:
    """NumPy's matmul into INT32."""
    return [tensor(INT32, multiplied(site, site.dims(0), site.dims(1)))]


@rule("QLinearMatMul")
def quantized_mat_mul(site: Site) -> Sequence[Fact]:
    """A and B are the first and the fourth input; the type is that of the result's zero point."""
    return [tensor(site.element(7), multiplied(site, site.dims(0), site.dims(3)))]


@rule("MatMulIntegerToFloat", domain=MICROSOFT)
def to_float(site: Site) -> Sequence[Fact]:
    """The type is that of A's scale."""
    return [tensor(site.element(2), multiplied(site, site.dims(0), site.dims(1)))]


@rule("DynamicQuantizeMatMul", domain=MICROSOFT)
def dynamic(site: Site) -> Sequence[Fact]:
    """A is a float tensor that is quantized on the way."""
    return [tensor(site.element(), multiplied(site, site.dims(0), site.dims(1)))]


@rule("FusedMatMul", "TransposeMatMul", domain=MICROSOFT)
def fused(site: Site) -> Sequence[Fact] | None:
    """Each side may be transposed in its last two axes."""
    if site.integer("transBatchA", 0) or site.integer("transBatchB", 0):
        return None
    left = _turned(site.dims(0), site.integer("transA", 0))
    right = _turned(site.dims(1), site.integer("transB", 0))
    return [tensor(site.element(), multiplied(site, left, right))]


def _turned(dims: Dims | None, turn: int) -> Dims | None:
    if not turn or dims is None or len(dims) < 2:
        return dims
    return (*dims[:-2], dims[-1], dims[-2])


@rule("Gemm")
@rule("FusedGemm", domain=MICROSOFT)
def gemm(site: Site) -> Sequence[Fact]:
    """Two matrices, each of which may be transposed."""
    return [tensor(site.element(), _gemm(site, site.dims(0), site.dims(1)))]


@rule("QGemm", domain=MICROSOFT)
def quantized_gemm(site: Site) -> Sequence[Fact]:
    """Float unless there is a zero point for the result."""
    element = site.element(8) if site.given(8) else site.element(1)
    return [tensor(element, _gemm(site, site.dims(0), site.dims(3)))]


def _gemm(site: Site, left: Dims | None, right: Dims | None) -> Dims:
    a, b = _turned(left, site.integer("transA", 0)), _turned(right, site.integer("transB", 0))
    if a is not None and b is not None and len(a) == len(b) == 2:
        site.same(a[1], b[0])
    rows = a[0] if a is not None and len(a) == 2 else None
    columns = b[1] if b is not None and len(b) == 2 else None
    return rows, columns


@rule("Einsum")
def einsum(site: Site) -> Sequence[Fact]:
    """Letters name dims; `...` stands for dims that are broadcast."""
    left, arrow, right = site.text("equation").replace(" ", "").partition("->")
    terms = left.split(",")
    sizes: dict[str, Dim] = {}
    hidden: list[Dims | None] = []
    if len(terms) != len(site.inputs):
        return [tensor(site.element())]
    for place, term in enumerate(terms):
        dims = site.dims(place)
        letters = term.replace("...", "")
        if dims is None or len(dims) < len(letters) or ("..." not in term and len(dims) != len(letters)):
            hidden.append(None if "..." in term else ())
            continue
        head, _, _ = term.partition("...")
        extra = len(dims) - len(letters)
        named = dims if "..." not in term else dims[: len(head)] + dims[len(head) + extra :]
        for letter, dim in zip(letters, named, strict=True):
            sizes[letter] = _met(site, sizes, letter, dim)
        hidden.append(dims[len(head) : len(head) + extra] if "..." in term else ())
    if not arrow:
        once = sorted(letter for letter in set(left) - set(",.") if left.count(letter) == 1)
        right = ("..." if "..." in left else "") + "".join(once)
    front, dots, back = right.partition("...")
    middle: Dims | None = site.broadcast(*hidden) if dots else ()
    if middle is None:
        return [tensor(site.element())]
    named = tuple(sizes.get(letter) for letter in front), tuple(sizes.get(letter) for letter in back)  # type: ignore[assignment]
    return [tensor(site.element(), (*named[0], *middle, *named[1]))]  # type: ignore[misc]


def _met(site: Site, sizes: dict[str, Dim], letter: str, dim: Dim) -> Dim:
    """A dim of 1 may stand beside another size of the same letter."""
    if letter not in sizes:
        return dim
    return site.stretched(sizes[letter], dim)
