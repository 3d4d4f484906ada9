"""Operators that work element by element, with NumPy's broadcasting."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import TensorProto

from onnxbench.core.shape_rules.arithmetic import OPERATIONS, converted, elementwise, of_one
from onnxbench.core.shape_rules.facts import BOOL, Fact, of_elements, tensor
from onnxbench.core.shape_rules.registry import MICROSOFT, rule
from onnxbench.core.shape_rules.site import Site
from onnxbench.core.symbolic import Expr

_UNARY = (
    *("Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "BitwiseNot", "Ceil", "Celu", "Cos", "Cosh", "Elu"),
    *("Erf", "Exp", "Floor", "Gelu", "HardSigmoid", "HardSwish", "Hardmax", "Identity", "LRN", "LeakyRelu", "Log"),
    *("LogSoftmax", "LpNormalization", "MeanVarianceNormalization", "Mish", "Neg", "Not", "Reciprocal", "Relu"),
    *("Round", "Selu", "Shrink", "Sigmoid", "Sign", "Sin", "Sinh", "Softmax", "Softplus", "Softsign", "Sqrt"),
    *("Swish", "Tan", "Tanh", "ThresholdedRelu"),
)
_ARITHMETIC = (
    *("Add", "Sub", "Mul", "Div", "Mod", "Pow", "Min", "Max", "Mean", "Sum"),
    *("BitShift", "BitwiseAnd", "BitwiseOr", "BitwiseXor"),
)
_QUESTIONS = ("Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual", "And", "Or", "Xor")


@rule(*_UNARY)
@rule("FastGelu", "QuickGelu", "Gelu", "QLinearSigmoid", "QLinearLeakyRelu", "QLinearSoftmax", domain=MICROSOFT)
def unary(site: Site) -> Sequence[Fact] | None:
    """Output like the first input."""
    source = site.input(0)
    if source.kind != "tensor" or source.other is not None:
        return [source] if site.op == "Identity" else None
    array = source.elements()
    if array is not None:
        made = np.empty(array.shape, dtype=object)
        made.reshape(-1)[:] = [of_one(site, value) for value in array.reshape(-1)]
        return [of_elements(source.element, made)]
    return [tensor(source.element, source.dims)]


@rule("IsNaN", "IsInf")
def tested(site: Site) -> Sequence[Fact]:
    """A question to each element."""
    return [tensor(BOOL, site.dims(0))]


@rule(*_ARITHMETIC)
@rule(*_QUESTIONS)
def broadcast(site: Site) -> Sequence[Fact]:
    """Inputs are broadcast to each other; before opset 7 the second to the first, at `axis`, if `broadcast` says so."""
    element = BOOL if site.op in _QUESTIONS else next((f.element for f in site.inputs if f is not None), None)
    if site.has("broadcast") or (site.version < 7 and site.op in OPERATIONS and site.op not in ("Min", "Max", "Sum")):
        return [tensor(element, site.dims(0))]
    array = elementwise(site, [None if f is None else f.elements() for f in site.inputs])
    if array is not None:
        return [of_elements(element, array)]
    return [tensor(element, site.broadcast(*(site.dims(i) for i in range(len(site.inputs)))))]


@rule("BiasGelu", "BiasAdd", domain=MICROSOFT)
def biased(site: Site) -> Sequence[Fact]:
    """The bias is broadcast to the input."""
    return [tensor(site.element(), site.dims(0))]


@rule("QLinearAdd", "QLinearMul", domain=MICROSOFT)
def quantized(site: Site) -> Sequence[Fact]:
    """Inputs are (A, its scale, its zero point, B, ...)."""
    return [tensor(site.element(), site.broadcast(site.dims(0), site.dims(3)))]


@rule("PRelu")
def prelu(site: Site) -> Sequence[Fact]:
    """The slope is broadcast to the input, never the other way."""
    return [tensor(site.element(), site.dims(0))]


@rule("Clip")
def clip(site: Site) -> Sequence[Fact]:
    """Bounds are attributes up to opset 10, scalars from 11 on."""
    low = site.numbers(1) if site.given(1) else None
    high = site.numbers(2) if site.given(2) else None
    array = site.input(0).elements()
    bounded = (not site.given(1) or low) and (not site.given(2) or high) and not site.has("min") and not site.has("max")
    if array is None or not bounded or any(isinstance(value, Expr) for value in array.reshape(-1)):
        return [tensor(site.element(), site.dims(0))]
    made = np.empty(array.shape, dtype=object)
    values = array.reshape(-1)
    made.reshape(-1)[:] = [_clipped(v, low[0] if low else None, high[0] if high else None) for v in values]
    return [of_elements(site.element(), made)]


def _clipped(value: float | None, low: float | None, high: float | None) -> float | None:
    if value is None:
        return None
    value = value if low is None else max(value, low)
    return value if high is None else min(value, high)


@rule("Dropout")
@rule("BitmaskDropout", domain=MICROSOFT)
def dropout(site: Site) -> Sequence[Fact]:
    """The mask is boolean from opset 10 on; before, of the input's type."""
    source = site.input(0)
    mask = tensor(BOOL if site.version >= 10 else source.element, source.dims)
    return [source, mask] if not site.given(2) else [tensor(source.element, source.dims), mask]


@rule("Cast")
def cast(site: Site) -> Sequence[Fact]:
    """`to` is a name before opset 6."""
    to = site.integer("to")
    if to is None and site.text("to"):
        return [tensor(TensorProto.DataType.Value(site.text("to")), site.dims(0))]
    return [_cast(site, to)]


@rule("CastLike")
def cast_like(site: Site) -> Sequence[Fact]:
    """The type is the second input's."""
    return [_cast(site, site.element(1))]


def _cast(site: Site, to: int | None) -> Fact:
    source = site.input(0)
    array = source.elements()
    if array is None:
        return tensor(to, source.dims)
    made = np.empty(array.shape, dtype=object)
    made.reshape(-1)[:] = [converted(value, to) for value in array.reshape(-1)]
    return of_elements(to, made)


@rule("Where")
def where(site: Site) -> Sequence[Fact]:
    """Condition and both choices are broadcast to each other."""
    element = site.element(1) if site.element(1) is not None else site.element(2)
    arrays = [site.input(i).elements() for i in range(3)]
    if all(array is not None for array in arrays):
        try:
            condition, yes, no = np.broadcast_arrays(*arrays)  # type: ignore[arg-type]
        except ValueError:
            return [tensor(element)]
        made = np.empty(condition.shape, dtype=object)
        triples = zip(condition.reshape(-1), yes.reshape(-1), no.reshape(-1), strict=True)
        made.reshape(-1)[:] = [(a if c == 1 else b if c == 0 else a if a == b else None) for c, a, b in triples]
        return [of_elements(element, made)]
    return [tensor(element, site.broadcast(site.dims(0), site.dims(1), site.dims(2)))]
