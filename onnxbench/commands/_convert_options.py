"""Options of `onnxbench convert` alone."""

from pathlib import Path
from typing import Annotated

import typer

from onnxbench.commands import _options as options

TARGET, MANY = "Where to", "Many models"

Sources = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="MODEL...", help="Model files (.onnx, .onnxtxt, .json, .textproto), folders, patterns, or -."
    ),
]
To = Annotated[
    str | None,
    typer.Option(
        "--to", metavar="N", rich_help_panel=TARGET, help="Opset of the result: 13, or ai.onnx=13,ai.onnx.ml=3."
    ),
]
AtLeast = Annotated[
    str | None,
    typer.Option("--at-least", metavar="N", rich_help_panel=TARGET, help="The same, only for models below it."),
]
ToRuntime = Annotated[
    str | None,
    typer.Option(
        "--to-runtime", metavar="NAME", rich_help_panel=TARGET, help="The newest opset and IR that this runtime loads."
    ),
]
Ir = Annotated[
    int | None,
    typer.Option("--ir", metavar="N", min=1, rich_help_panel=TARGET, help="IR version, instead of the opset's own."),
]
Expand = Annotated[
    list[str] | None,
    typer.Option(
        "--expand", metavar="OP", rich_help_panel=TARGET, help="Put what an operator is made of in its place."
    ),
]
Explain = Annotated[
    list[str] | None,
    typer.Option(
        "--explain", metavar="SELECTION", rich_help_panel=options.SHOW, help="Say what would become of some nodes."
    ),
]
Recheck = Annotated[
    Path | None,
    typer.Option(
        "--recheck", metavar="REPORT", rich_help_panel=options.RUN, help="Run the certificates of a report again."
    ),
]
NoVerify = Annotated[
    bool, typer.Option("--no-verify", rich_help_panel=options.RUN, help="Do not compare the result with its source.")
]
Exact = Annotated[
    bool,
    typer.Option("--exact", rich_help_panel=MANY, help="Bring down what lies above the target in a folder, too."),
]
Others = Annotated[
    str,
    typer.Option(
        "--others",
        metavar="copy|skip",
        rich_help_panel=MANY,
        help="What becomes of models that are there already or refused, and of other files of a folder.",
    ),
]
From = Annotated[
    int | None,
    typer.Option("--from", metavar="N", min=1, rich_help_panel=MANY, help="Take only models at this opset."),
]
Jobs = Annotated[int, typer.Option("--jobs", metavar="N", min=1, rich_help_panel=MANY, help="Models at a time.")]
Report = Annotated[
    list[Path] | None,
    typer.Option(
        "--report",
        metavar="FILE",
        rich_help_panel=options.SHOW,
        help="Write the report there, as .json, .md or .html; again for another.",
    ),
]
