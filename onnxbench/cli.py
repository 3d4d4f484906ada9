"""The command line: finds the commands, and turns every ending into one line and an exit code."""

from __future__ import annotations

import atexit
import contextlib
import copy
import errno
import gc
import importlib
import io
import os
import pkgutil
import sys
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from onnxbench import __version__, commands, interrupts, process
from onnxbench.errors import BenchError, escape

#: 128 + SIGPIPE, written out for systems that lack the signal.
_SIGPIPE = 141

#: What says that a limit of the process is reached, and the command that lifts it.
_LIMITS = {
    errno.EFBIG: ("OB402", "ulimit -f unlimited"),
    errno.EMFILE: ("OB402", "ulimit -n 1024"),
    errno.EAGAIN: ("OB403", "ulimit -u; ulimit -v"),
}

app = typer.Typer(
    name="onnxbench",
    help="A bench for surgery on ONNX models and for debugging them.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"onnxbench {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


for _module in pkgutil.iter_modules(commands.__path__):
    if not _module.name.startswith("_"):
        importlib.import_module(f"onnxbench.commands.{_module.name}").register(app)


def main() -> NoReturn:
    """Run the command line of this process and exit."""
    _open_streams()
    interrupts.hear()
    process.is_own = True
    gc.set_threshold(100_000, 20, 50)  # graphs are many small objects, and live until the end
    code = run()
    with contextlib.suppress(KeyboardInterrupt):  # one that has come by now
        interrupts.ignore()
    if (
        "onnx" in sys.modules or code > 128
    ):  # an interrupt that struck inside exec() makes Python's own exit another one
        _leave(code)
    sys.exit(code)


def _leave(code: int) -> NoReturn:
    """Exit without taking a graph down object by object, which for a large one takes as long as loading it."""
    atexit._run_exitfuncs()
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.flush()
    os._exit(code)


def _open_streams() -> None:
    """Give a closed standard stream the null device, or the next file opened would be one; print what a terminal lacks."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            mode = "r" if name == "stdin" else "w"
            handle = os.open(os.devnull, os.O_RDONLY if name == "stdin" else os.O_WRONLY)
            if handle != number:
                os.dup2(handle, number)
                os.close(handle)
            setattr(sys, name, open(number, mode, closefd=False))  # noqa: SIM115 -- for as long as the process lives
    _keep_short_writes()
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def _keep_short_writes() -> None:
    """Put a buffer before standard output where PYTHONUNBUFFERED took it away: without, what a write leaves over is lost."""
    out = sys.stdout
    if isinstance(out, io.TextIOWrapper) and isinstance(raw := getattr(out, "buffer", None), io.RawIOBase):
        encoding = out.encoding
        out.detach()
        sys.stdout = io.TextIOWrapper(io.BufferedWriter(raw), encoding, line_buffering=True)


def run() -> int:
    """Run the command line of this process; its exit code."""
    try:
        code: Any = _invoke()
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except KeyboardInterrupt as stop:
        return _interrupted(stop)
    except BaseException as error:
        stopped = interrupts.behind(error)
        return _interrupted(stopped) if stopped is not None else _failed(error)


def _interrupted(stop: KeyboardInterrupt) -> int:
    interrupts.ignore()  # people press Ctrl-C twice
    if sys.stderr.isatty():
        _say("\r\x1b[2K", end="")  # of a line of progress
    error = {"code": "OB801", "message": "interrupted; nothing was written", "hint": ""}
    return _fail(128 + interrupts.number_of(stop), error)


def _failed(raised: BaseException) -> int:
    """The exit code of what a command raised, after saying it."""
    try:
        raise raised
    except BenchError as error:
        return _fail(error.exit_code, error.to_dict())
    except BrokenPipeError:
        return _unread()
    except SystemExit as end:
        if isinstance(end.__context__, BrokenPipeError):  # Rich makes one of the other
            return _unread()
        raise
    except MemoryError:
        return _fail(4, {"code": "OB404", "message": "out of memory", "hint": ""})
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EROFS):
            return _fail(4, {"code": "OB402", "message": str(error), "hint": "free some disk space"})
        limit = _LIMITS.get(error.errno or 0)
        if limit is not None:
            return _fail(4, {"code": limit[0], "message": str(error), "hint": limit[1]})
        if isinstance(error, FileNotFoundError) and not _has_folder():
            message = "the working folder is not there any more"
            return _fail(4, {"code": "OB402", "message": message, "hint": "cd to another one"})
        return _bug(error)
    except typer.Abort:
        return 130
    except Exception as error:
        if (usage := _usage(error)) is not None:
            return usage
        if isinstance(error, RuntimeError) and "start new thread" in str(error):
            return _fail(4, {"code": "OB403", "message": str(error), "hint": _LIMITS[errno.EAGAIN][1]})
        return _bug(error)


def _has_folder() -> bool:
    try:
        return bool(Path.cwd())
    except OSError:
        return False


def _invoke() -> Any:
    """What the command returns; what stops it comes out as it was raised (Typer's `main` makes exit codes of it)."""
    if "_ONNXBENCH_COMPLETE" in os.environ:  # a shell asks for completions
        return app()
    command = typer.main.get_command(_asked_for())
    try:
        with command.make_context("onnxbench", sys.argv[1:]) as context:
            return command.invoke(context)
    except typer.Exit as end:
        return end.exit_code


def _asked_for() -> typer.Typer:
    """The app with the one command that is called: to read the options of all takes longer than many a command."""
    asked = [command for command in app.registered_commands if [command.name] == sys.argv[1:2]]
    if not asked:
        return app
    lean = copy.copy(app)
    lean.registered_commands = asked
    return lean


def _unread() -> int:
    """The exit code when the reader of our output has gone, as `head` does: what a shell says of SIGPIPE.

    Not 0: nobody has been told the whole, and a report that was cut short must not pass a check of CI.
    """
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is buffered yet goes somewhere
    return _SIGPIPE


def _usage(error: Exception) -> int | None:
    """The exit code of an error of the argument parser, after saying it; None for any other error."""
    if not hasattr(error, "format_message"):
        return None
    context = getattr(error, "ctx", None)
    if type(error).__name__ == "NoArgsIsHelpError":
        typer.echo(error.format_message())
        return 2
    command = context.command_path if context is not None else "onnxbench"
    message = " ".join(error.format_message().split())
    return _fail(2, {"code": "OB201", "message": message, "hint": f"{command} --help"})


def _fail(exit_code: int, error: dict[str, str]) -> int:
    if "--json" in sys.argv[1:]:
        import json

        try:
            print(json.dumps({"schema": "onnxbench.error/1", "error": error}), flush=True)
        except BrokenPipeError:
            exit_code = _unread()
        except OSError:  # the disk is full
            pass
    hint = f"\n  hint: {escape(error['hint'])}" if error["hint"] else ""
    _say(f"error[{error['code']}]: {escape(error['message'])}{hint}")
    return exit_code


def _bug(error: BaseException) -> int:
    import tempfile
    import traceback

    hint = "please report it"
    with contextlib.suppress(OSError):  # the disk may be full
        with tempfile.NamedTemporaryFile("w", prefix="onnxbench-bug-", suffix=".txt", delete=False) as file:
            file.write(f"onnxbench {__version__}\n{sys.argv!r}\n")
            traceback.print_exception(error, file=file)
        hint += f" with {file.name}"
    message = f"a bug of onnxbench: {type(error).__name__}: {' '.join(str(error).split())[:200]}"
    return _fail(70, {"code": "OB701", "message": message, "hint": hint})


def _say(text: str, end: str = "\n") -> None:
    with contextlib.suppress(OSError, ValueError):
        print(text, end=end, file=sys.stderr, flush=True)
