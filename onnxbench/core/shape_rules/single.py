"""onnx's inference of one node, for operators that we have no rule for."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from functools import cache

import numpy as np
import onnx
from onnx import NodeProto, TensorProto, TypeProto, defs, helper, numpy_helper, shape_inference

from onnxbench.core.attributes import subgraphs
from onnxbench.core.shape_rules.facts import Dim, Fact, dim_text, to_type
from onnxbench.core.shape_rules.merging import read_type
from onnxbench.core.symbolic import Size
from onnxbench.core.values import dtype_of


def infer_single(
    node: NodeProto, domain: str, opsets: Mapping[str, int], inputs: Sequence[Fact | None]
) -> Sequence[Fact]:
    """Facts of the node's outputs; none if onnx does not know the operator or refuses the node."""
    schema = _schema(node.op_type, domain, opsets.get(domain, 1))
    if schema is None:
        return ()
    texts: dict[str, Size] = {}
    types: dict[str, TypeProto] = {}
    data: dict[str, TensorProto] = {}
    for name, fact in zip(node.input, inputs, strict=True):
        if name and fact is not None:
            types[name] = to_type(fact) or TypeProto()
            texts.update((dim_text(dim), dim) for dim in fact.dims or () if dim is not None)
            values = _values(fact)
            if values is not None:
                data[name] = values
    imports = [helper.make_opsetid(name, version) for name, version in opsets.items()]
    try:
        found = shape_inference.infer_node_outputs(schema, node, types, data, opset_imports=imports)
    except (
        onnx.checker.ValidationError,
        onnx.shape_inference.InferenceError,
        RuntimeError,
        KeyError,
        ValueError,
        TypeError,
    ):
        return ()

    if any(True for _ in subgraphs(node)):
        texts.clear()  # they would stand for what a body calls alike

    def read(text: str) -> Dim:
        return texts.get(text)

    facts = [read_type(found[name], read) if name in found else Fact() for name in node.output]
    empty = any(dim == 0 for fact in inputs if fact is not None for dim in fact.dims or ())
    return facts if empty else [without_zeros(fact) for fact in facts]


def without_zeros(fact: Fact) -> Fact:
    """A fact without dims of 0: some of onnx's rules take a symbol for 0 (Attention-23)."""
    if fact.dims is None or 0 not in fact.dims:
        return fact
    return dataclasses.replace(fact, dims=tuple(None if dim == 0 else dim for dim in fact.dims))


@cache
def _schema(operator: str, domain: str, version: int) -> defs.OpSchema | None:
    try:
        return defs.get_schema(operator, version, domain)
    except (defs.SchemaError, RuntimeError, TypeError):  # TypeError: an opset that is no C int
        return None


def _values(fact: Fact) -> TensorProto | None:
    """The value of an input that is known whole."""
    array = fact.elements()
    dtype = dtype_of(fact.element) if fact.element is not None else None
    if array is None or dtype is None or not all(isinstance(v, (int, float)) for v in array.reshape(-1)):
        return None
    try:
        return numpy_helper.from_array(array.astype(dtype) if array.size else np.empty(array.shape, dtype))
    except (OverflowError, ValueError, TypeError):
        return None
