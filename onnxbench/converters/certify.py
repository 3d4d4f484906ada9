"""Local certificates: every rewritten node, old form against new form, alone, on made-up inputs."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from onnx import ModelProto

from onnxbench.converters import believed
from onnxbench.converters.edges import edged
from onnxbench.converters.forms import Forms, Rewritten, forms, likeness
from onnxbench.converters.nonfinite import without_lost_ends
from onnxbench.converters.report import Certificate
from onnxbench.converters.undefined import comes_to_undefined
from onnxbench.converters.written import read, written
from onnxbench.core.compare import Tolerance
from onnxbench.core.model import Model
from onnxbench.core.values import Value, is_float
from onnxbench.runtimes.base import Limits
from onnxbench.verify import drawn_outputs

#: Sizes for dims that are not known, and ranks for tensors whose rank is not, until the old form runs.
_TRIES = ((3, 2), (2, 3), (4, 4), (3, 1), (1, 0))
#: What is said of a body of the specification that differs from the operator where there is nothing to compute.
EMPTY = "where its inputs are empty, the body that the specification gives makes something else"
#: What is said of a body that differs from the operator where the specification leaves open what comes out.
OPEN = "where it has to make whole numbers of what is none, as of infinity, nothing says what, and it may differ"
#: Seconds after which no further certificate is made, in runs of one model.
_BUDGET = 0.5
#: Operators that hand on numbers as they are: a form that makes others, however near, is another (a bound that was rounded).
_NAMES = """
Clip Compress Concat Constant ConstantOfShape Expand Flatten Gather GatherElements GatherND Identity Max MaxPool
Min OneHot Pad ReduceMax ReduceMin Relu Reshape ReverseSequence Slice Split Squeeze Tile TopK Transpose Trilu
Unique Unsqueeze Where
"""
_CHOOSING = frozenset(_NAMES.split())
_EXACT = Tolerance(0.0, 0.0)


def certify(rewritten: Sequence[Rewritten], source: Model, result: ModelProto, limits: Limits) -> list[Certificate]:
    """A certificate for each rewritten node; nodes of the same forms share their runs.

    Args:
        rewritten: the nodes.
        source: the model before.
        result: the model after.
        limits: of one run.
    """
    started = time.monotonic()
    known: dict[object, Certificate] = {}
    found = []
    for entry in rewritten:
        words = entry.words
        key = likeness(entry)
        told = known.get(key)
        if told is not None:
            found.append(replace(told, node=words.node, op=words.op, where=words.where, old="", new="", like=told.node))
            continue
        late = limits.timeout is not None and time.monotonic() - started > _BUDGET * limits.timeout
        made = _late() if late else _certificate(entry, source, result, limits)
        known[key] = replace(made, node=words.node, op=words.op, where=words.where)
        found.append(known[key])
    return found


def _late() -> Certificate:
    return Certificate("", "", "", "untold", reason="the time for certificates was over")


def _certificate(entry: Rewritten, source: Model, result: ModelProto, limits: Limits) -> Certificate:
    first = _forms(entry, source, result, *_TRIES[0])
    if first.reason:
        return Certificate("", "", "", "untold", reason=first.reason)
    reason = ""
    for size, rank in _TRIES:
        both = _forms(entry, source, result, size, rank)
        told = compare(both.old, both.new, limits, by_body=entry.by_body)
        if told.state != "untold":
            return _with_empty(entry, told, source, result, limits)
        reason = reason or told.reason
        if _forms(entry, source, result, 97, 6).old == both.old:
            break  # everything is known: another size changes nothing
    return Certificate("", "", "", "untold", 0, reason, written(first.old), written(first.new))


def _with_empty(entry: Rewritten, told: Certificate, source: Model, result: ModelProto, limits: Limits) -> Certificate:
    """Nothing at all is an input too, where the node takes it."""
    if told.state == "differs":
        return told
    both = _forms(entry, source, result, 0, 2)
    if not any(dim.dim_value == 0 for value in both.old.graph.input for dim in value.type.tensor_type.shape.dim):
        return told
    empty = compare(both.old, both.new, limits, by_body=entry.by_body)
    if empty.state != "differs":
        return told
    # What the specification gives as the meaning of an operator is right by definition; runtimes know better of nothing.
    return replace(told, reason="; ".join(filter(None, [told.reason, EMPTY]))) if entry.by_body else empty


def _forms(entry: Rewritten, source: Model, result: ModelProto, size: int, rank: int) -> Forms:
    """Both forms of a node, with sizes for dims that are not known.

    Of an If they stay open: those that are made up may part the shapes of its branches, which older ones do not take.
    """
    return forms(entry, source.proto, result, None if entry.before.op_type == "If" else size, rank)


def compare(old: ModelProto, new: ModelProto, limits: Limits, *, by_body: bool) -> Certificate:
    """Run both forms on the same inputs: whether they gave the same wherever the old one ran.

    Args:
        old, new: the forms.
        limits: of one run.
        by_body: whether the new form is the body that the specification gives: what that leaves open, the operator does too;
            else it is the old form that tells.
    """
    told = _compared(old, new, limits, by_body=by_body)
    return replace(told, by_body=by_body)


def _compared(old: ModelProto, new: ModelProto, limits: Limits, *, by_body: bool) -> Certificate:
    before, after = Model(old, label="the old form"), Model(new, label="the new form")
    texts = written(old), written(new)
    if drawn_outputs(before):
        return Certificate("", "", "", "untold", 0, "it draws at random", *texts)
    exact = {node.op_type for node in old.graph.node} <= _CHOOSING
    tolerance = _EXACT if exact else Tolerance()
    runs, reason = 0, "nothing could be made up for its inputs"
    notes = []
    for feeds in edged(before):
        ran = believed.run(before, feeds, limits)
        if not ran.outcome.ok:
            reason = reason if runs else f"the old form {ran.outcome.sentence()}"
            continue
        again = believed.run(after, feeds, limits)
        told = believed.told(ran, again, tolerance)
        if told.state == "same":
            runs += 1
        elif told.state == "differs" and _holds(feeds, np.isnan):
            # What operators make of it is mostly left open, and runtimes differ from form to form.
            notes.append("where its inputs hold NaN, it may differ")
        elif told.state == "differs" and comes_to_undefined(new if by_body else old, feeds, limits):
            notes.append(OPEN)
        elif told.state == "differs" and _is_lost_end(feeds, ran, again):
            runs += 1
            notes.append("where infinity comes in, it may give NaN for infinity, or infinity for NaN")
        else:
            return Certificate("", "", "", told.state, runs, told.reason, *texts)
    return Certificate(
        "", "", "", "same" if runs else "untold", runs, "; ".join(dict.fromkeys(notes)) if runs else reason, *texts
    )


def _is_lost_end(feeds: Mapping[str, Value], one: believed.Ran, other: believed.Ran) -> bool:
    """Whether infinity went in, and two runs differ only in where they give NaN for it."""
    return _holds(feeds, np.isinf) and believed.told(*without_lost_ends(one, other)).state == "same"


def _holds(feeds: Mapping[str, Value], what: np.ufunc) -> bool:
    """Whether an input holds what a function tells of numbers."""
    return any(
        isinstance(v, np.ndarray) and is_float(v.dtype) and what(v.astype(np.float64)).any() for v in feeds.values()
    )


def recheck(certificates: Iterable[Mapping[str, Any]], limits: Limits) -> list[Certificate]:
    """Run the forms of certificates again; those that are like another's are not run twice."""
    found = []
    for entry in certificates:
        names = (entry["node"], entry["op"], entry["where"])
        if entry.get("like"):
            continue
        if not entry["old"]:
            found.append(Certificate(*names, "untold", 0, entry["reason"]))
            continue
        by_body = bool(entry.get("by_body", False))
        told = compare(read(entry["old"]), read(entry["new"]), limits, by_body=by_body)
        found.append(replace(told, node=names[0], op=names[1], where=names[2], old=entry["old"], new=entry["new"]))
    return found
