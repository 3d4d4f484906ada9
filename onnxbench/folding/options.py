"""What a fold may do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from onnxbench.runtimes.base import Limits


@dataclass(frozen=True, slots=True)
class FoldOptions:
    """How to fold.

    Attributes:
        max_size: bytes above which no constant is left behind.
        freeze_initializers: take the defaults of overridable initializers for constants, and drop these inputs.
        fold_qdq: fold QuantizeLinear and DequantizeLinear of constants too.
        pin: whether `shapes` and `dims` are written into the model first; else they only say what to verify with.
        shapes, dims: sizes of inputs by name, and of symbols.
        skip: names of passes that are left out.
        whole: run the whole model to verify, however large it is.
        limits: of each run in a worker.
    """

    max_size: int = 10_000_000
    freeze_initializers: bool = False
    fold_qdq: bool = False
    pin: bool = False
    shapes: Mapping[str, Sequence[int]] = field(default_factory=dict)
    dims: Mapping[str, int] = field(default_factory=dict)
    skip: Sequence[str] = ()
    whole: bool = False
    limits: Limits = field(default_factory=Limits)

    @property
    def inference_time(self) -> float | None:
        """Seconds for each inference or check."""
        return None if self.limits.timeout is None else self.limits.timeout / 3
