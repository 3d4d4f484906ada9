"""What an extraction did: counts, the border of the piece, where its types came from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Port:
    """An input or output of the piece.

    Attributes:
        name: of the value.
        type: as text.
        source: "input" or "output" of the model, "cut", "weight", or "default" for an overridable initializer.
        told_by: "recorded" if a run told the type, "user", or "" for the file and inference.
    """

    name: str
    type: str
    source: str
    told_by: str = ""

    def to_dict(self) -> dict[str, str]:
        return {"name": self.name, "type": self.type, "source": self.source, "told_by": self.told_by}


@dataclass(slots=True)
class Extraction:
    """The report of one extraction.

    Attributes:
        model: label of the source.
        where: the body that was cut, "" for the main graph.
        nodes_before, nodes_after: nodes of the main graph; `all_` adds those of bodies and functions.
        bytes_before, bytes_after: with weights, external ones too.
        inputs, outputs: of the piece.
        functions: local functions that came along.
        data: folder of the recorded inputs and outputs, if one was written.
        notes: what else a reader should know.
        output: file that was written, if one was.
    """

    model: str
    where: str = ""
    nodes_before: int = 0
    nodes_after: int = 0
    all_nodes_before: int = 0
    all_nodes_after: int = 0
    bytes_before: int = 0
    bytes_after: int = 0
    inputs: Sequence[Port] = ()
    outputs: Sequence[Port] = ()
    functions: Sequence[str] = ()
    data: str = ""
    notes: list[str] = field(default_factory=list)
    output: str = ""
    exit_code: int = 0

    def to_dict(self) -> dict[str, Any]:
        counts = ("nodes_before", "nodes_after", "all_nodes_before", "all_nodes_after", "bytes_before", "bytes_after")
        return {
            "schema": "onnxbench.extraction/1",
            "model": self.model,
            "where": self.where,
            **{name: getattr(self, name) for name in counts},
            "inputs": [port.to_dict() for port in self.inputs],
            "outputs": [port.to_dict() for port in self.outputs],
            "functions": list(self.functions),
            "data": self.data,
            "notes": self.notes,
            "output": self.output,
        }
