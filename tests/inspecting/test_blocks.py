"""The block view loses no node, whatever the names are."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper, parser

from onnxbench import GraphView
from onnxbench.core.scopes import exported_scopes, scopes
from onnxbench.core.shapes import Shapes
from onnxbench.inspecting.blocks import blocks
from onnxbench.inspecting.costs import costs
from onnxbench.inspecting.inspection import as_text

NAMES = st.lists(st.text("ab/.[]0: _\n\x1b'\"é", max_size=12), min_size=1, max_size=12)


def view_of(names):
    steps = " ".join(f"t{i + 1} = Relu (t{i})" for i in range(len(names)))
    text = f'<ir_version: 8, opset_import: ["": 17]> g (float[2] t0) => (float[2] t{len(names)}) {{ {steps} }}'
    proto = parser.parse_model(text)
    for node, name in zip(proto.graph.node, names, strict=True):
        node.name = name
    return GraphView(proto, proto.graph)


def tree(names, depth):
    view = view_of(names)
    return blocks(view, costs(view, Shapes()), depth)


def every(block):
    yield block
    for inner in block.blocks:
        yield from every(inner)


@settings(max_examples=60, deadline=None)
@given(NAMES, st.integers(0, 99))
def test_every_node_counts_once_on_each_level_it_reaches(names, depth):
    root = tree(names, depth)
    assert root.nodes == len(names)
    for block in every(root):
        inside = sum(inner.nodes for inner in block.blocks)
        assert inside <= block.nodes
        assert all(inner.name for inner in block.blocks)
        assert len({inner.name for inner in block.blocks}) == len(block.blocks)
    assert depth or not root.blocks


@pytest.mark.parametrize(
    "name, want",
    [
        ("a[0]/b", ("a[0]",)),
        ("layers.0/x", ("layers.0",)),
        ("/enc/l.0/MatMul", ("enc", "l.0")),
        ("//enc///MatMul", ("enc",)),
        ("torch_nn_modules_linear_Linear_fc_1/MatMul_3", ("torch_nn_modules_linear_Linear_fc_1",)),
        ("enc/", ()),
        ("/", ()),
        ("", ()),
    ],
)
def test_a_name_is_split_at_its_slashes(name, want):
    assert scopes(helper.make_node("Relu", ["x"], ["y"], name=name)) == want


@pytest.mark.parametrize(
    "listed, want",
    [
        ("['', 'layer', 'layer.0', 'add']", ("layer", "0")),
        ("['', '', 'layer', 'layer', 'layer.', 'layer.0', 'add']", ("layer", "0")),
        ("['a', 'b.c', 'b', 'add']", ("a", "b.c", "b")),
        ("('', 'layer', 'add')", ("layer",)),
        ("[1, None, 'layer', 'add']", ("layer",)),
        ("[]", ()),
        ("[[[", ()),
        ("'layer'", ()),
    ],
)
def test_scopes_of_pytorch(listed, want):
    node = helper.make_node("Relu", ["x"], ["y"])
    node.metadata_props.add(key="pkg.torch.onnx.name_scopes", value=listed)
    assert scopes(node) == want
    assert exported_scopes(node)[:-1] == [] or want


def test_a_name_of_three_thousand_scopes_can_be_printed():
    root = tree(["a/" * 3000 + "end"], 10**6)
    assert len(list(every(root))) == 51
    assert as_text(root.macs) == 0
    json.dumps(root.name)
