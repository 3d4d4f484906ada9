"""Which runtime is believed about which opset, and what two runs tell.

ONNX Runtime without optimizations is believed. The reference evaluator is from opset 13 on; before, it is wrong about several
operators, so that it may only confirm what ONNX Runtime says of the other model: two that have nothing in common agree by
nothing but being right.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from onnxbench.core.attributes import all_nodes
from onnxbench.core.compare import Tolerance, differ_all
from onnxbench.core.graph import opset_imports
from onnxbench.core.model import Model
from onnxbench.core.values import Value
from onnxbench.runtimes.base import Limits
from onnxbench.runtimes.find import find
from onnxbench.runtimes.outcome import Outcome

#: The opset of ai.onnx from which on the reference evaluator is believed.
REFERENCE = 13
#: Operators that it reads as if they stood in an opset from which on a default is another.
_MISREAD = {"RoiAlign": 16}
_DEFAULT = Tolerance()


@dataclass(frozen=True, slots=True)
class Ran:
    """What came of a run, whether whoever ran it is believed, and whether that is the reference evaluator."""

    outcome: Outcome
    believed: bool
    by_reference: bool = False


@dataclass(frozen=True, slots=True)
class Told:
    """What two runs tell: the same, something else, or nothing, and why."""

    state: Literal["same", "differs", "untold"]
    reason: str = ""


def run(model: Model, feeds: Mapping[str, Value], limits: Limits) -> Ran:
    """Run a model on ONNX Runtime; if that has no kernels for it, on the reference evaluator."""
    outcome = find("onnxruntime:opt=disable").run(model, feeds, limits=limits)
    if outcome.kind != "unsupported":
        return Ran(outcome, True)
    other = find("reference").run(model, feeds, limits=limits)
    if not other.ok:
        return Ran(outcome, True)
    return Ran(other, is_believed(model), by_reference=True)


def is_believed(model: Model) -> bool:
    """Whether the reference evaluator is believed about a model."""
    at = opset(model)
    return at >= REFERENCE and all(at >= _MISREAD.get(node.op_type, 0) for node in all_nodes(model.proto))


def opset(model: Model) -> int:
    """The version of ai.onnx that a model is at; one without it counts as new."""
    return opset_imports(model.proto.opset_import).get("", REFERENCE)


def told(before: Ran, after: Ran, tolerance: Tolerance = _DEFAULT) -> Told:
    """What a run of the old and one of the new model tell; the old one went well."""
    if after.outcome.kind == "unsupported":
        return Told("untold", "no runtime has kernels for the new form")
    if not before.believed and not after.believed:
        return Told("untold", "only the reference evaluator runs both, which is not believed before opset 13")
    if not after.outcome.ok:
        return Told("differs", f"the new form {after.outcome.sentence()}")
    differences = differ_all(before.outcome.outputs, after.outcome.outputs, tolerance)
    if not differences:
        return Told("same")
    if before.believed and after.believed:
        return Told("differs", differences[0].sentence())
    which = "new" if before.believed else "old"
    return Told("untold", f"only the reference evaluator, which is not believed before opset 13, runs the {which} form")
