"""Bits without the operators for them."""

import numpy as np
import pytest

from tests.converters.adapters.same import assert_same

RANDOM = np.random.default_rng(0)
KINDS = ["uint8", "uint16", "uint32", "int8", "int16", "int32", "int64"]


def numbers(kind, *shape):
    limits = np.iinfo(kind)
    made = RANDOM.integers(limits.min, limits.max, shape, kind, endpoint=True)
    made.flat[:3] = limits.min, limits.max, 0
    return made


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("op", ["And", "Or", "Xor"])
def test_both(kind, op):
    text = f"""
    <ir_version: 8, opset_import: ["": 18]>
    g ({kind}[N,5] x, {kind}[5] y) => ({kind}[N,5] z) {{ z = Bitwise{op}(x, y) }}
    """
    x, y = numbers(kind, 4, 5), numbers(kind, 5)
    want = {"And": np.bitwise_and, "Or": np.bitwise_or, "Xor": np.bitwise_xor}[op](x, y)
    assert_same(text, 13, {"x": x, "y": y}, [want])


@pytest.mark.parametrize("kind", ["uint8", "int8", "int32", "int64"])
def test_not(kind):
    text = f"""
    <ir_version: 8, opset_import: ["": 18]>
    g ({kind}[N] x) => ({kind}[N] z) {{ z = BitwiseNot(x) }}
    """
    x = numbers(kind, 7)
    assert_same(text, 13, {"x": x}, [~x])


@pytest.mark.parametrize("kind", ["int8", "int32", "int64"])
@pytest.mark.parametrize("direction", ["LEFT", "RIGHT"])
def test_shifts_with_a_sign(kind, direction):
    text = f"""
    <ir_version: 8, opset_import: ["": 28]>
    g ({kind}[N,1] x, {kind}[M] y) => ({kind}[N,M] z) {{ z = BitShift<direction = "{direction}">(x, y) }}
    """
    x, bits = numbers(kind, 6, 1), np.iinfo(kind).bits
    y = np.array([0, 1, 3, bits - 2, bits - 1, bits, -1], kind)
    inside = (y >= 0) & (y < bits)
    steps = np.where(inside, y, 0)
    moved = (x << steps if direction == "LEFT" else x >> steps).astype(kind)
    beyond = np.where((x < 0) & (direction == "RIGHT"), -1, 0).astype(kind)
    assert_same(text, 17, {"x": x, "y": y}, [np.where(inside, moved, beyond)])
