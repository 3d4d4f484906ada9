"""Keep a small piece in one file."""

from __future__ import annotations

from pathlib import Path

from onnxbench.core.external import locate, read
from onnxbench.core.model import Model
from onnxbench.core.slimming import embed
from onnxbench.core.tensors import is_external, tensors

#: Bytes of external data in all up to which a piece that goes elsewhere takes them into its graph.
FEW = 1 << 20


def embed_few(piece: Model, target: Path) -> None:
    """Take the external weights of a piece into its graph, in place, if they are few and must be copied anyway.

    Args:
        piece: what is about to be written.
        target: the file that it will be; beside the source the weights stay where they are.
    """
    outside = [(tensor, locate(piece, tensor)) for tensor in tensors(piece.proto) if is_external(tensor)]
    stays = piece.path is not None and piece.path.parent.resolve() == target.absolute().parent.resolve()
    if stays or sum(weight.length for _, weight in outside) > FEW:
        return
    for tensor, weight in outside:
        embed(tensor, read(weight))
