"""`onnxbench runtimes`."""

from __future__ import annotations

import json as json_format

import typer

from onnxbench.commands import _options as options


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("runtimes", short_help="List the runtimes that are here.")(runtimes)


def runtimes(json: options.Json = False, color: options.Color = "auto") -> int:
    """List the runtimes that are here, their versions, and how to get those that are not."""
    from onnxbench.render import console
    from onnxbench.runtimes.find import survey

    out = console.console(color)
    rows = survey()
    if json:
        listed = [
            {"name": r.name, "version": r.version, "what": r.sentence, "missing": r.missing, "hint": r.hint}
            for r in rows
        ]
        typer.echo(json_format.dumps({"schema": "onnxbench.runtimes/1", "runtimes": listed}, indent=1))
        return 0
    for row in rows:
        out.print(f"{row.name:<14} {row.version or ('missing' if row.missing else '-'):<10} {row.sentence}")
        if row.missing:
            out.print(f"{'':<14} {row.missing}; {row.hint}")
    return 0
