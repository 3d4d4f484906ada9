"""Where a node comes from: the scopes and the source line that an exporter left in its name or metadata."""

from __future__ import annotations

import ast
import warnings

from onnx import NodeProto

NAME_SCOPES = "pkg.torch.onnx.name_scopes"
STACK_TRACE = "pkg.torch.onnx.stack_trace"


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


def scopes(node: NodeProto) -> tuple[str, ...]:
    """The scopes that a node lies in, outermost first: from PyTorch's metadata if it is there, else from the name."""
    if len(node.metadata_props) and (listed := exported_scopes(node)):
        return _steps(listed[:-1])
    parts = [part for part in node.name.split("/") if part]
    return tuple(parts[:-1]) if "/" in node.name else ()


def _steps(paths: list[str]) -> tuple[str, ...]:
    """["", "layer", "layer.0"] as ("layer", "0"); a path that says nothing new is no step of its own."""
    steps: list[str] = []
    before = ""
    for path in paths:
        path = path.strip("/.")
        if path and path != before:
            steps.append(path.removeprefix(f"{before}.") if before else path)
            before = path
    return tuple(steps)


def source_line(node: NodeProto) -> str:
    """The innermost line of the user's code, as "model.py:123", from PyTorch's stack trace; "" if there is none."""
    trace = next((entry.value for entry in node.metadata_props if entry.key == STACK_TRACE), "")
    lines = [line.strip() for line in trace.splitlines() if line.strip().startswith("File ")]
    if not lines:
        return ""
    parts = lines[-1].split('"')
    number = lines[-1].partition(", line ")[2].partition(",")[0]
    return f"{parts[1].rsplit('/', 1)[-1]}:{number}" if len(parts) > 2 else ""
