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
        ModelError: OB301 if there is no such file, OB302 if it is no such report.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise ModelError("OB301", f"cannot read {quote(path)}: {error}") from error
    try:
        entries = list(_certificates(json.loads(text)))
        return Rechecked(path, run_again(entries, limits))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        hint = "give what --json or --report FILE.json of onnxbench convert wrote"
        raise ModelError("OB302", f"{quote(path)} is no report of a conversion", hint=hint) from error


def _certificates(report: Any) -> Iterator[Mapping[str, Any]]:
    rows = report.get("models", [report])
    for row in rows:
        if "verification" in row:
            yield from row["verification"].get("certificates", [])
