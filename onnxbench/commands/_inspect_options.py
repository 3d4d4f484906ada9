"""What the options of `inspect` may not say together, and the codes that `--fail-on` takes."""

from __future__ import annotations


def refuse_mixture(asked: list[str], plural: bool, fail_on: str | None) -> None:
    from onnxbench.errors import UsageError

    if len(asked) > 1:
        raise UsageError("OB201", f"{' and '.join(asked)} ask for different things", hint="one at a time")
    if asked and fail_on is not None:
        raise UsageError("OB201", f"--fail-on is about the whole model, {asked[0]} is not", hint="one at a time")
    if asked and plural:
        raise UsageError("OB201", f"{asked[0]} looks at one model", hint="name one file")


def problem_codes(text: str | None) -> tuple[str, ...]:
    from onnxbench.errors import UsageError, quote
    from onnxbench.inspecting.problems import catalogue

    codes = tuple(code.strip().upper() for code in (text or "").split(",") if code.strip())
    unknown = next((code for code in codes if code not in catalogue()), None)
    if unknown is not None:
        raise UsageError(
            "OB201", f"no problem has the code {quote(unknown)}", hint=f"there are {', '.join(catalogue())}"
        )
    return codes
