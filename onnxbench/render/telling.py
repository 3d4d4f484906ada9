"""What a report says of a failure, in sentences that each format prints in its own way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from onnxbench.reducers.result import Reduction

#: What a release does, by verdict.
VERDICTS = {
    "same": "fails",
    "other": "fails in another way",
    "gone": "works",
    "unsure": "cannot tell",
    "absent": "is not there",
}
#: By-products, notes and the like that are listed.
_MOST = 20


class Code(str):
    """A name, or what is typed: whoever prints it sets it apart, and escapes it."""

    __slots__ = ()


#: A sentence: plain text, which is escaped too, and `Code`.
Line = tuple[str, ...]


def headline(report: Reduction) -> str:
    """The failure as a title: who fails, how, and in which operators."""
    operators = ", ".join(dict.fromkeys(culprit.operator for culprit in report.culprits[:6]))
    more = ", ..." if len({culprit.operator for culprit in report.culprits}) > 6 else ""
    signature = report.signature
    what = str(signature["sentence"])
    if signature["kind"] in ("error", "unsupported"):
        what = f"{signature['phase']} error"
    suspect = " ".join(filter(None, (report.suspect, report.versions.get(report.suspect, ""))))
    return f"{suspect}: {what} in {operators}{more}"


def summary(report: Reduction) -> Line:
    """The failure in one sentence."""
    who = Code(" ".join(filter(None, (report.suspect, report.versions.get(report.suspect, "")))))
    nodes = f"a model of {report.nodes_after} node{'s' if report.nodes_after != 1 else ''}"
    rate = f" (in {report.failed} of {report.runs} runs of the original)" if report.failed < report.runs else ""
    signature = report.signature
    if signature["kind"] == "numbers":
        judge = (" than ", Code(report.judge)) if report.judge else (" than expected",)
        return (who, f" computes something else on {nodes}", *judge, f": {signature['sentence']}{rate}.")
    if signature["phase"] == "check":
        return ("The check ", who, f" fails on {nodes}{rate}.")
    said = {
        "crash": f"dies ({signature['detail']}) on",
        "timeout": "gives no answer in time on",
        "memory": "takes more memory than it may on",
        "slow": "is slower than it should be on",
    }.get(signature["kind"], "refuses to load" if signature["phase"] == "load" else "fails to run")
    measured = (" Compared with ", Code(report.judge), f" it takes {pace(report)}.") if pace(report) else ()
    return (who, f" {said} {nodes}{rate}.", *measured)


def pace(report: Reduction) -> str:
    """How many times as long as the trusted runtime the suspect takes; "" where that was not measured."""
    if report.slowness is None:
        return ""
    seen = {"the reproducer": report.slowness.reproducer, "the original": report.slowness.original}
    return ", and ".join(
        f"{_plain(race.times)} times as long on {what} (the fastest of {race.runs} runs)"
        for what, race in seen.items()
        if race is not None
    )


def _plain(times: float) -> str:
    return f"{times:.1f}" if times < 10 else f"{times:.0f}"


def known(report: Reduction) -> Iterator[Line]:
    """Reported failures that it looks like."""
    yield from ((f"This looks like {entry.issue}: {entry.title}.",) for entry in report.known)


def cures(report: Reduction) -> Iterator[Line]:
    """What makes the failure go, or come."""
    if report.lowest_failing:
        yield ("The lowest optimization level that fails: ", Code(report.lowest_failing), ".")
    for name in report.cured_by_disabling:
        line = f"disabled_optimizers={[name]!r}"
        yield ("Switching off ", Code(name), " alone cures it: ", Code(f"InferenceSession(..., {line})"), ".")
    for release in report.releases:
        version = f" {release.version}" if release.version else ""
        yield (Code(release.runtime + version), f": {VERDICTS[release.verdict]}.")
    if report.since:
        yield (f"So it {report.since}.",)
    for way in report.workarounds[:_MOST]:
        doubt = "" if way.verified else " (it runs; nobody tells whether it is right)"
        what = "the whole model passes with " if way.kind == "setting" else "the whole model passes when rewritten: "
        yield ("A way around: ", what, Code(way.how), f"{doubt}.")
    if report.workaround:
        yield ("The rewritten model: ", Code(report.workaround), ".")


def passing(report: Reduction) -> Line:
    """The nearest model that passes; empty if there is none."""
    if report.passing is None:
        return ()
    fed = ("passing.npz" if report.passing.own_inputs else "inputs.npz") + " is what it is fed."
    return (
        Code("passing.onnx"),
        " works, and differs in this: ",
        Code("; ".join(report.passing.differs)),
        f". {fed}",
    )


def course(report: Reduction) -> Iterator[Line]:
    """How the reproducer came to be."""
    kind = "1-minimal: no single node can go, each was tried" if report.status == "minimal" else "the best so far"
    yield (
        f"Reduced by onnxbench from {report.nodes_before} nodes to {report.nodes_after}, and from {report.bytes_before} "
        f"bytes to {report.bytes_after} ({kind}), with {report.checks} checks for nodes and {report.shrink_checks} to "
        f"shrink what was left, in {report.seconds:.1f} s.",
    )
    yield (f"The original failed in {report.failed} of {report.runs} runs.",)
    if report.confirmed:
        yield (Code("repro.py"), " was seen to fail in a fresh process.")
    for kind, count in list(report.by_products.items())[:_MOST]:
        yield (f"Another failure was met on the way, {count} times: ", Code(kind), ".")
    yield from ((f"{note[:1].upper()}{note[1:]}.",) for note in report.notes[:_MOST])


def number(value: Any) -> str:
    """A number as people read it; null is no number."""
    if value is None:
        return "-"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def place(index: Any) -> str:
    """An index of an element."""
    return "[" + ", ".join(map(str, index)) + "]" if index is not None else "-"
