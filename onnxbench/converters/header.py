"""Opset imports and IR version of a converted model."""

from __future__ import annotations

from collections.abc import Mapping

from onnx import ModelProto

from onnxbench.converters import schemas
from onnxbench.converters.options import ConvertOptions
from onnxbench.converters.report import Conversion
from onnxbench.core.graph import opset_imports, plain_domain
from onnxbench.core.model import Model
from onnxbench.errors import UsageError


def refuse_unknown(targets: Mapping[str, int]) -> None:
    """Raise OB201 for a target that the installed onnx does not know."""
    for domain, version in targets.items():
        newest = schemas.newest(domain)
        name = domain or "ai.onnx"
        if not newest:
            raise UsageError("OB201", f"onnxbench converts ai.onnx and ai.onnx.ml, not {name}")
        if not 1 <= version <= newest:
            raise UsageError("OB201", f"the installed onnx knows opsets 1 to {newest} of {name}, not {version}")


def spelled(opsets: Mapping[str, int]) -> dict[str, int]:
    """Opsets with the default domain spelled out."""
    return {domain or "ai.onnx": version for domain, version in opsets.items()}


def describe(model: Model, report: Conversion) -> None:
    """Write what the model is before into a report."""
    opsets = opset_imports(model.proto.opset_import)
    if model.proto.ir_version < 3:
        opsets.setdefault("", 1)
    report.before, report.ir_before = spelled(opsets), model.proto.ir_version


def describe_result(result: ModelProto, report: Conversion) -> None:
    """Write what it is afterwards into a report."""
    report.after, report.ir_after = spelled(opset_imports(result.opset_import)), result.ir_version


def stamp(source: ModelProto, result: ModelProto, options: ConvertOptions) -> None:
    """Write the targets into the imports of a model and its functions, and the IR version."""
    for entry in result.opset_import:
        entry.version = options.targets.get(plain_domain(entry.domain), entry.version)
    if "" in options.targets and not any(plain_domain(entry.domain) == "" for entry in result.opset_import):
        result.opset_import.add(version=options.targets[""])
    for function in result.functions:
        for entry in function.opset_import:
            entry.version = options.targets.get(plain_domain(entry.domain), entry.version)
    result.ir_version = max(result.ir_version, 3)
