"""The rules by operator: each family of operators has a file of its own."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module

from onnxbench.core.shape_rules.site import Rule

MICROSOFT = "com.microsoft"
_FAMILIES = (
    "attention",
    "elementwise",
    "indexing",
    "making",
    "microsoft",
    "normalizing",
    "products",
    "quantizing",
    "recurrent",
    "reducing",
    "resizing",
    "sequences",
    "splicing",
    "viewing",
    "windows",
)

_rules: dict[tuple[str, str], Rule] = {}


def rule(*operators: str, domain: str = "") -> Callable[[Rule], Rule]:
    """Register a rule for operators of a domain."""

    def register(function: Rule) -> Rule:
        for operator in operators:
            _rules[domain, operator] = function
        return function

    return register


@cache
def rules() -> dict[tuple[str, str], Rule]:
    """Every rule, by domain and operator."""
    for family in _FAMILIES:
        import_module(f"onnxbench.core.shape_rules.{family}")
    return _rules
