"""Opset imports and IR version of a converted model."""

from __future__ import annotations

from collections.abc import Mapping

from onnx import IR_VERSION, ModelProto

from onnxbench.converters import ir, schemas
from onnxbench.converters.options import ConvertOptions
from onnxbench.converters.report import Conversion
from onnxbench.core.graph import opset_imports, plain_domain
from onnxbench.core.model import Model
from onnxbench.errors import ModelError, UsageError, quote


def refuse_unknown(targets: Mapping[str, int]) -> None:
    """Raise OB201 for a target that the installed onnx does not know."""
    for domain, version in targets.items():
        newest = schemas.newest(domain)
        name = domain or "ai.onnx"
        if not newest:
            raise UsageError("OB201", f"onnxbench converts ai.onnx and ai.onnx.ml, not {name}")
        if not 1 <= version <= newest:
            raise UsageError("OB201", f"the installed onnx knows opsets 1 to {newest} of {name}, not {version}")


def refuse_unheard(options: ConvertOptions) -> None:
    """Raise OB201 for an IR version, or an operator to expand, that the installed onnx does not know."""
    if options.ir is not None and options.ir > IR_VERSION:
        raise UsageError("OB201", f"the installed onnx knows IR versions up to {IR_VERSION}, not {options.ir}")
    for op in sorted(options.expand):
        if not schemas.is_operator(op):
            raise UsageError("OB201", f"no operator that onnxbench converts is called {quote(op)}")


def refuse_unclear(model: Model) -> None:
    """Raise OB305 for a model that does not say, or says twice, which opset its nodes of ai.onnx are of."""
    proto = model.proto
    versions: dict[str, set[int]] = {}
    for entry in proto.opset_import:
        versions.setdefault(plain_domain(entry.domain), set()).add(entry.version)
    for domain, found in versions.items():
        if len(found) > 1:
            both = " and ".join(map(str, sorted(found)))
            raise ModelError("OB305", f"{model.label} imports {domain or 'ai.onnx'} as {both}: it has to be one")
    if "" not in versions and proto.ir_version >= 3:
        for node in proto.graph.node:
            if plain_domain(node.domain) == "":
                hint = "write the opset_import that the model was made for"
                text = f"{model.label} has nodes of ai.onnx ({quote(node.op_type)}) and does not say of which opset"
                raise ModelError("OB305", text, hint=hint)


def spelled(opsets: Mapping[str, int]) -> dict[str, int]:
    """Opsets with the default domain spelled out."""
    return {domain or "ai.onnx": version for domain, version in opsets.items()}


def opsets_of(model: ModelProto) -> dict[str, int]:
    """What a model imports; before IR version 3 nothing says it, and it is opset 1."""
    opsets = opset_imports(model.opset_import)
    if model.ir_version < 3:
        opsets.setdefault("", 1)
    return opsets


def describe(model: Model, report: Conversion) -> None:
    """Write what the model is before into a report."""
    report.before, report.ir_before = spelled(opsets_of(model.proto)), model.proto.ir_version


def describe_result(result: ModelProto, report: Conversion) -> None:
    """Write what it is afterwards into a report."""
    imports = opset_imports(result.opset_import)
    report.after, report.ir_after = spelled(imports), result.ir_version
    report.notes += notes(report.before, result)


def notes(before: Mapping[str, int], result: ModelProto) -> list[str]:
    """What to know of the IR version of a result.

    Args:
        before: opset version by domain, spelled out, of the source.
        result: as it is stamped.
    """
    imports = opset_imports(result.opset_import)
    after = spelled(imports)
    if all(after.get(name, version) >= version for name, version in before.items()):
        return []
    least, what = ir.needed(result)
    if least == result.ir_version and least > (usual := ir.released_with(imports)):
        return [f"the IR version is {least}, not the {usual} of that opset, for {what}"]
    return []


def stamp(source: ModelProto, result: ModelProto, options: ConvertOptions) -> None:
    """Write the targets into the imports of a model and its functions, and the IR version."""
    for entry in result.opset_import:
        entry.version = options.end(plain_domain(entry.domain), entry.version)
    if "" in options.targets and not any(plain_domain(entry.domain) == "" for entry in result.opset_import):
        result.opset_import.add(version=options.targets[""])
    for function in result.functions:
        for entry in function.opset_import:
            entry.version = options.end(plain_domain(entry.domain), entry.version)
    result.ir_version = _ir(source, result, options)


def _ir(source: ModelProto, result: ModelProto, options: ConvertOptions) -> int:
    """As it was, where it may be; going down that of the target's release, unless something needs more."""
    least, what = ir.needed(result)
    if options.ir is not None:
        if options.ir < least:
            raise UsageError("OB201", f"IR version {options.ir} is too low: it takes {least} for {what}")
        return options.ir
    before, after = opset_imports(source.opset_import), opset_imports(result.opset_import)
    falls = any(after[domain] < version for domain, version in before.items() if domain in after)
    known = {domain: version for domain, version in after.items() if domain in options.targets}
    chosen = max(least, min(source.ir_version, ir.released_with(known)) if falls else source.ir_version)
    if options.ir_most is None or chosen <= options.ir_most:
        return chosen
    if least > options.ir_most:
        raise UsageError("OB201", f"IR version {options.ir_most} is too low: it takes {least} for {what}")
    return options.ir_most
