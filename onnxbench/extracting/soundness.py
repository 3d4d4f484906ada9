"""Refuse a piece with a fault that its source did not have."""

from __future__ import annotations

import re

from onnxbench.core import check
from onnxbench.core.external import locate
from onnxbench.core.model import Model
from onnxbench.core.tensors import is_external, tensors, validate_embedded
from onnxbench.errors import AnswerIsNo
from onnxbench.extracting.request import ExtractRequest


def refuse_faults(source: Model, piece: Model, request: ExtractRequest, *, typed: bool) -> str:
    """The fault that the piece has as the source has it; "" if it has none.

    Args:
        source: what the piece was cut out of.
        piece: what is about to be written.
        request: has the limits.
        typed: whether strict inference has passed the piece already.

    Raises:
        AnswerIsNo: OB102 for a fault of the piece alone.
        ModelError: OB304 or OB306 for a weight that is not to be had, or is not what it says.
    """
    for tensor in tensors(piece.proto):
        if is_external(tensor):
            locate(piece, tensor)
        else:
            validate_embedded(tensor, source.label)
    fault = _fault(piece, request, typed)
    if fault is None:
        return ""
    had = _fault(source, request, typed=False)
    if had is None or _kind(had) != _kind(fault):
        raise AnswerIsNo(
            "OB102", f"the piece would be invalid: {_line(fault)}", hint=f"onnxbench inspect {source.label}"
        )
    return _line(fault)


def _fault(model: Model, request: ExtractRequest, typed: bool) -> str | None:
    return check.full_fault(model, typed=typed, timeout=request.inference_time, memory=request.limits.memory)


def _line(fault: str) -> str:
    return " ".join(fault.split())[:300]


def _kind(fault: str) -> str:
    """What is wrong, without the names of where."""
    return re.sub(r"\(.*?\)|'[^']*'|\"[^\"]*\"|\d+", "", fault.strip().splitlines()[0] if fault.strip() else "")
