"""Run the certificates of a report again."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from onnxbench.converters.certify import recheck as run_again
from onnxbench.converters.report import Certificate
from onnxbench.errors import ModelError, quote
from onnxbench.runtimes.base import Limits

_MANY = "onnxbench.conversions/1"
_SCHEMAS = ("onnxbench.convert/1", _MANY)
_HINT = "give what --json or --report FILE.json of onnxbench convert wrote, without --no-verify"


@dataclass(slots=True)
class Rechecked:
    """What came of it.

    Attributes:
        report: the file.
        rows: each certificate, as it is now.
    """

    report: str
    rows: list[Certificate] = field(default_factory=list)

    @property
    def exit_code(self) -> int:
        return 5 if any(row.state == "differs" for row in self.rows) else 0

    def to_dict(self) -> dict[str, Any]:
        return {
            "schema": "onnxbench.convert-recheck/1",
            "report": self.report,
            "certificates": [row.to_dict() for row in self.rows],
        }


def recheck(path: str, limits: Limits) -> Rechecked:
    """Run all certificates of a JSON report of `convert` again, of one model or of many.

    Raises:
        ModelError: OB301 if there is no such file, OB302 if it is no such report, or holds nothing to run again though nodes
            were rewritten.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise ModelError("OB301", f"cannot read {quote(path)}: {error}") from error
    try:
        report = json.loads(text)
        schema = report["schema"]
    except (ValueError, KeyError, TypeError) as error:
        raise ModelError("OB302", f"{quote(path)} is no report of a conversion", hint=_HINT) from error
    if schema not in _SCHEMAS:
        known = " and ".join(_SCHEMAS)
        fact = f"{quote(path)} is of schema {quote(str(schema))}, and certificates are in {known}"
        raise ModelError("OB302", fact, hint=_HINT)
    try:
        rows = report["models"] if schema == _MANY else [report]
        entries = list(_certificates(rows))
        if not entries and (reason := _why_none(rows)):
            raise ModelError("OB302", f"{quote(path)} holds no certificates: {reason}", hint=_HINT)
        return Rechecked(path, run_again(entries, limits))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ModelError("OB302", f"the report {quote(path)} is damaged: {error!r}", hint=_HINT) from error


def _certificates(rows: Any) -> Iterator[Mapping[str, Any]]:
    for row in rows:
        if "verification" in row:
            yield from row["verification"].get("certificates", [])


def _why_none(rows: Any) -> str:
    """Why nodes that were rewritten, or were to be, have no certificates; empty if there are none of them."""
    for row in rows:
        if row.get("rewrites") or row.get("refusals"):
            told = row["verification"]
            return str(told["reason"] or f"the model was {told['state']}")
    return ""
