"""Counts agree with a count done another way, on every model inside the installed onnx package."""

import math
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from onnxbench import load
from onnxbench.inspecting.inspect import inspect

DATA = Path(onnx.__file__).parent / "backend" / "test" / "data"
MODELS = sorted([*DATA.glob("light/*.onnx"), *DATA.glob("simple/*/model.onnx"), *DATA.glob("pytorch-*/*/model.onnx")])


def all_graphs(message):
    """Every graph and function, found by walking all fields of the protobuf."""
    for field, value in message.ListFields():
        if field.type == field.TYPE_MESSAGE:
            for item in value if field.is_repeated else [value]:
                if isinstance(item, onnx.GraphProto | onnx.FunctionProto):
                    yield item
                yield from all_graphs(item)


@pytest.mark.parametrize(
    "path", MODELS, ids=lambda path: path.stem if path.parent.name == "light" else path.parent.name
)
def test_nodes_parameters_and_bytes(path):
    proto = onnx.load(path)
    graphs = list(all_graphs(proto))
    arrays = [numpy_helper.to_array(t) for g in graphs if hasattr(g, "initializer") for t in g.initializer]
    arrays += [
        numpy_helper.to_array(a.t)
        for g in graphs
        for n in g.node
        if n.op_type == "Constant"
        for a in n.attribute
        if a.name == "value"
    ]
    arrays += [
        numpy_helper.to_array(s.values)
        for g in graphs
        if hasattr(g, "sparse_initializer")
        for s in g.sparse_initializer
    ]
    report = inspect(load(path))
    head = report.header
    assert head.nodes == len(proto.graph.node)
    assert head.all_nodes == sum(len(graph.node) for graph in graphs)
    assert head.parameters == sum(math.prod(array.shape) for array in arrays)
    numeric = [array for array in arrays if array.dtype != np.object_]
    assert sum(count for name, count in head.bytes_by_type.items() if name != "STRING") == sum(
        a.nbytes for a in numeric
    )
    assert sum(o.count + o.in_bodies + o.in_functions for o in report.operators) == head.all_nodes
