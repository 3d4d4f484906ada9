"""RNN, GRU and LSTM."""

from __future__ import annotations

from collections.abc import Sequence

from onnxbench.core.shape_rules.facts import Dim, Dims, Fact, tensor
from onnxbench.core.shape_rules.registry import MICROSOFT, rule
from onnxbench.core.shape_rules.site import Site
from onnxbench.core.symbolic import floordiv

_GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}


@rule("RNN", "GRU", "LSTM")
def recurrent(site: Site) -> Sequence[Fact]:
    """Y is (sequence, directions, batch, hidden), a last state (directions, batch, hidden); `layout` puts batch first."""
    hidden: Dim = site.integer("hidden_size")
    gates = site.dims(1)
    if hidden is None and gates is not None and len(gates) == 3 and gates[1] is not None:
        hidden = floordiv(gates[1], _GATES[site.op])
    if hidden is None and site.dims(2):
        hidden = (site.dims(2) or (None,))[-1]
    return _outputs(site, hidden)


@rule("DynamicQuantizeLSTM", domain=MICROSOFT)
def quantized_lstm(site: Site) -> Sequence[Fact]:
    """Weights are transposed here: (directions, hidden, 4 * hidden)."""
    gates = site.dims(2)
    hidden: Dim = site.integer("hidden_size")
    return _outputs(site, hidden if hidden is not None else gates[1] if gates and len(gates) == 3 else None)


def _outputs(site: Site, hidden: Dim) -> Sequence[Fact]:
    directions = 2 if site.text("direction", "forward") == "bidirectional" else 1
    before = site.dims(0)
    first, second = before[:2] if before is not None and len(before) == 3 else (None, None)
    if site.integer("layout", 0):
        whole: Dims = (first, second, directions, hidden)
        last: Dims = (first, directions, hidden)
    else:
        whole, last = (first, directions, second, hidden), (directions, second, hidden)
    kind = site.element()
    return [tensor(kind, whole), tensor(kind, last), tensor(kind, last)]
