"""Attention: windows since 25, which the body in its specification masks.

Source: ai.onnx Attention-24 and 25.
"""

from __future__ import annotations

from onnxbench.converters import rules
from onnxbench.converters.adapters import adapter
from onnxbench.converters.adapters._bodies import expanded
from onnxbench.converters.site import Site


def _without_windows(site: Site) -> None:
    if site.attr("left_window_size", -1) == -1 == site.attr("right_window_size", -1):
        rules.keep(site)
        return
    expanded(site, "Attention-24 has no windows, and the types that its body depends on are not known")


adapter("Attention", 25, 24)(_without_windows)
