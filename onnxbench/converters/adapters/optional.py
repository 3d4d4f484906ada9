"""OptionalHasElement and OptionalGetElement of what is no optional, before 18.

Source: ai.onnx OptionalHasElement-15 and 18, OptionalGetElement-15 and 18.
"""

from __future__ import annotations

import numpy as np

from onnxbench.converters import rules
from onnxbench.converters.adapters import adapter
from onnxbench.converters.site import Site


def _has(site: Site) -> None:
    if not site.input(0):
        site.put("Identity", [site.const(False, "absent", np.bool_)])
    elif _is_plain(site):
        site.put("Identity", [site.const(True, "present", np.bool_)])
    else:
        rules.keep(site)


def _get(site: Site) -> None:
    if _is_plain(site):
        site.put("Identity", [site.input(0)])
    else:
        rules.keep(site)


def _is_plain(site: Site) -> bool:
    """Whether the input is known to be a tensor or a sequence."""
    kind = site.facts.kind(site.input(0))
    return kind is not None and not kind.startswith("optional")


adapter("OptionalHasElement", 18, 15)(_has)
adapter("OptionalGetElement", 18, 15)(_get)
