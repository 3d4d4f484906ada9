"""Attention: windows since 25, which the body in its specification masks.

Source: ai.onnx Attention-24 and 25.
"""

from __future__ import annotations

from onnxbench.converters import expand, rules
from onnxbench.converters.adapters import adapter
from onnxbench.converters.site import Site


def _without_windows(site: Site) -> None:
    if site.attr("left_window_size", -1) == -1 == site.attr("right_window_size", -1):
        rules.keep(site)
        return
    body = expand.body_of(site.node, site.step.old, site.before, site.facts)
    if body is None:
        site.refuse("Attention-24 has no windows, and the types that its body depends on are not known")
    nodes, site.valid_at = expand.inlined(site.node, body, site.storage.fresh)
    site.made += nodes
    from onnxbench.converters.guess import known_of

    for node in nodes:
        site.facts.made.update(known_of(node, site.valid_at, site.facts))


adapter("Attention", 25, 24)(_without_windows)
