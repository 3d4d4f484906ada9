"""What `import onnxbench` promises: a name that goes away or moves breaks somebody's script."""

import inspect

import pytest

import onnxbench

PROMISED = [
    "AnswerIsNo",
    "BenchError",
    "Conversion",
    "ConvertOptions",
    "Diff",
    "Difference",
    "FoldOptions",
    "GraphView",
    "Inspection",
    "Limits",
    "MachineError",
    "Model",
    "ModelError",
    "Node",
    "Outcome",
    "Piece",
    "Reduction",
    "Request",
    "Runtime",
    "SafetyStop",
    "Selection",
    "Shapes",
    "Spec",
    "Tolerance",
    "UsageError",
    "call",
    "carve",
    "convert",
    "diff",
    "differ",
    "extract",
    "find",
    "fold",
    "generate",
    "infer",
    "inspect",
    "load",
    "propagate",
    "record",
    "reduce",
    "save",
    "select",
]


def test_the_names_are_pinned():
    assert list(onnxbench.__all__) == PROMISED


@pytest.mark.parametrize("name", PROMISED)
def test_every_name_is_there_and_says_what_it_is(name):
    assert inspect.getdoc(getattr(onnxbench, name))
    assert name in dir(onnxbench)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = onnxbench.nothing
