"""Attention, of the standard and of com.microsoft."""

from __future__ import annotations

from collections.abc import Sequence

from onnxbench.core.shape_rules.facts import Dim, Dims, Fact, tensor
from onnxbench.core.shape_rules.registry import MICROSOFT, rule
from onnxbench.core.shape_rules.site import Site, product, total
from onnxbench.core.symbolic import floordiv


@rule("Attention", domain=MICROSOFT)
def attention(site: Site) -> Sequence[Fact]:
    """(batch, sequence, hidden) in; out the hidden size of V, by default a third of the packed weight's columns.

    The second output packs keys and values: (2, batch, heads, past + sequence, head size).
    """
    before, weight, past = site.dims(0), site.dims(1), site.dims(4)
    batch, length = before[:2] if before is not None and len(before) == 3 else (None, None)
    sizes = site.ints("qkv_hidden_sizes")
    columns = weight[1] if weight is not None and len(weight) == 2 else None
    hidden: Dim = sizes[2] if sizes else None if columns is None else floordiv(columns, 3)
    heads = site.integer("num_heads")
    head = floordiv(hidden, heads) if hidden is not None and heads and not sizes else None
    before_now: Dim = 0 if not site.given(4) else past[3] if past is not None and len(past) == 5 else None
    whole = None if site.integer("past_present_share_buffer", 0) else total(before_now, length)
    return [tensor(site.element(), (batch, length, hidden)), tensor(site.element(), (2, batch, heads, whole, head))]


@rule("MultiHeadAttention", domain=MICROSOFT)
def multi_head(site: Site) -> Sequence[Fact] | None:
    """Q is (batch, sequence, hidden); V, of rank 3 or (batch, heads, sequence, size), says the output's hidden size."""
    query, value = site.dims(0), site.dims(2)
    if query is None or len(query) != 3 or not site.given(2) or value is None:
        return None
    heads = site.integer("num_heads")
    hidden: Dim = None
    if len(value) == 3:
        hidden = value[2]
    elif len(value) == 4 and value[3] is not None and heads:
        hidden = value[3] * heads
    return [tensor(site.element(), (*query[:2], hidden))]


@rule("Attention")
def standard(site: Site) -> Sequence[Fact]:
    """Inputs Q, K, V, mask, past key, past value; in rank 3 the heads are packed into the last axis.

    Outputs Y, present key, present value, and the product of Q and K: (batch, heads, sequence, past + key sequence).
    """
    query, key, value, past = site.dims(0), site.dims(1), site.dims(2), site.dims(4)
    kinds = [site.element(), site.element(1), site.element(2), site.element()]
    if query is None or key is None or value is None or not len(query) == len(key) == len(value) in (3, 4):
        return [tensor(kind) for kind in kinds]
    if len(query) == 3:
        heads, key_heads = site.integer("q_num_heads"), site.integer("kv_num_heads")
        if not heads or not key_heads:
            return [tensor(kind) for kind in kinds]
        query, key, value = _unpacked(query, heads), _unpacked(key, key_heads), _unpacked(value, key_heads)
    whole = total(key[2], past[2] if past is not None and len(past) == 4 else None if site.given(4) else 0)
    result: Dims = (query[0], query[1], query[2], value[3])
    if site.dims(0) != query:
        result = (query[0], query[2], product([query[1], value[3]]))
    present = (key[0], key[1], whole, key[3]), (key[0], key[1], whole, value[3])
    shapes = [result, *present, (query[0], query[1], query[2], whole)]
    return [tensor(kind, dims) for kind, dims in zip(kinds, shapes, strict=True)]


def _unpacked(dims: Dims, heads: int) -> Dims:
    """(batch, sequence, heads * size) as (batch, heads, sequence, size)."""
    size = None if dims[2] is None else floordiv(dims[2], heads)
    return dims[0], heads, dims[1], size
