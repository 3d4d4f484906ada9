"""What a runtime or a converter will stumble over: versions, old and unknown operators, overridable weights."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import onnx
from onnx import defs

from onnxbench.errors import quote
from onnxbench.inspecting.header import elements
from onnxbench.inspecting.problems import Facts, and_more, problem

Finding = Iterator[tuple[str, str, str]]


@problem("OB620", "warning", "an opset is newer than the installed onnx knows")
def _opset(facts: Facts) -> Finding:
    for domain, version in facts.view.opsets.items():
        newest = defs.onnx_opset_version() if domain == "" else None
        if newest is not None and version > newest:
            message = f"opset {version}, and onnx {onnx.__version__} knows up to {newest}"
            yield "model", message, "pip install -U onnx onnxruntime"


@problem("OB621", "warning", "the IR version is newer than the installed onnx knows")
def _ir(facts: Facts) -> Finding:
    version = facts.model.proto.ir_version
    if version > onnx.IR_VERSION:
        yield (
            "model",
            f"IR {version}, and onnx {onnx.__version__} knows up to {onnx.IR_VERSION}",
            "pip install -U onnx onnxruntime",
        )


@problem("OB622", "warning", "an operator is deprecated at this opset")
def _deprecated(facts: Facts) -> Finding:
    for operator in facts.operators:
        if operator.deprecated:
            yield f"operator {operator.name}", f"deprecated since opset {operator.since}", ""


@problem("OB623", "warning", "an operator does not exist at this opset")
def _unknown(facts: Facts) -> Finding:
    for operator in facts.operators:
        if operator.kind == "unknown":
            opset = facts.view.opsets.get(operator.domain)
            domain = operator.domain or "ai.onnx"
            message = f"{domain} has none at opset {opset}" if opset else f"{domain} is not imported"
            yield f"operator {operator.name}", message, ""


@problem("OB624", "info", "an operator of a custom domain needs a runtime that has it")
def _custom(facts: Facts) -> Finding:
    domains = Counter(o.domain for o in facts.operators if o.kind == "custom")
    for domain, count in domains.items():
        names = [o.name for o in facts.operators if o.kind == "custom" and o.domain == domain]
        yield f"domain {quote(domain)}", f"{count} operators: {', '.join(sorted(names)[:5])}", ""


@problem("OB625", "warning", "weights are inputs too, so runtimes may not fold them")
def _overridable(facts: Facts) -> Finding:
    names = [
        n for n in facts.view.initializers if facts.view.is_overridable(n) and elements(facts.view.initializers[n]) > 1
    ]
    if names:
        yield (
            and_more(f"initializer {quote(names[0])}", len(names)),
            "it is a graph input too, so a caller may replace it",
            ("export with keep_initializers_as_inputs=False if nobody means to"),
        )


@problem("OB628", "info", "weights are inputs too, as IR versions before 4 want it")
def _old_ir(facts: Facts) -> Finding:
    names = [name for name in facts.view.initializers if name in facts.view.inputs]
    if names and facts.model.proto.ir_version < 4:
        message = f"{len(names)} initializers are graph inputs; under a newer IR version callers could replace them"
        yield "model", message, ""


@problem("OB626", "info", "the default domain is imported under both its names")
def _both_spellings(facts: Facts) -> Finding:
    spelled = [(e.domain, e.version) for e in facts.model.proto.opset_import if e.domain in ("", "ai.onnx")]
    if len(spelled) > 1:
        versions = sorted({version for _, version in spelled})
        yield "model", f"imported {len(spelled)} times, version {' and '.join(map(str, versions))}", ""


@problem("OB627", "info", "a metadata key is there more than once")
def _metadata(facts: Facts) -> Finding:
    counts = Counter(entry.key for entry in facts.model.proto.metadata_props)
    for key, count in counts.items():
        if count > 1:
            yield f"metadata {quote(key)}", f"{count} times; readers keep one of them", ""
