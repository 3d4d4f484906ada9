"""The report on many conversions: a row for each model, files that were copied, totals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

SCHEMA = "onnxbench.conversions/1"
#: Every state of a row, in the order of tables: those of a conversion, and of models that were not converted.
STATES = (
    "verified",
    "certified",
    "unverified",
    "unchanged",
    "other",
    "refused",
    "mismatch",
    "failed",
)


@dataclass(slots=True)
class Row:
    """What came of one model.

    Attributes:
        model: its path.
        place: where it goes, relative to the output folder.
        state: that of the conversion; "other" if it was not to be converted, "failed" if it could not be tried.
        reason: why it is no more than that.
        output: the file that stands in the output folder for it.
        copied: whether that file is the source as it was.
        report: as `Conversion.to_dict()`; empty if there was no conversion.
        error: why there is no result.
        code: what a command for this model alone would end with.
        seconds: wall time.
        earlier: whether an earlier run did it.
    """

    model: str
    place: str
    state: str
    reason: str = ""
    output: str = ""
    copied: bool = False
    report: dict[str, Any] = field(default_factory=dict)
    error: dict[str, str] | None = None
    code: int = 0
    seconds: float = 0.0
    earlier: bool = False

    @property
    def by_step(self) -> Mapping[str, int]:
        found: Mapping[str, int] = self.report.get("by_step", {})
        return found

    @property
    def refusals(self) -> list[dict[str, str]]:
        found: list[dict[str, str]] = self.report.get("refusals", [])
        return found

    @property
    def differing(self) -> list[dict[str, Any]]:
        """Certificates of nodes that give something else now."""
        return [entry for entry in self._certificates if entry["state"] == "differs"]

    @property
    def certified(self) -> tuple[int, int]:
        """Rewritten nodes that gave the same alone, of how many."""
        return sum(entry["state"] == "same" for entry in self._certificates), len(self._certificates)

    @property
    def _certificates(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.report.get("verification", {}).get("certificates", [])
        return found

    def to_dict(self) -> dict[str, Any]:
        """Its conversion's fields, and what the batch knows of it."""
        told = {key: value for key, value in self.report.items() if key != "schema"}
        more = {"error": self.error} if self.error else {}
        return {
            **told,
            "model": self.model,
            "place": self.place,
            "state": self.state,
            "reason": self.reason,
            "output": self.output,
            "copied": self.copied,
            "seconds": round(self.seconds, 3),
            "earlier": self.earlier,
            "exit_code": self.code,
            **more,
        }

    def kept(self) -> dict[str, Any]:
        """What a journal keeps of it."""
        names = ("model", "place", "state", "reason", "output", "copied", "report", "error", "code", "seconds")
        return {name: getattr(self, name) for name in names}


@dataclass(slots=True)
class File:
    """A file that is no model, or that belongs to a copied one: state is "copied", "skipped" or "failed"."""

    place: str
    state: str
    error: dict[str, str] | None = None
    code: int = 0

    def to_dict(self) -> dict[str, Any]:
        more = {"error": self.error} if self.error else {}
        return {"file": self.place, "state": self.state, **more}


@dataclass(slots=True)
class Summary:
    """What came of many models.

    Attributes:
        rows: in the order of the command line.
        files: other files.
        asked: what was asked, in words.
        hidden: models in hidden folders, which were left out.
        total: models that there are; more than rows if it was interrupted.
        interrupted: the signal that ended it; 0 if none did.
        seconds: wall time of this run.
    """

    rows: list[Row] = field(default_factory=list)
    files: list[File] = field(default_factory=list)
    asked: dict[str, Any] = field(default_factory=dict)
    hidden: list[str] = field(default_factory=list)
    total: int = 0
    interrupted: int = 0
    seconds: float = 0.0

    @property
    def earlier(self) -> int:
        return sum(row.earlier for row in self.rows)

    @property
    def exit_code(self) -> int:
        """That of the worst model; of an interrupt if one ended it."""
        if self.interrupted:
            return 128 + self.interrupted
        return max([0, *(row.code for row in self.rows), *(file.code for file in self.files)])

    def by_state(self) -> dict[str, int]:
        found = Counter(row.state for row in self.rows)
        return {state: found[state] for state in STATES if found[state]}

    def by_step(self) -> dict[str, int]:
        """How many nodes took each step, the most frequent first."""
        found: Counter[str] = Counter()
        for row in self.rows:
            found.update(row.by_step)
        return dict(found.most_common())

    def by_refusal(self) -> list[dict[str, Any]]:
        """Refused nodes by operator, step and reason, with the models that have them; the most frequent first."""
        nodes: Counter[tuple[str, str, str]] = Counter()
        models: dict[tuple[str, str, str], list[str]] = {}
        for row in self.rows:
            for entry in row.refusals:
                key = (entry["op"], entry["step"], entry["reason"])
                nodes[key] += 1
                if row.model not in models.setdefault(key, []):
                    models[key].append(row.model)
        return [
            {"op": op, "step": step, "reason": reason, "nodes": count, "models": models[op, step, reason]}
            for (op, step, reason), count in nodes.most_common()
        ]

    def by_error(self) -> dict[str, int]:
        found = Counter(row.error["code"] for row in self.rows if row.error)
        return dict(found.most_common())

    def to_dict(self) -> dict[str, Any]:
        return {
            "schema": SCHEMA,
            "asked": self.asked,
            "models": [row.to_dict() for row in self.rows],
            "hidden": self.hidden,
            "files": [file.to_dict() for file in self.files],
            "totals": {
                "models": self.total,
                "done": len(self.rows),
                "earlier": self.earlier,
                "states": self.by_state(),
                "steps": self.by_step(),
                "refusals": self.by_refusal(),
                "errors": self.by_error(),
            },
            "interrupted": bool(self.interrupted),
            "exit_code": self.exit_code,
            "seconds": round(self.seconds, 3),
        }
