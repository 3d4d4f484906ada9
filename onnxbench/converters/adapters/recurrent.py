"""RNN, GRU, LSTM: `output_sequence` before 7, `layout` since 14.

Sources: ai.onnx LSTM-1, 7, 14, GRU-1, 3, 7, 14, RNN-1, 7, 14. `output_sequence` says whether the first output is there;
since 7 that it is named says so.
"""

from __future__ import annotations

from onnxbench.converters import rules
from onnxbench.converters.adapters import adapter
from onnxbench.converters.site import Site


def _up(site: Site) -> None:
    site.same(drop=("output_sequence",))


def _down(site: Site) -> None:
    site.same(output_sequence=1 if site.output(0) else 0)


def _gru_up(site: Site) -> None:
    """GRU-1 has a default of `direction` with a slip of the pen, "foward"."""
    site.same(direction=site.attr("direction").replace("foward", "forward"))


def _gru_down(site: Site) -> None:
    if site.attr("linear_before_reset", 0):
        site.refuse("GRU-1 has no linear_before_reset")
    site.same(drop=("linear_before_reset",), direction=site.attr("direction"))


def _layout(site: Site) -> None:
    """With layout 1 the batch comes first; the older form has it behind time, or behind the direction."""
    if not site.attr("layout", 0):
        rules.keep(site)
        return
    is_lstm = site.node.op_type == "LSTM"
    swapped = {0: [1, 0, 2], 5: [1, 0, 2], **({6: [1, 0, 2]} if is_lstm else {})}
    inputs = [
        site.add("Transpose", name, perm=swapped[place], wish="turned") if name and place in swapped else name
        for place, name in enumerate(site.node.input)
    ]
    names = list(site.node.output)
    made = [site.fresh("turned") if name else "" for name in names]
    site.same(inputs, made, drop=("layout",))
    site.node.name = ""
    for place, (inner, name) in enumerate(zip(made, names, strict=True)):
        if name:
            # [time, direction, batch, hidden] and [direction, batch, hidden]
            site.put("Transpose", [inner], [name], perm=[2, 0, 1, 3] if place == 0 else [1, 0, 2])


for _op, _first in (("LSTM", 1), ("RNN", 1), ("GRU", 3)):
    adapter(_op, _first, 7)(_up)
    adapter(_op, 7, _first)(_down)
    adapter(_op, 14, 7)(_layout)
adapter("GRU", 1, 3)(_gru_up)
adapter("GRU", 3, 1)(_gru_down)
