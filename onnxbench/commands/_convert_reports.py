"""Write the report of conversions, in the format that each file's suffix asks for."""

from __future__ import annotations

import json as json_format
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from onnxbench.converters.summary import Row, Summary
from onnxbench.core.atomic import Draft
from onnxbench.errors import UsageError, quote


def write_summary(paths: Iterable[Path], summary: Summary) -> None:
    """Write the report of many."""
    _write(paths, summary, summary.to_dict())


def write_single(paths: Iterable[Path], said: dict[str, Any], source: str, code: int) -> None:
    """Write the report of one model: JSON as it is printed, pages as those of many."""
    state, reason = said["verification"]["state"], said["verification"]["reason"]
    row = Row(source, source, state, reason, said["output"], report=said, error=said.get("error"), code=code)
    row.seconds = said["seconds"]
    _write(paths, Summary([row], total=1, seconds=row.seconds), said)


def refuse_taken(paths: Iterable[Path], *, force: bool) -> None:
    """Raise if a report cannot be written without taking the place of something.

    Raises:
        UsageError: OB202 if something stands there, OB201 if there is no such folder.
    """
    for path in paths:
        if path.exists() and not force:
            raise UsageError("OB202", f"{quote(str(path))} exists already", hint="--force overwrites it")
        if not path.absolute().parent.is_dir():
            raise UsageError("OB201", f"there is no folder {quote(str(path.absolute().parent))}")


def _write(paths: Iterable[Path], summary: Summary, said: dict[str, Any]) -> None:
    from onnxbench.render import conversions_html, conversions_markdown

    for path in paths:
        if path.suffix == ".json":
            text = json_format.dumps(said, indent=1, allow_nan=False) + "\n"
        elif path.suffix == ".md":
            text = conversions_markdown.page(summary)
        else:
            text = conversions_html.page(summary)
        with Draft(path.absolute().parent) as draft:
            draft.write(text.encode("utf-8", "backslashreplace"))
            draft.publish(path.absolute())
