"""Runtimes by the name a user types."""

from __future__ import annotations

import difflib
from dataclasses import dataclass

from onnxbench import registry
from onnxbench.errors import MachineError, UsageError, quote
from onnxbench.runtimes.base import Runtime, Spec

GROUP = "onnxbench.runtimes"


def parse_spec(text: str) -> Spec:
    """`NAME[@VENV][:arguments]`; the first colon after the environment ends it.

    Raises:
        UsageError: OB205 if there is no name.
    """
    head, _, arguments = text.partition(":")
    if len(head.partition("@")[2]) == 1 and arguments[:1] in ("\\", "/"):  # onnxruntime@C:\venv
        rest, _, arguments = arguments.partition(":")
        head = f"{head}:{rest}"
    name, _, venv = head.partition("@")
    if not name:
        raise UsageError("OB205", f"{quote(text)} names no runtime", hint="onnxbench runtimes")
    return Spec(name, venv, arguments)


def find(text: str) -> Runtime:
    """The runtime that `text` names, with its options.

    Raises:
        UsageError: OB205 for an unknown name or option.
        MachineError: OB401 if its plug-in or environment cannot be loaded.
    """
    spec = parse_spec(text)
    known = registry.names(GROUP)
    if spec.name not in known:
        near = difflib.get_close_matches(spec.name, known, 1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
        raise UsageError("OB205", f"no runtime is called {quote(spec.name)}", hint=f"{hint}  onnxbench runtimes")
    try:
        kind: type[Runtime] = known[spec.name]()
    except ImportError as error:
        raise MachineError("OB401", f"the plug-in of {quote(spec.name)} cannot be imported: {error}") from None
    return kind(spec)


@dataclass(frozen=True, slots=True)
class Row:
    """A runtime as `onnxbench runtimes` lists it: `missing` says why it cannot be used, `hint` the pip line."""

    name: str
    version: str
    sentence: str
    missing: str = ""
    hint: str = ""


def survey() -> list[Row]:
    """Every registered runtime, there or not."""
    return [_row(name) for name in registry.names(GROUP)]


def _row(name: str) -> Row:
    try:
        kind: type[Runtime] = registry.names(GROUP)[name]()
    except ImportError as error:
        return Row(name, "", "a plug-in", f"cannot be imported: {error}")
    try:
        return Row(name, kind.installed_version(), kind.sentence)
    except MachineError as error:
        return Row(name, "", kind.sentence, error.message, error.hint)
