"""What the symbols mean that no file declares: sizes without a name, which costs need one for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from onnx import ModelProto

from onnxbench.core.shape_rules.light import declared_texts
from onnxbench.core.shapes import Shapes
from onnxbench.core.sizes import names_in
from onnxbench.core.symbolic import Expr, Size, lone


@dataclass(slots=True)
class MadeUp:
    """A symbol of ours: the size of an axis of a value.

    Attributes:
        symbol: as expressions have it, such as `x_d0`.
        value, axis: what it is the size of.
        run: whether only a run tells it; else the input decides, and the file does not name it.
    """

    symbol: str
    value: str
    axis: int
    run: bool


def made_up(proto: ModelProto, shapes: Shapes, sizes: Iterable[Size | None]) -> list[MadeUp]:
    """The symbols in sizes that the model does not declare, by name."""
    used = {name for size in {s for s in sizes if isinstance(s, Expr)} for name in size.symbols}
    places = shapes.axes_of(used & shapes.made_up)
    fed = _fed(proto, shapes)
    if not fed.keys().isdisjoint(used):
        declared = names_in(declared_texts(proto))
        places.update((name, place) for name, place in fed.items() if name in used and name not in declared)
    return [MadeUp(name, *place, name in shapes.made_up) for name, place in sorted(places.items())]


def _fed(proto: ModelProto, shapes: Shapes) -> dict[str, tuple[str, int]]:
    """Symbols that are a dim of an input, with the first such dim."""
    found: dict[str, tuple[str, int]] = {}
    for value in proto.graph.input:
        for axis, dim in enumerate(shapes.dims(value.name) or ()):
            if name := lone(dim):
                found.setdefault(name, (value.name, axis))
    return found
