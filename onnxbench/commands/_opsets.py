"""From texts like `13` and `ai.onnx=13,ai.onnx.ml=3` to a target of conversion."""

from __future__ import annotations

import re

from onnxbench.errors import UsageError, quote

_HINT = "--to 13, or --to ai.onnx=13,ai.onnx.ml=3"


def opsets(text: str, option: str) -> dict[str, int]:
    """Version by domain ("" is ai.onnx) from a text.

    Raises:
        UsageError: OB201 for a text that is no such thing, or a domain that is given twice.
    """
    found: dict[str, int] = {}
    for part in text.split(","):
        domain, equals, version = part.rpartition("=")
        domain = domain.strip()
        if (equals and not domain) or not re.fullmatch(r"[1-9][0-9]{0,5}", version.strip()):
            raise UsageError("OB201", f"{option} {quote(text)} is no opset", hint=_HINT.replace("--to", option))
        name = "" if domain == "ai.onnx" else domain
        if name in found:
            raise UsageError("OB201", f"{option} gives {domain or 'ai.onnx'} twice", hint=_HINT.replace("--to", option))
        found[name] = int(version)
    return found


def refuse_unclear(to: str | None, at_least: str | None, to_runtime: str | None, *, changes_more: bool) -> None:
    """Raise unless exactly one target is given.

    Args:
        to: text of `--to`.
        at_least: text of `--at-least`.
        to_runtime: text of `--to-runtime`.
        changes_more: whether something else is to be done, so that there need be no target.

    Raises:
        UsageError: OB201 if there is none or more than one, or one that cannot be read.
    """
    options = {"--to": to, "--at-least": at_least, "--to-runtime": to_runtime}
    given = [name for name, value in options.items() if value is not None]
    if len(given) > 1:
        raise UsageError("OB201", f"{given[0]} and {given[1]} both say where to go", hint=f"leave out {given[1]}")
    if not given and not changes_more:
        raise UsageError("OB201", "it is not said which opset is wanted", hint=_HINT)
    targets(to, at_least)


def targets(to: str | None, at_least: str | None) -> dict[str, int]:
    """Version by domain from `--to` or `--at-least`; nothing without either.

    Raises:
        UsageError: OB201 for one that cannot be read.
    """
    if to is not None:
        return opsets(to, "--to")
    return opsets(at_least, "--at-least") if at_least is not None else {}
