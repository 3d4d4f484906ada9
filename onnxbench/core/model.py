"""A model in hand: its protobuf, and where the bytes of its external tensors lie."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from onnx import ModelProto


@dataclass(frozen=True, slots=True)
class Model:
    """A model and the folder that its external tensors are relative to.

    Attributes:
        proto: the truth. External tensors stay references until somebody needs their bytes.
        folder: what `location` entries of external tensors are relative to; None if there can be none.
        path: the file it was read from; None for a stream or a model made in memory.
        label: how messages name it.
    """

    proto: ModelProto
    folder: Path | None = None
    path: Path | None = None
    label: str = "the model"
