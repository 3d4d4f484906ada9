"""Help against an empty Typer app with as many commands and options, in turns, in one run.

usage: python benchmarks/startup.py [ROUNDS]
Exit status: 1 if a ratio is over the promise.
"""

import os
import sys

# `inspect.py` in this folder must not stand for the standard module.
sys.path[:] = [place for place in sys.path if place != os.path.dirname(os.path.abspath(__file__))]

import inspect
import platform
import statistics
import subprocess
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

PROMISE = 1.5
CASES = (("--help",), ("reduce", "--help"))


def main(rounds: int) -> int:
    """Print a table; whether every ratio keeps the promise."""
    print(f"Python {platform.python_version()}, typer {version('typer')}, {platform.system()} {platform.machine()}")
    print(f"median of {rounds} rounds\n")
    print("| command | onnxbench | empty app | ratio |\n|---|---|---|---|")
    worst = 0.0
    with tempfile.TemporaryDirectory() as folder:
        empty = Path(folder) / "empty.py"
        empty.write_text(empty_app())
        for arguments in CASES:
            ours, theirs = compare(arguments, empty, rounds)
            worst = max(worst, ours / theirs)
            times = f"{ours * 1e3:.0f} ms | {theirs * 1e3:.0f} ms | {ours / theirs:.2f}"
            print(f"| onnxbench {' '.join(arguments)} | {times} |")
    return 1 if worst > PROMISE else 0


def compare(arguments: tuple[str, ...], empty: Path, rounds: int) -> tuple[float, float]:
    """Median seconds of ours and of the empty app."""
    starter = "from onnxbench.cli import main; main()"
    ours, theirs = [], []
    for _ in range(rounds):
        ours.append(seconds([sys.executable, "-c", starter, *arguments]))
        theirs.append(seconds([sys.executable, str(empty), *arguments]))
    return statistics.median(ours), statistics.median(theirs)


def seconds(command: list[str]) -> float:
    started = time.perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - started


def empty_app() -> str:
    """A program with our commands and as many options, of the same types, that does nothing."""
    lines = ["from typing import Annotated", "import typer", "", "app = typer.Typer()"]
    for name, options in our_commands().items():
        lines += ["", f"@app.command({name!r})", f"def {name}("]
        lines += [f"    option_{i}: {option}," for i, option in enumerate(options)]
        lines += ["):", f'    """Does {name}."""']
    return "\n".join([*lines, "", "app()", ""])


def our_commands() -> dict[str, list[str]]:
    """An option for every parameter of each command, by name; read from the program, so that the count stays true."""
    from onnxbench.cli import app

    signatures = {command.name: inspect.signature(command.callback) for command in app.registered_commands}
    return {
        name: [as_option(value) for value in signature.parameters.values()] for name, signature in signatures.items()
    }


def as_option(parameter: inspect.Parameter) -> str:
    """The parameter with its kind of value, and no meaning."""
    words = 'help="Some words of help that say what this one is for."'
    if parameter.default is inspect.Parameter.empty:
        return f'Annotated[str, typer.Argument({words})] = ""'
    default = parameter.default if isinstance(parameter.default, bool | int | float | str) else None
    kind = type(default).__name__ if default is not None else "str | None"
    return f"Annotated[{kind}, typer.Option({words})] = {default!r}"


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 21))
