"""What plug-ins add: the entry points of a group, loaded only when they are asked for."""

from collections.abc import Callable
from functools import cache
from importlib.metadata import entry_points
from typing import Any


@cache
def names(group: str) -> dict[str, Callable[[], Any]]:
    """Loaders by name for an entry-point group; ours come first, a plug-in cannot take a name that is taken."""
    found: dict[str, Callable[[], Any]] = {}
    for point in sorted(entry_points(group=group), key=lambda point: not point.value.startswith("onnxbench.")):
        found.setdefault(point.name, point.load)
    return found
