"""Steps that no node can take, and why: below the introduction of operators that nothing older does."""

from __future__ import annotations

from onnxbench.converters.adapters import impossible

#: By reason: operators, with the version that introduced each.
_FIRST: dict[str, dict[str, int]] = {
    "no older operator works on text": {
        "RegexFullMatch": 20,
        "StringConcat": 20,
        "StringNormalizer": 10,
        "StringSplit": 20,
        "TfIdfVectorizer": 9,
    },
    "there were no sequences before": {
        "ConcatFromSequence": 11,
        "SequenceAt": 11,
        "SequenceConstruct": 11,
        "SequenceEmpty": 11,
        "SequenceErase": 11,
        "SequenceInsert": 11,
        "SequenceLength": 11,
        "SplitToSequence": 11,
    },
    "there were no optional values before": {
        "Optional": 15,
        "OptionalGetElement": 15,
        "OptionalHasElement": 15,
    },
    "no older operators give it to the last bits": {
        "Acos": 7,
        "Acosh": 9,
        "Asin": 7,
        "Asinh": 9,
        "Atan": 7,
        "Atanh": 9,
        "Cos": 7,
        "Cosh": 9,
        "Det": 11,
        "Erf": 9,
        "Sin": 7,
        "Sinh": 9,
        "Tan": 7,
    },
    "no older operator reads bits": {"BitCast": 26},
    "no older operator decodes images": {"ImageDecoder": 20},
    "no older operator draws by weights": {"Multinomial": 7},
    "no older operator goes over an axis": {"Scan": 8},
    "no older operator makes a tensor whose shape is only known at run time": {
        "Compress": 9,
        "ConstantOfShape": 9,
        "Expand": 8,
        "EyeLike": 9,
        "NonZero": 9,
        "OneHot": 9,
    },
    "no older operator chooses or tells elements apart": {
        "IsNaN": 9,
        "Sign": 9,
        "Where": 9,
    },
    "no older operator writes to places": {"MaxUnpool": 9, "Scatter": 9},
    "the older operators for it have no bounded number of nodes": {
        "DeformConv": 19,
        "NonMaxSuppression": 10,
        "RoiAlign": 10,
        "Unique": 11,
    },
    "no decomposition of it is written": {
        "ConvInteger": 10,
        "GridSample": 16,
        "QLinearConv": 10,
        "QLinearMatMul": 10,
    },
}

for _reason, _operators in _FIRST.items():
    for _op, _version in _operators.items():
        impossible(_op, _version, 0, f"{_op} was introduced in opset {_version}, and {_reason}")

impossible(
    "TreeEnsemble",
    5,
    0,
    "TreeEnsemble was introduced in opset 5, and its trees are told otherwise than those of older operators",
    "ai.onnx.ml",
)
