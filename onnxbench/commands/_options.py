"""Options that mean the same in every command."""

from pathlib import Path
from typing import Annotated

import typer

RUN, OUTPUT, SHOW = "How to run", "What to write", "What to show"

Source = Annotated[
    str, typer.Argument(metavar="MODEL", help="A model file (.onnx, .onnxtxt, .json, .textproto), or -.")
]
Sources = Annotated[
    list[str],
    typer.Argument(
        metavar="MODEL...", help="Model files (.onnx, .onnxtxt, .json, .textproto), folders, patterns, or -."
    ),
]
Inputs = Annotated[
    str | None,
    typer.Option(
        "--inputs",
        metavar="FILE",
        rich_help_panel=RUN,
        help="Values to feed: .npz, .npy, .pb, a test_data_set folder, Polygraphy's JSON, or script.py:function.",
    ),
]
Shapes = Annotated[
    list[str] | None,
    typer.Option("--shape", metavar="INPUT=1x3x8x8", rich_help_panel=RUN, help="Shape of an input."),
]
Dims = Annotated[
    list[str] | None,
    typer.Option("--dim", metavar="NAME=N", rich_help_panel=RUN, help="Size of a symbolic dimension."),
]
Ranges = Annotated[
    list[str] | None,
    typer.Option("--range", metavar="INPUT=LOW:HIGH", rich_help_panel=RUN, help="Bounds of a generated input."),
]
Seed = Annotated[int, typer.Option("--seed", metavar="N", rich_help_panel=RUN, help="Seed of generated inputs.")]
Rtol = Annotated[
    float | None,
    typer.Option(
        "--rtol", metavar="X", min=0, rich_help_panel=RUN, help="Relative tolerance, instead of the dtype's own."
    ),
]
Atol = Annotated[
    float | None,
    typer.Option(
        "--atol", metavar="X", min=0, rich_help_panel=RUN, help="Absolute tolerance, times the largest value."
    ),
]
Timeout = Annotated[
    float,
    typer.Option(
        "--timeout", metavar="S", min=0.1, rich_help_panel=RUN, help="Seconds that one run of a model may take."
    ),
]
MaxMemory = Annotated[
    str,
    typer.Option(
        "--max-memory", metavar="SIZE", rich_help_panel=RUN, help="Memory that one run may hold: 8G, 500M, 80%."
    ),
]
Output = Annotated[
    str | None,
    typer.Option(
        "-o", "--output", metavar="FILE", rich_help_panel=OUTPUT, help="Write the resulting model here, or to -."
    ),
]
OutputOrFolder = Annotated[
    str | None,
    typer.Option(
        "-o", "--output", metavar="FILE", rich_help_panel=OUTPUT, help="Write here, to -, or for several into a folder."
    ),
]
InPlace = Annotated[
    bool, typer.Option("--in-place", rich_help_panel=OUTPUT, help="Write the result over the model itself.")
]
DryRun = Annotated[
    bool, typer.Option("-n", "--dry-run", rich_help_panel=OUTPUT, help="Write nothing; say what would be done.")
]
RequireVerified = Annotated[
    bool,
    typer.Option("--require-verified", rich_help_panel=RUN, help="Write nothing that could not be run and compared."),
]
Force = Annotated[bool, typer.Option("--force", rich_help_panel=OUTPUT, help="Replace what is there.")]
AllowLossy = Annotated[
    bool,
    typer.Option(
        "--allow-lossy", rich_help_panel=OUTPUT, help="Write a format even if it cannot hold all of the model."
    ),
]
Json = Annotated[bool, typer.Option("--json", rich_help_panel=SHOW, help="Print one JSON object.")]
Quiet = Annotated[bool, typer.Option("-q", "--quiet", rich_help_panel=SHOW, help="No progress.")]
Verbose = Annotated[bool, typer.Option("-v", "--verbose", rich_help_panel=SHOW, help="Every step of the progress.")]
Color = Annotated[
    str, typer.Option("--color", metavar="WHEN", rich_help_panel=SHOW, help="Colours: auto, always or never.")
]
Folder = Annotated[
    Path | None,
    typer.Option(
        "--bundle", metavar="DIR", rich_help_panel=OUTPUT, help="Folder for the reproducer (default: MODEL.repro)."
    ),
]
