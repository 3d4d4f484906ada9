"""What has to be known of a model before many are converted: its opsets, its size, its data files."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from onnxbench.core.external import locate, location
from onnxbench.core.graph import opset_imports, plain_domain
from onnxbench.core.model import load
from onnxbench.core.tensors import is_external, tensors
from onnxbench.errors import BenchError


@dataclass(frozen=True, slots=True)
class Look:
    """A look at a model's file.

    Attributes:
        opsets: version by domain, as the model imports them ("" is ai.onnx).
        lowest: the same, with those of its functions: the lowest counts.
        size: bytes of the file.
        data: bytes that it needs of each data file, by path relative to its folder.
        error: why it cannot be read; the rest is empty then.
        code: exit code of that.
    """

    opsets: Mapping[str, int] = field(default_factory=dict)
    lowest: Mapping[str, int] = field(default_factory=dict)
    size: int = 0
    data: Mapping[str, int] = field(default_factory=dict)
    error: Mapping[str, str] | None = None
    code: int = 0

    def stays(self, targets: Mapping[str, int]) -> str:
        """Why a model need not be raised: all that it imports of these domains is there, or above. Empty if it is not."""
        asked = [domain for domain in targets if domain in self.lowest]
        if not asked or any(self.lowest[domain] < targets[domain] for domain in asked):
            return ""
        there = (f"{domain or 'opset'} {self.opsets.get(domain, self.lowest[domain])}" for domain in asked)
        return f"it is at {', '.join(there)} already"

    @property
    def bytes(self) -> int:
        return self.size + sum(self.data.values())


def look(source: str) -> Look:
    """Look at a model; in a worker process, because a file may be anything."""
    try:
        model = load(source)
    except BenchError as error:
        return Look(error=error.to_dict(), code=error.exit_code)
    data: dict[str, int] = {}
    for tensor in tensors(model.proto):
        if is_external(tensor):
            with suppress(BenchError):  # the conversion will say it
                length = locate(model, tensor).length
                name = PurePosixPath(location(tensor)).as_posix()
                data[name] = data.get(name, 0) + length
    opsets = opset_imports(model.proto.opset_import)
    lowest = dict(opsets)
    for function in model.proto.functions:
        for domain, version in opset_imports(function.opset_import).items():
            lowest[domain] = min(version, lowest.get(domain, version))
    return Look(opsets, lowest, Path(source).stat().st_size, _on_disk(Path(source).parent, data))


def opset_of(look: Look, domain: str = "") -> int | None:
    """The version of a domain that a model imports; None if it imports none."""
    return look.opsets.get(plain_domain(domain))


def _on_disk(folder: Path, data: Mapping[str, int]) -> dict[str, int]:
    """Tensors may share bytes: a file is never needed more than whole."""
    return {name: min(length, (folder / name).stat().st_size) for name, length in data.items()}
