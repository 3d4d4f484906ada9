"""Options that only `reduce` has."""

import json
from typing import Annotated

import typer

from onnxbench.commands import _options as options

FAIL, SEARCH, SHRINK = "What fails", "How to search", "How to shrink"

Sources = Annotated[
    list[str],
    typer.Argument(metavar="MODEL...", help="Model files (.onnx, .onnxtxt, .json, .textproto), folders, or -."),
]
Jobs = Annotated[
    int,
    typer.Option(
        "--jobs", metavar="N", min=1, rich_help_panel=SEARCH, help="Candidates, or models, that are run at a time."
    ),
]
Suspect = Annotated[
    str, typer.Option("-r", "--runtime", metavar="SUSPECT", rich_help_panel=FAIL, help="The runtime that fails.")
]
Against = Annotated[
    list[str] | None,
    typer.Option(
        "--against",
        metavar="TRUSTED",
        rich_help_panel=FAIL,
        help="Who is right: a runtime, `itself`, or another model file (default: the suspect without optimizations, ...).",
    ),
]
Expected = Annotated[
    str | None,
    typer.Option(
        "--expected",
        metavar="FILE",
        rich_help_panel=FAIL,
        help="Right outputs: .npz, .npy, .pb, a test_data_set folder.",
    ),
]
SlowerThan = Annotated[
    float | None,
    typer.Option(
        "--slower-than",
        metavar="X",
        min=1,
        rich_help_panel=FAIL,
        help="Being X times slower than TRUSTED is the failure.",
    ),
]
Check = Annotated[
    str | None,
    typer.Option(
        "--check",
        metavar="CMD",
        rich_help_panel=FAIL,
        help="A command that tells: 0 the failure is gone, 125 cannot tell, any other code it is there. {model}, {inputs}.",
    ),
]
FailCode = Annotated[
    list[int] | None,
    typer.Option(
        "--fail-code", metavar="N", rich_help_panel=FAIL, help="Only this exit code of --check is the failure."
    ),
]
FailRegex = Annotated[
    str | None,
    typer.Option(
        "--fail-regex",
        metavar="RE",
        rich_help_panel=FAIL,
        help="Only if the output of --check matches is it the failure.",
    ),
]
FailAny = Annotated[
    bool, typer.Option("--fail-any", rich_help_panel=FAIL, help="Any way in which --check fails is the failure.")
]
Versions = Annotated[
    str | None,
    typer.Option(
        "--versions",
        metavar="V1,V2,...",
        rich_help_panel=SEARCH,
        help="Ask the reproducer on these releases too: 1.20.1 (installed if need be), or a virtual environment.",
    ),
]
WorkaroundFile = Annotated[
    str | None,
    typer.Option(
        "--workaround",
        metavar="FILE",
        rich_help_panel=options.OUTPUT,
        help="Write the whole model, rewritten so that it does not fail, if that can be had.",
    ),
]
Within = Annotated[
    str | None,
    typer.Option(
        "--within", metavar="SELECTION", rich_help_panel=SEARCH, help="Search only here: scope=/layer3, op=Conv, ..."
    ),
]
OnlyProve = Annotated[
    bool, typer.Option("--prove", rich_help_panel=SEARCH, help="Only tell whether it fails: 0 it does, 1 it does not.")
]
GitBisect = Annotated[
    bool,
    typer.Option(
        "--git-bisect",
        rich_help_panel=SEARCH,
        help="With --prove, answer as `git bisect run` wants: 0 gone, 1 there, 125 cannot tell.",
    ),
]
LocalizeOnly = Annotated[
    bool,
    typer.Option("--localize-only", rich_help_panel=SEARCH, help="Only tell which nodes are wrong by themselves."),
]
TimeLimit = Annotated[
    float | None,
    typer.Option(
        "--time-limit",
        metavar="S",
        min=0,
        rich_help_panel=SEARCH,
        help="Stop after so many seconds, with the best so far.",
    ),
]
MaxChecks = Annotated[
    int | None,
    typer.Option("--max-checks", metavar="N", min=1, rich_help_panel=SEARCH, help="Stop after so many candidates."),
]
Resume = Annotated[
    bool, typer.Option("--resume", rich_help_panel=SEARCH, help="Go on with a search that was stopped or killed.")
]
Passes = Annotated[
    str | None,
    typer.Option("--passes", metavar="NAME,...", rich_help_panel=SHRINK, help="Shrink by these passes only."),
]
SkipPass = Annotated[
    list[str] | None,
    typer.Option("--skip-pass", metavar="NAME", rich_help_panel=SHRINK, help="Shrink without this pass."),
]
ListPasses = Annotated[
    bool,
    typer.Option(
        "--list-passes",
        rich_help_panel=SHRINK,
        callback=lambda context, given: _list_passes(context) if given else given,
        help="Say what the passes are, and end.",
    ),
]
Anonymize = Annotated[
    bool,
    typer.Option(
        "--anonymize", rich_help_panel=SHRINK, help="Drop names, docs and values that the failure does not need."
    ),
]
NoExplain = Annotated[
    bool,
    typer.Option(
        "--no-explain",
        rich_help_panel=SHRINK,
        help="Look for no optimization at fault, no nearest passing model and no way around.",
    ),
]
Json = Annotated[
    bool,  # read before --list-passes, which answers at once
    typer.Option("--json", is_eager=True, rich_help_panel=options.SHOW, help="Print one JSON object."),
]


def _list_passes(context: typer.Context) -> None:
    """Print the passes in their order, and end."""
    from onnxbench.reducers.passes import catalogue

    passes = list(catalogue().values())
    if context.params.get("json"):
        rows = [{"name": entry.name, "sentence": entry.sentence} for entry in passes]
        typer.echo(json.dumps({"schema": "onnxbench.passes/1", "passes": rows}))
    else:
        typer.echo("\n".join(f"{entry.name:<14}{entry.sentence}" for entry in passes))
    raise typer.Exit
