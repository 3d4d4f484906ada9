"""Keep apart what a body and the graphs around it call their sizes."""

from __future__ import annotations

from onnx import GraphProto

from onnxbench.core.graph import GraphView
from onnxbench.core.sizes import dims_in


def part_sizes(piece: GraphProto, view: GraphView) -> None:
    """Let a piece of a body name no size of the graphs around it as the body names one of its own, in place.

    Names of sizes are scoped to the values of one graph (IR.md, names within a graph): the N of a loop's body may grow in
    each round while the N around it stays, and as inputs of one piece both would be the same size.

    Args:
        piece: cut out of the view; what its values are declared to be.
        view: the body.
    """
    if view.parent is None:
        return
    own = {dim.dim_param for value in view.types.values() for dim in dims_in(value) or ()}
    for value in (*piece.input, *piece.output):
        if value.name not in view.types:
            for dim in dims_in(value.type) or ():
                if dim.dim_param in own:
                    dim.ClearField("dim_param")
