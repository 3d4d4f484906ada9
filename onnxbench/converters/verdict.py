"""What stops a conversion from being written, as the error that says so."""

from __future__ import annotations

from onnxbench.converters.report import Conversion
from onnxbench.errors import AnswerIsNo, BenchError, SafetyStop


def verdict(report: Conversion, *, require_verified: bool = False) -> BenchError | None:
    """Why nothing is written; None if the result may be."""
    if report.state == "refused":
        return _refused(report)
    if report.state == "mismatch":
        return SafetyStop(
            "OB501", f"{report.model} does not compute the same, and nothing was written: {report.reason}"
        )
    if require_verified and report.state not in ("verified", "unchanged"):
        reason = report.reason or f"it is {report.state} only"
        return SafetyStop("OB501", f"{report.model} was not verified, and nothing was written: {reason}")
    return None


def _refused(report: Conversion) -> AnswerIsNo:
    if not report.refusals:
        return AnswerIsNo("OB107", f"{report.model} was not converted: {report.reason}")
    first = report.refusals[0]
    place = f" in {first.where}" if first.where else ""
    fact = f"{first.node}{place}: {first.step}: {first.reason}"
    more = len(report.refusals) - 1
    also = f", and {more} more node{'s' * (more != 1)} cannot be converted" if more else ""
    hint = "--dry-run says which opsets all of its nodes allow"
    return AnswerIsNo("OB107", f"{report.model} was not converted: {fact}{also}", hint=hint)
