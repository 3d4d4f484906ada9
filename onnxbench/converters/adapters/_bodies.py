"""The body that the specification gives an operator, for steps that only some nodes cannot take otherwise."""

from __future__ import annotations

from onnxbench.converters import expand
from onnxbench.converters.guess import known_of
from onnxbench.converters.site import Site


def expanded(site: Site, reason: str) -> None:
    """Put the body in the node's place.

    Raises:
        Refused: for the reason given, if there is no body for this node.
    """
    body = expand.body_of(site.node, site.step.old, site.before, site.facts)
    if body is None:
        site.refuse(reason)
    nodes, site.valid_at = expand.inlined(site.node, body, site.storage.fresh)
    site.made += nodes
    for node in nodes:
        site.facts.made.update(known_of(node, site.valid_at, site.facts))
