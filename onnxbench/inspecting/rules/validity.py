"""What makes a model invalid: the checker's complaints, bad tensors, unreachable weights."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from onnxbench.core.check import NO_ANSWER
from onnxbench.core.graph import call_key
from onnxbench.core.model import Model
from onnxbench.core.tensors import is_external, tensors, validate_embedded
from onnxbench.errors import ModelError, quote
from onnxbench.inspecting.problems import Facts, problem

Finding = Iterator[tuple[str, str, str]]


def tensor_faults(model: Model) -> list[tuple[str, ModelError]]:
    """What is wrong with embedded tensors, by name; asked while they have their bytes."""
    found: list[tuple[str, ModelError]] = []
    for tensor in tensors(model.proto):
        if not is_external(tensor):
            try:
                validate_embedded(tensor, model.label)
            except ModelError as error:
                found.append((tensor.name, error))
    return found


@problem("OB601", "error", "ONNX's checker refuses the model")
def _checker(facts: Facts) -> Finding:
    if facts.fault not in (None, NO_ANSWER):
        yield "model", " ".join(str(facts.fault).split()), ""


@problem("OB602", "error", "a stored tensor is invalid")
def _tensors(facts: Facts) -> Finding:
    for name, error in facts.tensor_faults:
        yield f"tensor {quote(name)}", error.message, error.hint


@problem("OB603", "error", "external data is missing, out of range, or outside the model's folder")
def _external(facts: Facts) -> Finding:
    for file in facts.tensors.files:
        if file.fault:
            yield f"file {quote(file.location)}", file.fault, "keep the model and its data file in one folder"


@problem("OB604", "error", "a value is made twice")
def _made_twice(facts: Facts) -> Finding:
    made = Counter(name for node in facts.view.nodes for name in node.outputs if name)
    for name, count in made.items():
        if count > 1:
            yield f"value {quote(name)}", f"{count} nodes make it", ""


@problem("OB605", "error", "the nodes feed each other in a circle")
def _circle(facts: Facts) -> Finding:
    try:
        _ = facts.view.order
    except ModelError as error:
        yield "graph", error.message, ""


@problem("OB606", "error", "a local function reaches itself")
def _recursion(facts: Facts) -> Finding:
    functions = facts.view.functions
    calls = {key: [k for node in f.node if (k := call_key(node)) in functions] for key, f in functions.items()}
    for key in functions:
        seen, pending = set(), list(calls[key])
        while pending:
            callee = pending.pop()
            if callee not in seen:
                seen.add(callee)
                pending += calls[callee]
        if key in seen:
            yield f"function {quote(key[1])}", "it reaches itself, so it has no finite body", ""
