"""Element types that there are not are refused, and break nothing."""

import pytest
from onnx import parser

from onnxbench import Model
from onnxbench.converters.options import ConvertOptions
from onnxbench.converters.run import convert_model


def planted(node, opset):
    return parser.parse_model(
        f'<ir_version: 8, opset_import: ["": {opset}]> g (float[4] x) => (float[4] y) {{ {node} }}'
    )


@pytest.mark.parametrize(
    "node, start, end",
    [("y = Relu (x)", 17, 13), ("y, i = TopK <axis = 0> (x, k)", 11, 9), ("y = Cast <to = 200> (x)", 9, 5)],
)
def test_an_element_type_that_there_is_not(node, start, end):
    proto = planted(node, start)
    if "Cast" not in node:
        proto.graph.input[0].type.tensor_type.elem_type = 200
    done, report = convert_model(Model(proto, label="odd"), ConvertOptions({"": end}, verify=False))
    assert (done, report.state) == (None, "refused")
    assert "200" in report.refusals[0].reason
