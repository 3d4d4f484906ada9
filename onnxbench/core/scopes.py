"""The scopes that PyTorch's exporter notes in a node's metadata."""

from __future__ import annotations

import ast
import warnings

from onnx import NodeProto

NAME_SCOPES = "pkg.torch.onnx.name_scopes"


def exported_scopes(node: NodeProto) -> list[str]:
    """The dotted paths that the exporter leaves, outermost first, the node's own name last; [] if there are none.

    They are the text of a Python list, each path a prefix of the next.
    """
    for entry in node.metadata_props:
        if entry.key == NAME_SCOPES and (listed := _listed(entry.value)):
            return listed
    return []


def _listed(text: str) -> list[str]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a text that is none of ours
            found = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return []
    return [item for item in found if isinstance(item, str)] if isinstance(found, list | tuple) else []
