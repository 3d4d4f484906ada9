"""Multiply-accumulates of single nodes, by operator.

Counted are the products that convolutions, matrix products, recurrent cells and attention are made of, as publications on
networks count them; element-wise work, pooling and normalisation count nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from onnxbench.core.graph import Node, plain_domain
from onnxbench.core.shapes import Shapes
from onnxbench.core.symbolic import Size, largest
from onnxbench.inspecting.operators import STANDARD

Count: TypeAlias = "Size | None"
Rule: TypeAlias = "Callable[[_Facts], Count]"
#: Operators of ONNX Runtime's own domain that are element-wise, or move and normalise: no products are summed.
_WITHOUT = {
    ("com.microsoft", name)
    for name in (
        *("BiasGelu", "FastGelu", "Gelu", "QuickGelu", "BiasSplitGelu", "BiasAdd", "BiasSoftmax", "BiasDropout"),
        *("LayerNormalization", "SkipLayerNormalization", "SimplifiedLayerNormalization", "EmbedLayerNormalization"),
        *("SkipSimplifiedLayerNormalization", "GroupNorm", "SkipGroupNorm", "RotaryEmbedding", "Inverse", "Trilu"),
        *("QuantizeLinear", "DequantizeLinear", "QLinearAdd", "QLinearMul", "QLinearConcat", "QLinearSigmoid"),
        *("QLinearLeakyRelu", "QLinearSoftmax", "QLinearAveragePool", "QLinearGlobalAveragePool", "QLinearReduceMean"),
        *("QLinearWhere", "NhwcMaxPool", "Pad", "Unique", "Range", "ExpandDims", "CropAndResize", "Tokenizer"),
        *("RemovePadding", "RestorePadding", "GatherND", "MaxpoolWithMask", "MulInteger", "SampleOp", "IsAllFinite"),
    )
}
_RULES: dict[tuple[str, str], Rule] = {}


def macs_of(node: Node, shapes: Shapes) -> Count:
    """The multiply-accumulates of one node without bodies; None if they cannot be told.

    That is: a size is unknown, the operator is somebody's own, or the node breaks its operator's specification (a weight of
    too few dimensions, no heads), which rules need not ask about.
    """
    domain = plain_domain(node.proto.domain)
    rule = _RULES.get((domain, node.proto.op_type))
    if rule is not None:
        try:
            return rule(_Facts(node, shapes))
        except (IndexError, ValueError, ZeroDivisionError):
            return None
    return 0 if domain in STANDARD or (domain, node.proto.op_type) in _WITHOUT else None


class _Facts:
    """A node with the shapes of its inputs and outputs."""

    def __init__(self, node: Node, shapes: Shapes) -> None:
        self._node, self._shapes = node, shapes
        self.attributes = {attribute.name: attribute for attribute in node.proto.attribute}

    def input(self, index: int) -> Sequence[Size] | None:
        """Dims of an input; None if it is absent or a dim is unknown."""
        names = self._node.proto.input
        return self._known(names[index]) if index < len(names) and names[index] else None

    def output(self, index: int = 0) -> Sequence[Size] | None:
        names = self._node.outputs
        return self._known(names[index]) if index < len(names) and names[index] else None

    def rank(self, index: int) -> int | None:
        """The rank of an input, even if a dim is unknown."""
        names = self._node.proto.input
        dims = self._shapes.dims(names[index]) if index < len(names) and names[index] else None
        return len(dims) if dims is not None else None

    def integer(self, name: str, default: int) -> int:
        return self.attributes[name].i if name in self.attributes else default

    def text(self, name: str, default: str) -> str:
        return self.attributes[name].s.decode("utf-8", "replace") if name in self.attributes else default

    def _known(self, name: str) -> Sequence[Size] | None:
        dims = self._shapes.dims(name)
        if dims is None or any(dim is None for dim in dims):
            return None
        return [dim for dim in dims if dim is not None]


def _product(dims: Sequence[Size]) -> Size:
    total: Size = 1
    for dim in dims:
        total = total * dim
    return total


def _rule(*operators: str, domain: str = "") -> Callable[[Rule], Rule]:
    def register(rule: Rule) -> Rule:
        _RULES.update({(domain, operator): rule for operator in operators})
        return rule

    return register


def _convolution(facts: _Facts, weight: int) -> Count:
    """Each output element sums C/group x kernel products: the weight without its first axis (Conv-1..22)."""
    kernel, out = facts.input(weight), facts.output()
    return None if kernel is None or out is None else _product(out) * _product(kernel[1:])


@_rule("Conv", "ConvInteger", "DeformConv")
@_rule("FusedConv", "NhwcFusedConv", domain="com.microsoft")
def _conv(facts: _Facts) -> Count:
    return _convolution(facts, 1)


@_rule("QLinearConv")
@_rule("QLinearConv", domain="com.microsoft")
def _qlinear_conv(facts: _Facts) -> Count:
    return _convolution(facts, 3)


@_rule("ConvTranspose")
@_rule("ConvTransposeWithDynamicPads", domain="com.microsoft")
def _conv_transpose(facts: _Facts) -> Count:
    """Each input element meets M/group x kernel weights: the weight without its first axis (ConvTranspose-1..22)."""
    x, weight = facts.input(0), facts.input(1)
    return None if x is None or weight is None else _product(x) * _product(weight[1:])


@_rule("MatMul", "MatMulInteger")
@_rule("FusedMatMul", "TransposeMatMul", "FusedMatMulActivation", domain="com.microsoft")
@_rule("DynamicQuantizeMatMul", "MatMulIntegerToFloat", domain="com.microsoft")
@_rule("QLinearMatMul")
def _matmul(facts: _Facts) -> Count:
    """Each output element sums K products."""
    a, out = facts.input(0), facts.output()
    if a is None or out is None or not a:
        return None
    contracted = a[-2] if facts.integer("transA", 0) and len(a) > 1 else a[-1]
    return _product(out) * contracted


@_rule("MatMulNBits", "MatMulBnb4", domain="com.microsoft")
def _matmul_bits(facts: _Facts) -> Count:
    """K is an attribute, for the weight is packed."""
    out = facts.output()
    return None if out is None else _product(out) * facts.integer("K", 0)


@_rule("Gemm")
@_rule("FusedGemm", "GemmFloat8", "QGemm", domain="com.microsoft")
def _gemm(facts: _Facts) -> Count:
    a, out = facts.input(0), facts.output()
    if a is None or out is None or len(a) != 2:
        return None
    return _product(out) * a[0 if facts.integer("transA", 0) else 1]


@_rule("Einsum")
def _einsum(facts: _Facts) -> Count:
    """One product for each combination of all indices, and each operand beyond the second (Einsum-12)."""
    equation = facts.text("equation", "").replace(" ", "").partition("->")[0]
    terms = equation.split(",")
    if len(terms) < 2 or "." in equation:
        return 0 if len(terms) < 2 else None
    sizes: dict[str, Size] = {}
    for i, term in enumerate(terms):
        dims = facts.input(i)
        if dims is None or len(dims) != len(term):
            return None
        for letter, dim in zip(term, dims, strict=True):
            sizes[letter] = dim if sizes.get(letter, 1) == 1 else sizes[letter]
    return _product(list(sizes.values())) * (len(terms) - 1)


def _recurrent(facts: _Facts, gates: int) -> Count:
    """Per direction, step and sequence: gates x hidden x (input + hidden) products."""
    x, weight, recurrence = facts.input(0), facts.input(1), facts.input(2)
    if x is None or weight is None or recurrence is None:
        return None
    directions, hidden = weight[0], recurrence[2]
    return x[0] * x[1] * directions * gates * hidden * (weight[2] + hidden)


@_rule("LSTM")
@_rule("DynamicQuantizeLSTM", domain="com.microsoft")
def _lstm(facts: _Facts) -> Count:
    return _recurrent(facts, 4)


@_rule("GRU")
def _gru(facts: _Facts) -> Count:
    return _recurrent(facts, 3)


@_rule("RNN")
def _rnn(facts: _Facts) -> Count:
    return _recurrent(facts, 1)


@_rule("Attention")
def _attention(facts: _Facts) -> Count:
    """Q x K and scores x V: heads x queries x keys x (head size + value head size) per sequence (Attention-23, -24)."""
    q, k, v = facts.input(0), facts.input(1), facts.input(2)
    past = facts.input(4)
    if q is None or k is None or v is None:
        return None
    if len(q) == 4:
        batch, heads, queries, width = q
        keys, value_width = k[2], v[3]
    else:
        heads, kv_heads = facts.integer("q_num_heads", 1), facts.integer("kv_num_heads", 1)
        batch, queries, width = q[0], q[1], q[2] // heads
        keys, value_width = k[1], v[2] // kv_heads
    if past is not None:
        keys = keys + past[2]
    return batch * heads * queries * keys * (width + value_width)


@_rule("Attention", "QAttention", domain="com.microsoft")
def _fused_attention(facts: _Facts) -> Count:
    """The projection of the input to Q, K and V, then Q x K and scores x V over the whole hidden size."""
    x, weight = facts.input(0), facts.input(1)
    if x is None or weight is None or len(x) != 3:
        return None
    batch, length, _ = x
    projection = batch * length * weight[0] * weight[1]
    return projection + batch * length * length * (weight[1] // 3) * 2


@_rule("MultiHeadAttention", domain="com.microsoft")
def _multi_head(facts: _Facts) -> Count:
    q, k = facts.input(0), facts.input(1)
    if q is None or len(q) != 3 or k is None:
        return None
    keys = k[1] if len(k) == 3 else k[2]
    return q[0] * q[1] * keys * q[2] * 2


@_rule("GroupQueryAttention", domain="com.microsoft")
def _group_query(facts: _Facts) -> Count:
    q, past = facts.input(0), facts.input(3)
    if q is None or len(q) != 3:
        return None
    heads, kv_heads = facts.integer("num_heads", 1), facts.integer("kv_num_heads", 1)
    packed = facts.rank(1) is None
    hidden = q[2] * heads // (heads + 2 * kv_heads) if packed else q[2]
    keys = largest(q[1], past[2]) if past is not None else q[1]
    return q[0] * q[1] * keys * hidden * 2
