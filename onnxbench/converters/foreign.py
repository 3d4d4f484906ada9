"""Local functions of another opset than the model's, which runtimes do not agree about.

ONNX has functions "compatible" with the model's imports (IR specification, "Functions"): every operator in them is to mean the
same at both opsets. ONNX Runtime takes their nodes as of the model's opset; we, and the reference evaluator, as of their own.
"""

from __future__ import annotations

from onnx import FunctionProto, ModelProto

from onnxbench.converters import schemas
from onnxbench.core.attributes import nodes_below
from onnxbench.core.graph import function_key, opset_imports, plain_domain
from onnxbench.errors import quote
from onnxbench.folding.sweep import called_functions


def why_apart(model: ModelProto) -> str:
    """A sentence about the first function that is called and whose opset makes another operator of one in it; empty if none."""
    ours = opset_imports(model.opset_import)
    called = called_functions(model)
    for function in model.functions:
        if function_key(function) not in called:
            continue
        theirs = opset_imports(function.opset_import)
        for domain, version in theirs.items():
            found = _other(function, domain, version, ours.get(domain, version))
            if found:
                name = domain or "opset"
                return (
                    f"function {quote(function.name)} is of {name} {version} in a model of {name} {ours[domain]}, and {found} is not "
                    "the same in both: that is not valid, ONNX Runtime takes it as of the model's opset, and it was converted as "
                    "of its own; write the opset that it is meant to be of into its opset_import"
                )
    return ""


def _other(function: FunctionProto, domain: str, version: int, ours: int) -> str:
    if version == ours:
        return ""
    for node in nodes_below(function.node):
        if plain_domain(node.domain) == domain:
            one, other = (schemas.schema(domain, node.op_type, opset) for opset in (version, ours))
            if one is not None and (other is None or one.since_version != other.since_version):
                return str(node.op_type)
    return ""
