"""Every step between versions of an operator that the installed onnx knows has a rule, or is listed as impossible."""

from collections import defaultdict
from itertools import pairwise

import onnx
import pytest

from onnxbench.converters import adapters, rules, schemas
from onnxbench.converters.adapters import adapter_of, why_impossible
from onnxbench.converters.schemas import Step

DOMAINS = ("", "ai.onnx.ml")


def versions():
    found = defaultdict(list)
    for schema in onnx.defs.get_all_schemas_with_history():
        if schema.domain in DOMAINS:
            found[schema.domain, schema.name].append(schema)
    return {key: sorted(entries, key=lambda schema: schema.since_version) for key, entries in found.items()}


def steps():
    for entries in versions().values():
        for older, newer in pairwise(entries):
            yield Step(older, newer, newer.since_version)
            yield Step(newer, older, newer.since_version - 1)
        if entries[0].since_version > 1:
            yield Step(entries[0], None, entries[0].since_version - 1)


def has_body(schema):
    return schema.has_function or schema.has_context_dependent_function


def is_known(step):
    if adapter_of(step.key) is not None or why_impossible(step.key):
        return True
    if step.new is None or step.new.deprecated:
        return has_body(step.old)
    return rules.is_transparent(step) or rules.decides(step)


def test_every_step_is_proven_adapted_or_impossible():
    unknown = [f"{step.old.domain} {step.sentence()}" for step in steps() if not is_known(step)]
    assert unknown == []


def test_the_steps_of_the_newest_opsets_were_looked_at():
    """A newer onnx brings steps whose meaning no schema shows: look at them, then raise `schemas.REVIEWED`."""
    newest = {domain: schemas.newest(domain) for domain in DOMAINS}
    assert newest == schemas.REVIEWED


def test_every_adapter_belongs_to_a_step():
    known = {step.key for step in steps()}
    assert [key for key in adapters.registered() if key not in known] == []


def test_a_step_without_a_rule_is_found():
    """A version that turns an attribute into an input is what the walk above has to find."""
    topk = Step(onnx.defs.get_schema("TopK", 1), onnx.defs.get_schema("TopK", 10), 10)
    assert not rules.decides(topk)
    assert not rules.is_transparent(topk)


@pytest.mark.parametrize(("op", "older", "newer"), [("Relu", 6, 13), ("Conv", 1, 11), ("Identity", 13, 14)])
def test_more_types_and_nothing_else_prove_the_way_up(op, older, newer):
    assert rules.is_transparent(Step(onnx.defs.get_schema(op, older), onnx.defs.get_schema(op, newer), newer))
    assert not rules.is_transparent(Step(onnx.defs.get_schema(op, newer), onnx.defs.get_schema(op, older), newer - 1))
