"""What stops a conversion from being written, as the error that says so."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from onnxbench.converters.names import UNCALLED
from onnxbench.converters.report import Conversion
from onnxbench.errors import AnswerIsNo, BenchError, SafetyStop


def verdict(report: Conversion, *, require_verified: bool = False) -> BenchError | None:
    """Why nothing is written; None if the result may be."""
    if report.state == "refused":
        return _refused(report)
    if report.state == "mismatch":
        fact = f"{report.model} does not compute the same, and nothing was written: {report.reason}"
        return SafetyStop("OB501", fact, hint=_which_is_wrong(report))
    if require_verified and report.state not in ("verified", "unchanged"):
        reason = report.reason or f"it is {report.state} only"
        return SafetyStop("OB501", f"{report.model} was not verified, and nothing was written: {reason}")
    return None


def _refused(report: Conversion) -> AnswerIsNo:
    if not report.refusals:
        return AnswerIsNo("OB107", f"{report.model} was not converted: {report.reason}")
    first = report.refusals[0]
    place = f" in {first.where}" if first.where else ""
    fact = f"{first.node}{place}: {first.step}: {first.reason}{others(len(report.refusals) - 1)}"
    hint = way_out(report.model, [(entry.where, entry.reason) for entry in report.refusals], report.furthest)
    return AnswerIsNo("OB107", f"{report.model} was not converted: {fact}", hint=hint)


def others(count: int) -> str:
    """What is said of nodes that are refused besides the first."""
    return f", and {count} more node{'s' * (count != 1)} cannot be converted" if count else ""


def way_out(model: str, refused: Sequence[tuple[str, str]], furthest: Mapping[str, int]) -> str:
    """What can be done with a refused model.

    Args:
        model: its label.
        refused: where each refused node stands, and why it is refused.
        furthest: opsets nearest to the targets that it can be taken to, by domain spelled out.
    """
    if all(UNCALLED in place for place, _ in refused):
        return (
            f"it has no part in what the model gives: onnxbench extract {model} --to OUTPUTS leaves such functions out"
        )
    if all(_is_unknown(reason) and not place.startswith("function ") for place, reason in refused):
        return "what is not known can be told: write the type and shape of that value into the model's value_info"
    if furthest:
        targets = ",".join(f"{domain}={version}" for domain, version in furthest.items())
        to = str(furthest["ai.onnx"]) if list(furthest) == ["ai.onnx"] else targets
        return f"it can go as far as that: onnxbench convert {model} --to {to}"
    return "--dry-run says which opsets all of its nodes allow"


def _is_unknown(reason: str) -> bool:
    return re.match(r"the (rank|element type) of \S+ is not known", reason) is not None


def _which_is_wrong(report: Conversion) -> str:
    return (
        f"onnxbench reduce {report.model} -r onnxruntime --against reference tells if a runtime is wrong about the source; "
        "--no-verify writes the result unseen"
    )
